"""Reporters that send values by name: StatsD, Graphite, OpenTelemetry, the log."""

from __future__ import annotations

import json
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Mapping

from penstock.cluster.reporters.samples import Sample

__all__ = ["GraphiteReporter", "LogReporter", "OpenTelemetryReporter", "StatsDReporter"]

_LOG = logging.getLogger("penstock.metrics")
_DATAGRAM = 1432
_SECONDS = 5.0
Name = Callable[[Sample], str]


class StatsDReporter:
    """Sends gauges in UDP datagrams with as many lines as fit."""

    def __init__(self, options: Mapping[str, str], name: Name) -> None:
        self._address = (options.get("host", "localhost"), int(options.get("port", "8125")))
        self._name = name
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def report(self, samples: list[Sample]) -> None:
        """Send all values. A leading minus means "subtract" in StatsD, so a negative gauge is set to 0 first."""
        datagram = b""
        for sample in samples:
            name = self._name(sample).replace(":", "-").replace("|", "-")
            line = f"{name}:0|g\n" if sample.value < 0 else ""
            encoded = f"{line}{name}:{_plain(sample.value)}|g\n".encode()
            if len(datagram) + len(encoded) > _DATAGRAM and datagram:
                self._socket.sendto(datagram.rstrip(b"\n"), self._address)
                datagram = b""
            datagram += encoded
        if datagram:
            self._socket.sendto(datagram.rstrip(b"\n"), self._address)

    def close(self) -> None:
        """Release the socket."""
        self._socket.close()


class GraphiteReporter:
    """Uses Graphite's plaintext protocol over TCP, with one connection per report."""

    def __init__(self, options: Mapping[str, str], name: Name) -> None:
        self._address = (options.get("host", "localhost"), int(options.get("port", "2003")))
        self._name = name

    def report(self, samples: list[Sample]) -> None:
        """Send all values with the current time."""
        now = int(time.time())
        lines = "".join(f"{self._name(sample)} {_plain(sample.value)} {now}\n" for sample in samples)
        with socket.create_connection(self._address, timeout=_SECONDS) as connection:
            connection.sendall(lines.encode())

    def close(self) -> None:
        """Do nothing: no connection stays open."""


class LogReporter:
    """Writes one block to the log for each report."""

    def __init__(self, options: Mapping[str, str], name: Name) -> None:
        self._name = name

    def report(self, samples: list[Sample]) -> None:
        """Log all values."""
        block = "\n".join(f"{self._name(sample)}: {_plain(sample.value)}" for sample in samples)
        _LOG.info("metrics\n%s", block)

    def close(self) -> None:
        """Do nothing: no connection stays open."""


class OpenTelemetryReporter:
    """Uses OTLP over HTTP as JSON, which all collectors accept, without another package."""

    def __init__(self, options: Mapping[str, str]) -> None:
        endpoint = options.get("exporter.endpoint", "http://localhost:4318").rstrip("/")
        self._url = endpoint if endpoint.endswith("/v1/metrics") else f"{endpoint}/v1/metrics"
        self._service = options.get("service.name", "penstock")

    def report(self, samples: list[Sample]) -> None:
        """Send all values as gauges."""
        now = str(time.time_ns())
        points: dict[str, list[dict[str, object]]] = {}
        for sample in samples:
            point = {
                "timeUnixNano": now,
                "asDouble": sample.value,
                "attributes": [_attribute(key, value) for key, value in sample.variables.items()],
            }
            points.setdefault(f"flink.{sample.scope.replace('_', '.')}.{sample.name}", []).append(point)
        metrics = [{"name": name, "gauge": {"dataPoints": found}} for name, found in points.items()]
        scope = {"scope": {"name": "penstock"}, "metrics": metrics}
        resource = {"attributes": [_attribute("service.name", self._service)]}
        body = json.dumps({"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}).encode()
        request = urllib.request.Request(  # noqa: S310 - the address is the user's setting
            self._url, body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
            pass

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def _attribute(key: str, value: str) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


def _plain(value: float) -> str:
    """Format a number, if possible without an exponent: 1000000.0 is 1000000."""
    return str(int(value)) if value.is_integer() else repr(value)
