"""The reporters of `metrics.reporters` and their threads. A reporter never delays or fails a job."""

from __future__ import annotations

import fnmatch
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.cluster.reporters.prometheus import CONTENT_TYPE, PushGatewayReporter, exposition
from penstock.cluster.reporters.samples import DEFAULT_SCOPES, Sample, identifier
from penstock.cluster.reporters.senders import GraphiteReporter, LogReporter, OpenTelemetryReporter, StatsDReporter
from penstock.cluster.rest_server import RestServer
from penstock.common.errors import InvalidProgramError
from penstock.common.time import parse_duration

__all__ = ["Reporter", "Reporting"]

_LOG = logging.getLogger(__name__)
_COMPLAIN_SECONDS = 60.0
_SCOPE_KEYS = {
    "jobmanager": ("jm",),
    "jobmanager_job": ("jm-job", "jm.job"),
    "taskmanager": ("tm",),
    "taskmanager_job_task": ("task",),
    "taskmanager_job_task_operator": ("operator",),
}
Collect = Callable[[], list[Sample]]
Name = Callable[[Sample], str]


class Reporter(Protocol):
    """Sends samples to another system. Both methods may raise errors."""

    def report(self, samples: list[Sample]) -> None:
        """Send these values."""

    def close(self) -> None:
        """Close the reporter when the driver ends."""


class Reporting:
    """All reporters of a driver."""

    def __init__(self, settings: Mapping[str, str], collect: Collect) -> None:
        self._settings = settings
        self._collect = collect
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self.servers: list[RestServer] = []
        chosen = [name.strip() for name in settings.get("metrics.reporters", "").split(",") if name.strip()]
        made = [(name, self._options(name)) for name in chosen]
        kinds = [(name, options, _kind(name, options)) for name, options in made]  # check all before one starts
        for name, options, kind in kinds:
            self._start(name, options, kind)

    def _options(self, name: str) -> dict[str, str]:
        prefix = f"metrics.reporter.{name}."
        return {key[len(prefix) :]: value for key, value in self._settings.items() if key.startswith(prefix)}

    def _start(self, name: str, options: dict[str, str], kind: str) -> None:
        try:
            if kind == "prometheus":
                self.servers.append(self._serve(options))
                return
            reporter = _make(kind, options, self._naming(options))
        except Exception:
            _LOG.exception("the metrics reporter %s could not be started: the job runs without it", name)
            return
        seconds = parse_duration(options.get("interval", "10 s")).to_milliseconds() / 1000
        thread = threading.Thread(
            target=self._run, args=(name, reporter, options, seconds), name=f"penstock-metrics-{name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _serve(self, options: dict[str, str]) -> RestServer:
        prefix = options.get("prefix", "flink")
        filtering = options.get("filterLabelValueCharacters", "true").lower() == "true"

        def scrape(request: Request) -> Response:
            samples = _filtered(self._collect(), options)
            return Response(exposition(samples, prefix, filter_values=filtering), media_type=CONTENT_TYPE)

        app = Starlette(routes=[Route("/metrics", scrape), Route("/", scrape)])
        return RestServer.on_port(app, options.get("host", "127.0.0.1"), options.get("port", "9249"))

    def _naming(self, options: dict[str, str]) -> Name:
        formats = dict(DEFAULT_SCOPES)
        for scope, keys in _SCOPE_KEYS.items():
            for key in keys:
                formats[scope] = self._settings.get(f"metrics.scope.{key}", formats[scope])
        delimiter = options.get("scope.delimiter", self._settings.get("metrics.scope.delimiter", "."))
        return lambda sample: identifier(sample, formats, delimiter)

    def _run(self, name: str, reporter: Reporter, options: dict[str, str], seconds: float) -> None:
        complained = -_COMPLAIN_SECONDS
        while not self._ended.wait(seconds):
            complained = self._try(name, lambda: reporter.report(_filtered(self._collect(), options)), complained)
        self._try(name, reporter.close, complained)

    @staticmethod
    def _try(name: str, act: Callable[[], None], complained: float) -> float:
        try:
            act()
        except Exception as error:
            if time.monotonic() - complained >= _COMPLAIN_SECONDS:
                _LOG.warning("the metrics reporter %s could not send: %s", name, error)
                return time.monotonic()
        return complained

    def close(self) -> None:
        """Close all reporters."""
        self._ended.set()
        for server in self.servers:
            server.close()
        for thread in self._threads:
            thread.join(2.0)


_KINDS = {
    "prometheus": "prometheus", "prom": "prometheus", "prometheusreporterfactory": "prometheus",
    "prometheusreporter": "prometheus",
    "pushgateway": "pushgateway", "prometheuspushgatewayreporterfactory": "pushgateway",
    "prometheuspushgatewayreporter": "pushgateway",
    "statsd": "statsd", "statsdreporterfactory": "statsd", "statsdreporter": "statsd",
    "graphite": "graphite", "graphitereporterfactory": "graphite", "graphitereporter": "graphite",
    "log": "log", "slf4j": "log", "slf4jreporterfactory": "log", "slf4jreporter": "log",
    "otel": "otel", "opentelemetrymetricreporterfactory": "otel",
}  # fmt: skip


def _kind(name: str, options: Mapping[str, str]) -> str:
    """Return the kind of a reporter, by our name or by the last part of Flink's Java class name."""
    chosen = options.get("factory.class") or options.get("class") or name
    kind = _KINDS.get(chosen.rpartition(".")[2].lower())
    if kind is None:
        known = ", ".join(sorted(set(_KINDS.values())))
        raise InvalidProgramError(
            f"metrics.reporters: there is no reporter '{chosen}'; set metrics.reporter.{name}.factory.class to one "
            f"of {known}, or to the class of Flink's reporter"
        )
    return kind


def _make(kind: str, options: Mapping[str, str], naming: Name) -> Reporter:
    if kind == "pushgateway":
        return PushGatewayReporter(options)
    if kind == "otel":
        return OpenTelemetryReporter(options)
    if kind == "statsd":
        return StatsDReporter(options, naming)
    return GraphiteReporter(options, naming) if kind == "graphite" else LogReporter(options, naming)


def _filtered(samples: list[Sample], options: Mapping[str, str]) -> list[Sample]:
    """Apply `filter.includes` and `filter.excludes`: `scope:name:type` with `*` and commas, separated by `;`."""
    includes = _patterns(options.get("filter.includes", "*:*:*"))
    excludes = _patterns(options.get("filter.excludes", ""))
    hidden = set(options.get("scope.variables.excludes", "").split(";")) - {""}
    added = dict(pair.split(":", 1) for pair in options.get("scope.variables.additional", "").split(",") if ":" in pair)
    kept = [sample for sample in samples if _matches(sample, includes) and not _matches(sample, excludes)]
    if not hidden and not added:
        return kept
    return [
        Sample(s.scope, s.name, s.value, {**{k: v for k, v in s.variables.items() if k not in hidden}, **added})
        for s in kept
    ]


def _patterns(text: str) -> list[tuple[list[str], list[str]]]:
    found = []
    for pattern in filter(None, text.split(";")):
        scopes, _, rest = pattern.partition(":")
        names = rest.partition(":")[0] or "*"
        found.append((scopes.replace(".", "_").split(","), names.split(",")))
    return found


def _matches(sample: Sample, patterns: list[tuple[list[str], list[str]]]) -> bool:
    return any(
        any(fnmatch.fnmatchcase(sample.scope, scope) for scope in scopes)
        and any(fnmatch.fnmatchcase(sample.name, name) for name in names)
        for scopes, names in patterns
    )
