"""One address for all jobs of this machine, whichever process drives them.

Each driver process serves the REST API for its own jobs on a Unix socket. The gateway finds them by the records that
drivers leave, merges their lists, and passes requests about one job on to the driver that runs it. It runs no user
code and no Spark: a driver that is busy or gone costs the others nothing, and the gateway may restart at any time.

It imports one module per group of paths.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.archive import archived_answer, archived_operation
from penstock.cluster.dashboard_files import dashboard_routes
from penstock.cluster.driver_link import DriverAnswer, DriverGoneError, ask_driver
from penstock.cluster.driver_snapshots import DriverSnapshots
from penstock.cluster.log_tail import read_tail
from penstock.cluster.monitored_job import now_ms
from penstock.cluster.redaction import redact_text
from penstock.cluster.reporters.prometheus import CONTENT_TYPE, exposition
from penstock.cluster.reporters.samples import Sample
from penstock.cluster.rest import metrics, overview, state_browser
from penstock.cluster.rest.app import http_error
from penstock.cluster.rest.authentication import Guard, TokenFile
from penstock.cluster.rest.disposal import disposal_routes
from penstock.cluster.rest.jobs import TASK_STATES, Json
from penstock.cluster.rest.operations import OperationStore
from penstock.cluster.rest.process_files import LogFiles, process_metrics
from penstock.cluster.rest.responses import RestError, error_response, json_response, parse_id, server_error
from penstock.cluster.rest.security import BrowserGuard

__all__ = ["DriverRecord", "DriverRecords", "create_gateway"]

_LIST_SECONDS = 2.0
_FORWARD_SECONDS = 40.0  # a driver may wait for a batch to be committed before it answers
_LAST_RESULT_SECONDS = 5.0
_METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE"]
_TERMINAL = {"FINISHED", "CANCELED", "FAILED"}


class DriverRecord(Protocol):
    """The facts about a job that are known outside its process."""

    job_id: str
    name: str
    status: str
    started: float
    ended: float | None
    error: str | None
    rest: str | None
    machine: str | None
    log: str | None

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""


class DriverRecords(Protocol):
    """Where drivers leave their records."""

    @property
    def archive(self) -> Path:
        """The directory of what is kept of ended jobs."""

    def all(self) -> list[Any]:
        """Every job that is known, the newest last."""


@dataclass(slots=True)
class _Gateway:
    records: DriverRecords
    settings: dict[str, str]
    snapshots: DriverSnapshots = field(default_factory=DriverSnapshots)

    def overviews(self, *, first: float = _LIST_SECONDS) -> list[Json]:
        """`GET /jobs/overview` of all drivers together; `first`: how long to wait for drivers not heard of yet."""
        records = self.records.all()
        answers = self.snapshots.ask(_addresses(records), "/jobs/overview", first=first)
        known = {job["jid"]: job for answer in answers.values() for job in answer["jobs"]}
        return [
            _recorded_overview(record) if record.is_over else known.get(record.job_id) or _recorded_overview(record)
            for record in records
        ]

    def workers(self, *, first: float = _LIST_SECONDS) -> list[Json]:
        """The workers of all drivers."""
        answers = self.snapshots.ask(self.driver_addresses(), "/taskmanagers", first=first)
        return list({worker["id"]: worker for each in answers.values() for worker in each["taskmanagers"]}.values())

    def driver_addresses(self) -> set[str]:
        """The sockets of all drivers that run."""
        return _addresses(self.records.all())

    def job_that_depends_on(self, savepoint: str) -> str | None:
        """The running job that was restored from this savepoint and has completed no checkpoint since."""
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
        """Return the record that a job's driver has left."""
        for record in self.records.all():
            if record.job_id == job_id:
                found: DriverRecord = record
                return found
        raise RestError(404, f"Job {job_id} not found")


def _addresses(records: Iterable[DriverRecord]) -> set[str]:
    return {record.rest for record in records if not record.is_over and record.rest}


def _recorded_overview(record: DriverRecord) -> Json:
    """A job whose driver does not answer, as its record has it; a job that was lost has failed."""
    started = int(record.started * 1000)
    # A process that was killed could not write down when: a job that is over must have an end all the same.
    ended = int(record.ended * 1000) if record.ended is not None else started if record.is_over else -1
    state = "FAILED" if record.status == "LOST" else record.status
    return {
        "jid": record.job_id,
        "name": record.name,
        "jobType": "STREAMING",
        "schedulerType": None,
        "start-time": started,
        "end-time": ended,
        "duration": max(0, ended - started),
        "state": state,
        "last-modification": max(started, ended),
        "tasks": {"total": 0, **{name.lower(): 0 for name in TASK_STATES}},
        "pending-operators": 0,
    }


def create_gateway(
    records: DriverRecords,
    settings: dict[str, str] | None = None,
    *,
    extra_routes: Iterable[BaseRoute] = (),
    logs: LogFiles | None = None,
    tokens: TokenFile | None = None,
    allowed_hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"}),
) -> Starlette:
    """The ASGI application over all drivers of this machine."""
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
        for rest in ("", "/{rest:path}"):
            routes.append(Route(f"{prefix}/taskmanagers/{{worker_id}}{rest}", _asking_worker(gateway)))
        routes.append(Route(f"{prefix}/penstock/jobs/{{job_id}}/log", _log_of_job(gateway)))
        for kind in ("jobs", "applications", "penstock/jobs"):
            for rest in ("", "/{rest:path}"):
                routes.append(Route(f"{prefix}/{kind}/{{job_id}}{rest}", _forwarding(gateway), methods=_METHODS))
    routes += disposal_routes(OperationStore(), gateway.job_that_depends_on)
    return Starlette(
        routes=[*routes, *extra_routes, *dashboard_routes()],
        middleware=[Middleware(BrowserGuard, allowed_hosts=allowed_hosts), Middleware(Guard, tokens=tokens)],
        exception_handlers={RestError: error_response, HTTPException: http_error, Exception: server_error},
    )


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
    """About the process of the service."""
    return [
        ("/jobmanager/metrics", lambda r: metrics.metric_list(_service_metrics(gateway), r.query_params.get("get"))),
        ("/jobmanager/logs", lambda _: logs.listing()),
        ("/jobmanager/logs/{name}", lambda request: logs.read(request.path_params["name"])),
        ("/jobmanager/log", lambda _: logs.newest()),
        ("/jobmanager/stdout", lambda _: logs.newest()),
        ("/metrics", lambda _: _exposition(gateway)),
        ("/jobs/metrics", lambda request: _job_aggregates(gateway, request)),
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
    """`GET /metrics`: the metrics of all jobs for Prometheus."""
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
    """`GET /jobs/metrics`: over the jobs of all drivers."""
    query = request.query_params
    chosen = query.get("jobs")
    members: list[Mapping[str, Any]] = []
    for record in gateway.records.all():
        if record.is_over or record.rest is None or (chosen is not None and record.job_id not in chosen.split(",")):
            continue
        try:
            path = f"/jobs/{record.job_id}/metrics"
            names = [metric["id"] for metric in ask_driver(record.rest, "GET", path, timeout=_LIST_SECONDS).json()]
            path += f"?get={','.join(names)}"
            values = ask_driver(record.rest, "GET", path, timeout=_LIST_SECONDS).json()
        except (DriverGoneError, ValueError, TypeError):
            continue
        members.append({metric["id"]: metrics.metric_from_text(metric["value"]) for metric in values})
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


async def _healthy(request: Request) -> Response:
    return json_response({"status": "ok"})


def _asking_worker(gateway: _Gateway) -> Callable[[Request], Any]:
    """Workers belong to drivers: the one that knows the worker answers."""

    def ask(request: Request) -> Response:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
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


def _passed_on(answer: DriverAnswer) -> Response:
    media_type = {name.lower(): value for name, value in answer.headers.items()}.get("content-type")
    return Response(answer.body, answer.status, media_type=media_type)


def _forward(gateway: _Gateway, request: Request, body: bytes) -> Response:
    job_id = parse_id(request.path_params["job_id"], "jobid")
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    passed = {name: value for name, value in request.headers.items() if name in {"content-type", "sec-fetch-site"}}
    record = gateway.record_of(job_id)
    if record.is_over or record.rest is None:
        return _answer_about_ended(gateway, record, request)
    try:
        answer: DriverAnswer = ask_driver(
            record.rest, request.method, target, body=body, headers=passed, timeout=_FORWARD_SECONDS
        )
    except DriverGoneError as error:
        raise RestError(503, f"The driver of job {job_id} does not answer: {error}") from error
    return _passed_on(answer)


def _answer_about_ended(gateway: _Gateway, record: DriverRecord, request: Request) -> Response:
    """A job whose driver has ended: what its archive says, or its record if the driver was killed."""
    if request.method == "GET":
        path = request.url.path.removeprefix("/v1")
        found = archived_answer(gateway.records.archive, record.job_id, path, request.query_params.get("get"))
        if found is None:
            rest = request.path_params.get("rest", "")
            found = archived_operation(gateway.records.archive, record.job_id, rest)
            # The record is written when the job ends, the result of its last operation a moment later.
            just_ended = record.ended is not None and time.time() - record.ended < _LAST_RESULT_SECONDS
            if found is None and just_ended and rest.startswith(("savepoints/", "rescaling/")):
                found = {"status": {"id": "IN_PROGRESS"}, "operation": None}
        if found is not None:
            return json_response(found)
    return _answer_from_record(record, request)


def _answer_from_record(record: DriverRecord, request: Request) -> Response:
    """Answer for a job whose driver was killed; its tasks and metrics are gone."""
    known = _recorded_overview(record)
    match request.method, request.path_params.get("rest", ""):
        case "GET", "":
            details = {key: known[key] for key in ("jid", "name", "state", "start-time", "end-time", "duration")}
            job_type = {"job-type": known["jobType"], "isStoppable": False, "maxParallelism": -1, "now": now_ms()}
            plan = {"jid": record.job_id, "name": record.name, "type": known["jobType"], "nodes": []}
            empty = {"timestamps": {known["state"]: known["end-time"]}, "vertices": [], "status-counts": {}}
            return json_response({**details, **job_type, **empty, "pending-operators": 0, "plan": plan})
        case "GET", "status":
            return json_response({"status": known["state"]})
        case "GET", "exceptions":
            entries = [] if record.error is None else [_recorded_exception(record.error, known["end-time"])]
            return json_response({"exceptionHistory": {"entries": entries, "truncated": False}})
        case "GET", _:
            raise RestError(404, f"Job {record.job_id} has ended, and nothing is kept about this")
    raise RestError(409, f"Job {record.job_id} has ended: it is {known['state']}")


def _recorded_exception(message: str, time_ms: int) -> Json:
    return {
        "exceptionName": "penstock.common.errors.PenstockError",
        "stacktrace": redact_text(message),
        "timestamp": time_ms,
        "failureLabels": {},
        "concurrentExceptions": [],
    }


def _overview(gateway: _Gateway) -> Json:
    """Counts of a job that has just started come from its record: its driver may be busy for seconds."""
    states = [job["state"] for job in gateway.overviews(first=0.0)]
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
