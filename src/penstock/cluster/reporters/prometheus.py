"""Prometheus: Flink's names and labels in the text format 0.0.4, so that dashboards for Flink work."""

from __future__ import annotations

import math
import re
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Mapping

from penstock.cluster.reporters.samples import Sample

__all__ = ["CONTENT_TYPE", "PushGatewayReporter", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNSAFE = re.compile(r"[^a-zA-Z0-9:_]")
_SECONDS = 5.0


def exposition(samples: Iterable[Sample], prefix: str = "flink", *, filter_values: bool = True) -> str:
    """Return all samples as text. All metrics are gauges, as in Flink's reporter.

    >>> of_job = {"job_name": "my job"}
    >>> print(exposition([Sample("jobmanager_job", "numRestarts", 2.0, of_job)]), end="")
    # HELP flink_jobmanager_job_numRestarts numRestarts (scope: jobmanager_job)
    # TYPE flink_jobmanager_job_numRestarts gauge
    flink_jobmanager_job_numRestarts{job_name="my_job"} 2.0
    """
    lines: dict[str, list[str]] = {}
    for sample in samples:
        name = _UNSAFE.sub("_", f"{prefix}_{sample.scope}_{sample.name}")
        if name not in lines:
            words = sample.name.replace("\\", "\\\\").replace("\n", "\\n")
            lines[name] = [f"# HELP {name} {words} (scope: {sample.scope})", f"# TYPE {name} gauge"]
        labels = ",".join(
            f'{_UNSAFE.sub("_", key)}="{_label(value, filter_values)}"' for key, value in sample.variables.items()
        )
        lines[name].append(f"{name}{{{labels}}} {_number(sample.value)}")
    return "".join(f"{line}\n" for group in lines.values() for line in group)


def _label(value: str, filter_values: bool) -> str:
    if filter_values:
        return _UNSAFE.sub("_", value)
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)


class PushGatewayReporter:
    """Sends all metrics to a push gateway, under one grouping key."""

    def __init__(self, options: Mapping[str, str]) -> None:
        name = options.get("jobName", "penstock")
        if options.get("randomJobNameSuffix", "true").lower() == "true":
            name += uuid.uuid4().hex
        address = options.get("hostUrl") or f"http://{options.get('host', 'localhost')}:{options.get('port', '9091')}"
        groups = [pair.partition("=") for pair in options.get("groupingKey", "").split(";") if "=" in pair]
        parts = [("job", name), *((key, value) for key, _, value in groups)]
        path = "/".join(f"{key}/{urllib.parse.quote(value, safe='')}" for key, value in parts)
        self._url = f"{address.rstrip('/')}/metrics/{path}"
        self._delete = options.get("deleteOnShutdown", "true").lower() == "true"

    def report(self, samples: list[Sample]) -> None:
        """Replace our metrics on the gateway."""
        self._send("PUT", exposition(samples).encode())

    def close(self) -> None:
        """Remove our metrics from the gateway, unless configured otherwise."""
        if self._delete:
            self._send("DELETE", None)

    def _send(self, method: str, body: bytes | None) -> None:
        request = urllib.request.Request(  # noqa: S310 - the address is the user's setting
            self._url, body, {"Content-Type": CONTENT_TYPE}, method=method
        )
        with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
            pass
