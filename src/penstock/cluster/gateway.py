"""One address for all jobs of this machine, independent of their driver processes.

Each driver process serves the REST API for its own jobs on a Unix socket. The gateway finds the drivers by their
records, merges their lists, and forwards requests about one job to its driver. It runs no user code and no Spark. A
busy or dead driver does not affect others, and the gateway may restart at any time.

This module imports one module for each group of paths.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.archive import ArchivedOverviews, archived_answer, archived_operation
from penstock.cluster.dashboard_files import dashboard_routes
from penstock.cluster.driver_link import DriverAnswer, DriverGoneError, ask_driver
from penstock.cluster.driver_snapshots import DriverSnapshots
from penstock.cluster.log_tail import read_tail
from penstock.cluster.recorded_job import DriverRecord, recorded_answer, recorded_overview
from penstock.cluster.reporters.prometheus import CONTENT_TYPE, exposition
from penstock.cluster.reporters.samples import Sample
from penstock.cluster.rest import metrics, overview, state_browser
from penstock.cluster.rest.app import http_error
from penstock.cluster.rest.authentication import Guard, TokenFile
from penstock.cluster.rest.disposal import disposal_routes
from penstock.cluster.rest.job_control import check_switches
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.operations import OperationStore
from penstock.cluster.rest.process_files import LogFiles, process_metrics
from penstock.cluster.rest.responses import RestError, error_response, json_response, parse_id, server_error
from penstock.cluster.rest.security import MOST_BYTES, BrowserGuard
from penstock.cluster.rest.trimmed_paths import TrimmedPaths
from penstock.common.errors import InvalidProgramError

__all__ = ["DriverRecord", "DriverRecords", "create_gateway"]

_LIST_SECONDS = 2.0
_FORWARD_SECONDS = 40.0  # a driver may wait for a batch commit before it responds
_LAST_RESULT_SECONDS = 5.0
_METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE"]
_TERMINAL = {"FINISHED", "CANCELED", "FAILED"}


class DriverRecords(Protocol):
    """The store of the drivers' records."""

    @property
    def archive(self) -> Path:
        """The directory of archives of ended jobs."""

    def all(self) -> list[Any]:
        """Return all known jobs, the newest last."""


@dataclass(slots=True)
class _Gateway:
    records: DriverRecords
    settings: dict[str, str]
    snapshots: DriverSnapshots = field(default_factory=DriverSnapshots)
    ended: ArchivedOverviews = field(default_factory=ArchivedOverviews)

    def overviews(self) -> list[Json]:
        """Return `GET /jobs/overview` of all drivers and of ended jobs."""
        records = self.records.all()
        running = self._running(records, _LIST_SECONDS)
        return [self._ended(record) if record.is_over else _overview_in(running, record) for record in records]

    def states(self) -> list[str]:
        """Return the states of all jobs. Use the record of a driver that has not responded yet."""
        records = self.records.all()
        running = self._running(records, 0.0)
        known = (recorded_overview(record) if record.is_over else _overview_in(running, record) for record in records)
        return [job["state"] for job in known]

    def _running(self, records: list[DriverRecord], first: float) -> dict[str, Json]:
        """Return the running jobs. `first` is how long to wait for drivers without a previous response."""
        answers = self.snapshots.ask(_addresses(records), "/jobs/overview", first=first)
        return {job["jid"]: job for answer in answers.values() for job in answer["jobs"]}

    def _ended(self, record: DriverRecord) -> Json:
        """Return an ended job, with the counts of its tasks if there is an archive."""
        recorded = recorded_overview(record)
        archived = self.ended.find(self.records.archive, record.job_id)
        return archived if archived is not None and archived["state"] == recorded["state"] else recorded

    def workers(self, *, first: float = _LIST_SECONDS) -> list[Json]:
        """Return the workers of all drivers."""
        answers = self.snapshots.ask(self.driver_addresses(), "/taskmanagers", first=first)
        return list({worker["id"]: worker for each in answers.values() for worker in each["taskmanagers"]}.values())

    def drivers_of_workers(self) -> dict[str, str]:
        """Return, for each worker, the socket of a driver that has it."""
        answers = self.snapshots.ask(self.driver_addresses(), "/taskmanagers")
        return {worker["id"]: address for address, each in answers.items() for worker in each["taskmanagers"]}

    def driver_addresses(self) -> set[str]:
        """Return the sockets of all running drivers."""
        return _addresses(self.records.all())

    def job_that_depends_on(self, savepoint: str) -> str | None:
        """Return the running job that was restored from this savepoint and has no checkpoint since."""
        for record in self.records.all():
            if record.is_over or record.rest is None:
                continue
            try:
                path = f"/jobs/{record.job_id}/checkpoints"
                latest = ask_driver(record.rest, "GET", path, timeout=_LIST_SECONDS).json()["latest"]
            except (DriverGoneError, ValueError, KeyError):
                continue
            restored = latest["restored"]
            if restored is not None and restored["external_path"] == savepoint and latest["completed"] is None:
                job_id: str = record.job_id
                return job_id
        return None

    def record_of(self, job_id: str) -> DriverRecord:
        """Return the record of a job's driver."""
        for record in self.records.all():
            if record.job_id == job_id:
                found: DriverRecord = record
                return found
        raise RestError(404, f"Job {job_id} not found")


def _overview_in(running: dict[str, Json], record: DriverRecord) -> Json:
    return running.get(record.job_id) or recorded_overview(record)


def _addresses(records: Iterable[DriverRecord]) -> set[str]:
    return {record.rest for record in records if not record.is_over and record.rest}


def create_gateway(
    records: DriverRecords,
    settings: dict[str, str] | None = None,
    *,
    extra_routes: Iterable[BaseRoute] = (),
    logs: LogFiles | None = None,
    tokens: TokenFile | None = None,
    allowed_hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"}),
) -> Starlette:
    """Create the ASGI application for all drivers of this machine."""
    gateway = _Gateway(records, settings or {})
    lists: dict[str, Callable[[_Gateway], Any]] = {
        "/overview": _overview,
        "/config": _config,
        "/jobs": lambda g: {"jobs": [{"id": job["jid"], "status": job["state"]} for job in g.overviews()]},
        "/jobs/overview": lambda g: {"jobs": g.overviews()},
        "/applications/overview": lambda g: {"applications": [overview.application_of(job) for job in g.overviews()]},
        "/taskmanagers": lambda g: {"taskmanagers": g.workers()},
        "/jobmanager/config": lambda g: overview.job_manager_config(g.settings),
        "/jobmanager/environment": lambda _: overview.environment({}),
        "/jobmanager/thread-dump": lambda _: overview.thread_dump(),
        "/jobmanager/profiler": lambda _: {"profilingList": []},
        "/datasets": lambda _: {"dataSets": []},
    }
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        routes += [Route(prefix + path, _listing(build, gateway)) for path, build in lists.items()]
        routes += [Route(prefix + path, _own(answer)) for path, answer in _own_answers(gateway, logs or LogFiles())]
        routes += [Route(f"{prefix}/health/{kind}", _healthy) for kind in ("live", "ready")]
        routes.append(Route(f"{prefix}/jobs/{{job_id}}/jobmanager/log-url", _log_url(gateway)))
        routes.append(Route(f"{prefix}/jobs/{{job_id}}/taskmanagers/{{worker_id}}/log-url", _log_url(gateway)))
        for rest in ("", "/{rest:path}"):
            routes.append(Route(f"{prefix}/taskmanagers/{{worker_id}}{rest}", _asking_worker(gateway)))
        routes.append(Route(f"{prefix}/penstock/jobs/{{job_id}}/log", _log_of_job(gateway)))
        for kind in ("jobs", "applications", "penstock/jobs"):
            for rest in ("", "/{rest:path}"):
                routes.append(Route(f"{prefix}/{kind}/{{job_id}}{rest}", _forwarding(gateway), methods=_METHODS))
    routes += disposal_routes(OperationStore(), gateway.job_that_depends_on)
    return Starlette(
        routes=[*routes, *extra_routes, *dashboard_routes()],
        middleware=[
            Middleware(TrimmedPaths),
            Middleware(BrowserGuard, allowed_hosts=allowed_hosts, most_bytes=_most_bytes(gateway.settings)),
            Middleware(Guard, tokens=tokens),
        ],
        exception_handlers={RestError: error_response, HTTPException: http_error, Exception: server_error},
    )


def _most_bytes(settings: Mapping[str, str]) -> int:
    text = settings.get("rest.server.max-content-length", str(MOST_BYTES)).strip()
    if not text.isdigit():
        raise InvalidProgramError(f"rest.server.max-content-length must be a number of bytes, not '{text}'")
    return int(text)


def _listing(build: Callable[[_Gateway], Any], gateway: _Gateway) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        return json_response(await run_in_threadpool(build, gateway))

    return respond


def _forwarding(gateway: _Gateway) -> Callable[[Request], Any]:
    async def forward(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_forward, gateway, request, body)

    return forward


_Answer = Callable[[Request], Any]


def _own_answers(gateway: _Gateway, logs: LogFiles) -> list[tuple[str, _Answer]]:
    """Return the responses about the process of the service."""
    return [
        ("/jobmanager/metrics", lambda r: metrics.metric_list(_service_metrics(gateway), r.query_params.get("get"))),
        ("/jobmanager/logs", lambda _: logs.listing()),
        ("/jobmanager/logs/{name}", lambda request: logs.read(request.path_params["name"])),
        ("/jobmanager/log", lambda _: logs.newest()),
        ("/jobmanager/stdout", lambda _: logs.newest()),
        ("/metrics", lambda _: _exposition(gateway)),
        ("/jobs/metrics", lambda request: _job_aggregates(gateway, request)),
        ("/taskmanagers/metrics", lambda request: _worker_aggregates(gateway, request)),
        ("/penstock/savepoint", lambda request: state_browser.savepoint_contents(request.query_params.get("path"))),
    ]


def _own(answer: _Answer) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        found = await run_in_threadpool(answer, request)
        return found if isinstance(found, Response) else json_response(found)

    return respond


def _log_of_job(gateway: _Gateway) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        record = await run_in_threadpool(gateway.record_of, parse_id(request.path_params["job_id"], "jobid"))
        wanted = request.query_params.get("search", "")
        return json_response(await run_in_threadpool(read_tail, record.log, wanted))

    return respond


def _log_url(gateway: _Gateway) -> Callable[[Request], Any]:
    """Return the URL of the log page of a job. Its driver and its workers write one log."""

    async def respond(request: Request) -> Response:
        record = await run_in_threadpool(gateway.record_of, parse_id(request.path_params["job_id"], "jobid"))
        return json_response({"url": f"{request.base_url}#/jobs/{record.job_id}/log"})

    return respond


def _service_metrics(gateway: _Gateway) -> dict[str, Any]:
    found = _overview(gateway)
    return {
        **process_metrics(),
        "numRegisteredTaskManagers": found["taskmanagers"],
        "numRunningJobs": found["jobs-running"],
        "taskSlotsTotal": found["slots-total"],
        "taskSlotsAvailable": found["slots-available"],
    }


def _exposition(gateway: _Gateway) -> Response:
    """Respond to `GET /metrics` with the metrics of all jobs for Prometheus."""
    samples: list[Sample] = []
    for address in gateway.driver_addresses():
        try:
            found = ask_driver(address, "GET", "/penstock/samples", timeout=_LIST_SECONDS).json()
        except (DriverGoneError, ValueError):
            continue
        samples += [Sample(*values) for values in found]
    of_service = {"host": socket.gethostname()}
    for name, value in _service_metrics(gateway).items():
        samples.append(Sample("jobmanager", name, float(value), of_service))
    prefix = gateway.settings.get("metrics.reporter.prom.prefix", "flink")
    return Response(exposition(samples, prefix), media_type=CONTENT_TYPE)


def _job_aggregates(gateway: _Gateway, request: Request) -> list[Json]:
    """Respond to `GET /jobs/metrics` for the jobs of all drivers."""
    query = request.query_params
    chosen = query.get("jobs")
    members: list[Mapping[str, Any]] = []
    for record in gateway.records.all():
        if record.is_over or record.rest is None or (chosen is not None and record.job_id not in chosen.split(",")):
            continue
        members.append(_metrics_of(record.rest, f"/jobs/{record.job_id}/metrics"))
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


def _worker_aggregates(gateway: _Gateway, request: Request) -> list[Json]:
    """Respond to `GET /taskmanagers/metrics` for the workers of all drivers."""
    query = request.query_params
    chosen = query.get("taskmanagers")
    members: list[Mapping[str, Any]] = [
        _metrics_of(address, f"/taskmanagers/{quote(worker_id)}/metrics")
        for worker_id, address in gateway.drivers_of_workers().items()
        if chosen is None or worker_id in chosen.split(",")
    ]
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


def _metrics_of(address: str, path: str) -> dict[str, Any]:
    """Return names and values, which are empty for a driver that does not respond."""
    try:
        names = [metric["id"] for metric in ask_driver(address, "GET", path, timeout=_LIST_SECONDS).json()]
        path += f"?get={','.join(names)}"
        values = ask_driver(address, "GET", path, timeout=_LIST_SECONDS).json()
    except (DriverGoneError, ValueError, TypeError):
        return {}
    return {metric["id"]: metrics.metric_from_text(metric["value"]) for metric in values}


async def _healthy(request: Request) -> Response:
    return json_response({"status": "ok"})


def _asking_worker(gateway: _Gateway) -> Callable[[Request], Any]:
    """Forward requests about a worker to the driver that has it."""

    def ask(request: Request) -> Response:
        target = _target(request)
        for address in gateway.driver_addresses():
            try:
                answer = ask_driver(address, "GET", target, timeout=_LIST_SECONDS)
            except DriverGoneError:
                continue
            if answer.status != 404:
                return _passed_on(answer)
        raise RestError(404, f"Could not find TaskExecutor {request.path_params['worker_id']}")

    async def respond(request: Request) -> Response:
        return await run_in_threadpool(ask, request)

    return respond


def _target(request: Request) -> str:
    path = quote(request.scope["path"])  # `request.url` escapes some characters itself, depending on its version
    return f"{path}?{request.url.query}" if request.url.query else path


def _passed_on(answer: DriverAnswer) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    kept: dict[str, str] = {name: headers[name] for name in ("warning", "retry-after") if name in headers}
    return Response(answer.body, answer.status, kept, media_type=headers.get("content-type"))


def _forward(gateway: _Gateway, request: Request, body: bytes) -> Response:
    job_id = parse_id(request.path_params["job_id"], "jobid")
    check_switches(request.method, request.scope["path"], gateway.settings)
    target = _target(request)
    passed = {name: value for name, value in request.headers.items() if name in {"content-type", "sec-fetch-site"}}
    record = gateway.record_of(job_id)
    if record.is_over or record.rest is None:
        return _answer_without_driver(gateway, record, request)
    try:
        answer: DriverAnswer = ask_driver(
            record.rest, request.method, target, body=body, headers=passed, timeout=_FORWARD_SECONDS
        )
    except DriverGoneError as error:
        raise RestError(503, f"The driver of job {job_id} does not answer: {error}") from error
    return _passed_on(answer)


def _answer_without_driver(gateway: _Gateway, record: DriverRecord, request: Request) -> Response:
    """Respond from the archive of an ended job, or from its record if the driver was killed or serves nothing."""
    if request.method == "GET":
        path = request.scope["path"].removeprefix("/v1").replace(request.path_params["job_id"], record.job_id)
        found = archived_answer(gateway.records.archive, record.job_id, path, request.query_params)
        if found is None:
            rest = request.path_params.get("rest", "")
            found = archived_operation(gateway.records.archive, record.job_id, rest)
            # The record is written when the job ends, the result of its last operation a moment later.
            just_ended = record.ended is not None and time.time() - record.ended < _LAST_RESULT_SECONDS
            if found is None and just_ended and rest.startswith(("savepoints/", "rescaling/")):
                found = {"status": {"id": "IN_PROGRESS"}, "operation": None}
        return json_response(recorded_answer(record, path) if found is None else found)
    if record.is_over:
        raise RestError(409, f"Job {record.job_id} has ended: it is {recorded_overview(record)['state']}")
    raise RestError(409, f"The process of job {record.job_id} serves no REST API: install penstock[service] for it")


def _overview(gateway: _Gateway) -> Json:
    """Return the counts of jobs. A new job counts by its record, since its driver may be busy for seconds."""
    states = gateway.states()
    workers = gateway.workers(first=0.0)
    return {
        "taskmanagers": len(workers),
        "slots-total": sum(worker["slotsNumber"] for worker in workers),
        "slots-available": sum(worker["freeSlots"] for worker in workers),
        "jobs-running": sum(state not in _TERMINAL for state in states),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": overview.FLINK_VERSION,
        "flink-commit": overview.COMMIT,
        "penstock-version": overview.PENSTOCK_VERSION,
    }


def _config(gateway: _Gateway) -> Json:
    def switch(key: str, default: str) -> bool:
        return gateway.settings.get(key, default).strip().lower() == "true"

    return overview.config(
        submit=switch("web.submit.enable", "false"),
        cancel=switch("web.cancel.enable", "true"),
        rescale=switch("web.rescale.enable", "true"),
    )
