"""The REST application: all paths of Flink's API, with and without `/v1`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.monitored_job import MonitoredJob, now_ms
from penstock.cluster.reporters.samples import collect
from penstock.cluster.rest import (
    checkpoints,
    job_control,
    jobs,
    live,
    metrics,
    overview,
    rescales,
    state_browser,
    task_managers,
    vertices,
)
from penstock.cluster.rest.disposal import disposal_routes
from penstock.cluster.rest.operations import OperationStore
from penstock.cluster.rest.process_files import LogFiles, process_metrics
from penstock.cluster.rest.responses import (
    RestError,
    bad_parameter,
    error_response,
    json_response,
    parse_id,
    read_body,
    server_error,
)
from penstock.cluster.rest.security import BrowserGuard
from penstock.cluster.rest.trimmed_paths import TrimmedPaths
from penstock.cluster.workers import Worker, Workers
from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["READING", "ClusterContext", "create_app", "http_error"]

_MAX_EXCEPTIONS = 20


@dataclass(slots=True)
class ClusterContext:
    """The data from which the endpoints respond."""

    registry: JobRegistry
    workers: Workers
    settings: dict[str, str] = field(default_factory=dict)
    operations: OperationStore = field(default_factory=OperationStore)
    java: dict[str, Any] = field(default_factory=dict)
    logs: LogFiles = field(default_factory=LogFiles)
    allowed_hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})

    def switch(self, key: str, *, default: bool = True) -> bool:
        """Whether a feature is on."""
        return self.settings.get(key, str(default)).strip().lower() == "true"


Answer = Callable[[Request, ClusterContext], Any]


def create_app(context: ClusterContext) -> Starlette:
    """Create the ASGI application for these jobs."""
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        routes += [Route(prefix + path, _endpoint(answer, context)) for path, answer in READING.items()]
        routes += [Route(prefix + path, _waiting_endpoint(answer, context)) for path, answer in _WAITING.items()]
        routes += [
            Route(prefix + path, partial(_run_changing, change, context), methods=[method])
            for (method, path), change in job_control.CHANGING.items()
        ]
    routes += disposal_routes(context.operations, partial(_job_that_depends_on, context))
    return Starlette(
        routes=routes,
        middleware=[Middleware(TrimmedPaths), Middleware(BrowserGuard, allowed_hosts=context.allowed_hosts)],
        exception_handlers={RestError: error_response, HTTPException: http_error, Exception: server_error},
    )


def _endpoint(answer: Answer, context: ClusterContext) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return _as_response(answer(request, context))

    return respond


def _waiting_endpoint(answer: Answer, context: ClusterContext) -> Callable[[Request], Awaitable[Response]]:
    """Run an endpoint that reads files or waits for a batch in a thread, so that it does not block others."""

    async def respond(request: Request) -> Response:
        return _as_response(await run_in_threadpool(answer, request, context))

    return respond


def _as_response(answer: Any) -> Response:
    return answer if isinstance(answer, Response) else json_response(answer)


async def _run_changing(change: job_control.Change, context: ClusterContext, request: Request) -> Response:
    body = await read_body(request)
    job_id = request.path_params.get("job_id")
    job = None if job_id is None else _job(request, context)
    job_control.check_switches(request.method, request.url.path, context.settings)
    call = job_control.Call(request, body, job, context.operations, context.settings)
    response = await run_in_threadpool(change, call)
    ignored = job_control.ignored_keys(change, body)
    if ignored:
        names = [quote(key[:100], errors="replace") for key in ignored[:10]]  # a header has a limited length
        response.headers["Warning"] = f'299 - "ignored: {", ".join(names)}"'
    return response


def _job_that_depends_on(context: ClusterContext, path: str) -> str | None:
    """Return the running job that was restored from this savepoint and has no checkpoint since."""
    for job in context.registry.all():
        restored = job.settings.savepoint_path
        if restored == path and not job.status.is_terminal_state() and not job.progress.checkpoints.latest():
            return job.job_id
    return None


def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in {404, 405}:
        return json_response({"errors": [f"Not found: {request.url.path}"]}, 404)
    return json_response({"errors": [str(error.detail)]}, error.status_code)


# -- path parameters --------------------------------------------------------------------------------------------------


def _job(request: Request, context: ClusterContext) -> MonitoredJob:
    job_id = parse_id(request.path_params["job_id"], "jobid")
    job = context.registry.find(job_id)
    if job is None:
        raise RestError(404, f"Job {job_id} not found")
    return job


def _vertex(request: Request, job: MonitoredJob) -> JobVertex:
    vertex_id = parse_id(request.path_params["vertex_id"], "vertexid")
    vertex = job.vertex(vertex_id)
    if vertex is None:
        raise RestError(404, f"Job vertex {vertex_id} not found")
    return vertex


def _of_job(build: Callable[[MonitoredJob], Any]) -> Answer:
    return lambda request, context: build(_job(request, context))


def _of_vertex(build: Callable[[MonitoredJob, JobVertex, Workers], Any]) -> Answer:
    def answer(request: Request, context: ClusterContext) -> Any:
        job = _job(request, context)
        return build(job, _vertex(request, job), context.workers)

    return answer


def _subtask(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    vertex = _vertex(request, job)
    index = vertices.check_subtask(vertex, request.path_params["subtask"])
    if "attempt" in request.path_params:
        vertices.check_attempt(job, request.path_params["attempt"])
    return vertices.subtask_details(job, vertex, index, context.workers)


def _exceptions(request: Request, context: ClusterContext) -> Any:
    limit = request.query_params.get("maxExceptions", str(_MAX_EXCEPTIONS))
    if not limit.isdigit():
        raise bad_parameter("query", "maxExceptions", limit)
    labels = request.query_params.get("failureLabelFilter", "")
    for label in filter(None, labels.split(",")):
        if label.count(":") != 1:
            raise bad_parameter("query", "failureLabelFilter", labels)
    return jobs.exceptions(_job(request, context), int(limit), labelled=bool(labels))


def _checkpoints(request: Request, context: ClusterContext) -> Any:
    return checkpoints.checkpoints(
        _job(request, context), everything=request.query_params.get("all", "").lower() == "true"
    )


def _batches(request: Request, context: ClusterContext) -> Any:
    return live.batches(_job(request, context), request.query_params.get("since", "0"))


def _checkpoint_details(request: Request, context: ClusterContext) -> Any:
    return checkpoints.checkpoint_details(_job(request, context), request.path_params["checkpoint_id"])


def _checkpoint_subtasks(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    return checkpoints.checkpoint_subtasks(job, request.path_params["checkpoint_id"], _vertex(request, job))


def _backpressure(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Any:
    return vertices.backpressure(job, vertex)


def _worker(request: Request, context: ClusterContext) -> Any:
    return task_managers.task_manager_details(_named_worker(request, context), context.workers, context.registry.all())


def _named_worker(request: Request, context: ClusterContext) -> Worker:
    worker = context.workers.find(request.path_params["worker_id"])
    if worker is None:
        raise RestError(404, f"Could not find TaskExecutor {request.path_params['worker_id']}")
    return worker


def _of_worker(answer: Answer, elsewhere: Any = None) -> Answer:
    """Wrap a response for a worker that is the driver itself (local mode). Executors do not provide it."""

    def checked(request: Request, context: ClusterContext) -> Any:
        if _named_worker(request, context).is_driver:
            return answer(request, context)
        return Response("", media_type="text/plain") if elsewhere is None else elsewhere

    return checked


def _flamegraph(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Any:
    """Respond with Flink's codes: -2 if the feature is disabled, -1 for an ended job."""
    return {"endTimestamp": -1 if job.status.is_terminal_state() else -2}


def _browsing(answer: Callable[[MonitoredJob, Request], Any]) -> Answer:
    def respond(request: Request, context: ClusterContext) -> Any:
        if not context.switch("penstock.state-browser.enable"):
            raise RestError(403, "The state browser is switched off (penstock.state-browser.enable).")
        return answer(_job(request, context), request)

    return respond


def _state_of_key(job: MonitoredJob, request: Request) -> Any:
    path = request.path_params
    return state_browser.state_of_key(job, path["operator"], path["state"], request.query_params.get("key"))


def _entries(job: MonitoredJob, request: Request) -> Any:
    return state_browser.entries(job, request.path_params["operator"], request.query_params)


def _attempt_accumulators(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    vertex = _vertex(request, job)
    index = vertices.check_subtask(vertex, request.path_params["subtask"])
    vertices.check_attempt(job, request.path_params["attempt"])
    found: dict[str, Any] = vertices.subtask_accumulators(job, vertex, context.workers)["subtasks"][index]
    return {"subtask": index, "attempt": found["attempt"], "id": f"{found['attempt']}", "user-accumulators": []}


def _process_metrics(request: Request, context: ClusterContext) -> Any:
    return metrics.metric_list(process_metrics(), request.query_params.get("get"))


def _worker_metrics(request: Request, context: ClusterContext) -> Any:
    found = task_managers.worker_metrics(_named_worker(request, context))
    return metrics.metric_list(found, request.query_params.get("get"))


def _aggregated_workers(request: Request, context: ClusterContext) -> Any:
    query = request.query_params
    chosen = query.get("taskmanagers")
    members: list[Mapping[str, Any]] = [
        task_managers.worker_metrics(worker)
        for worker in context.workers.all()
        if chosen is None or worker.worker_id in chosen.split(",")
    ]
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


def _application(request: Request, context: ClusterContext) -> Any:
    return overview.application_details(_job(request, context))


# -- metrics ----------------------------------------------------------------------------------------------------------


def _job_metrics(request: Request, context: ClusterContext) -> Any:
    found = metrics.job_metrics(_job(request, context), now_ms())
    return metrics.metric_list(found, request.query_params.get("get"))


def _vertex_metrics(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    found = metrics.vertex_metrics(job, _vertex(request, job))
    return metrics.metric_list(found, request.query_params.get("get"))


def _subtask_metrics(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    vertex = _vertex(request, job)
    index = vertices.check_subtask(vertex, request.path_params["subtask"])
    return metrics.metric_list(metrics.subtask_metrics(job, vertex, index), request.query_params.get("get"))


def _aggregated_subtasks(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    vertex = _vertex(request, job)
    query = request.query_params
    chosen = metrics.chosen_subtasks(query.get("subtasks"), vertex.parallelism)
    members: list[Mapping[str, Any]] = [metrics.subtask_metrics(job, vertex, index) for index in chosen]
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


def _aggregated_jobs(request: Request, context: ClusterContext) -> Any:
    query = request.query_params
    chosen = query.get("jobs")
    members: list[Mapping[str, Any]] = [
        metrics.job_metrics(job, now_ms())
        for job in context.registry.all()
        if chosen is None or job.job_id in chosen.split(",")
    ]
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


# -- paths ------------------------------------------------------------------------------------------------------------

_JOB = "/jobs/{job_id}"
_VERTEX = _JOB + "/vertices/{vertex_id}"

# More specific paths first: `/jobs/overview` is not the job "overview".
READING: dict[str, Answer] = {
    "/overview": lambda _, context: overview.overview(context.registry.all(), context.workers),
    "/config": lambda _, context: overview.config(
        submit=context.switch("web.submit.enable", default=False),
        cancel=context.switch("web.cancel.enable"),
        rescale=context.switch("web.rescale.enable"),
    ),
    "/jobs": lambda _, context: jobs.jobs(context.registry.all()),
    "/jobs/overview": lambda _, context: jobs.jobs_overview(context.registry.all()),
    "/jobs/metrics": _aggregated_jobs,
    "/applications/overview": lambda _, context: overview.applications(context.registry.all()),
    "/applications/{job_id}": _application,
    "/applications/{job_id}/exceptions": _of_job(overview.application_exceptions),
    "/applications/{job_id}/jobmanager/config": lambda _, context: overview.job_manager_config(context.settings),
    "/jobmanager/config": lambda _, context: overview.job_manager_config(context.settings),
    "/jobmanager/environment": lambda _, context: overview.environment(context.java),
    "/jobmanager/thread-dump": lambda _, __: overview.thread_dump(),
    "/jobmanager/profiler": lambda _, __: {"profilingList": []},
    "/datasets": lambda _, __: {"dataSets": []},
    "/taskmanagers": lambda _, context: task_managers.task_managers(context.workers, context.registry.all()),
    "/taskmanagers/metrics": _aggregated_workers,
    "/taskmanagers/{worker_id}": _worker,
    "/taskmanagers/{worker_id}/metrics": _worker_metrics,
    "/taskmanagers/{worker_id}/thread-dump": _of_worker(lambda _, __: overview.thread_dump(), {"threadInfos": []}),
    "/taskmanagers/{worker_id}/profiler": _of_worker(lambda _, __: {"profilingList": []}),
    "/jobmanager/metrics": _process_metrics,
    _JOB: _of_job(jobs.job_details),
    _JOB + "/plan": _of_job(jobs.plan),
    _JOB + "/status": _of_job(jobs.job_status),
    _JOB + "/execution-result": _of_job(jobs.execution_result),
    _JOB + "/config": _of_job(jobs.job_config),
    _JOB + "/exceptions": _exceptions,
    _JOB + "/accumulators": lambda _, __: {
        "job-accumulators": [],
        "user-task-accumulators": [],
        "serialized-user-task-accumulators": {},
    },
    _JOB + "/metrics": _job_metrics,
    _JOB + "/checkpoints": _checkpoints,
    _JOB + "/checkpoints/config": _of_job(checkpoints.checkpoint_config),
    _JOB + "/checkpoints/details/{checkpoint_id}": _checkpoint_details,
    _JOB + "/checkpoints/details/{checkpoint_id}/subtasks/{vertex_id}": _checkpoint_subtasks,
    _JOB + "/jobmanager/config": lambda _, context: overview.job_manager_config(context.settings),
    _JOB + "/jobmanager/environment": lambda _, context: overview.environment(context.java),
    _JOB + "/rescales/overview": _of_job(rescales.rescales_overview),
    _JOB + "/rescales/summary": _of_job(rescales.rescales_summary),
    _JOB + "/rescales/history": _of_job(rescales.rescales_history),
    _JOB + "/rescales/config": _of_job(rescales.rescales_config),
    _JOB + "/rescales/details/{rescale_id}": lambda request, context: rescales.rescale_details(
        _job(request, context), request.path_params["rescale_id"]
    ),
    _JOB + "/resource-requirements": _of_job(job_control.resource_requirements),
    _VERTEX: _of_vertex(vertices.vertex_details),
    _VERTEX + "/subtasktimes": _of_vertex(vertices.subtask_times),
    _VERTEX + "/taskmanagers": _of_vertex(vertices.vertex_workers),
    _VERTEX + "/watermarks": _of_vertex(lambda job, vertex, _: vertices.watermarks(job, vertex)),
    _VERTEX + "/accumulators": _of_vertex(lambda _, vertex, __: vertices.accumulators(vertex)),
    _VERTEX + "/backpressure": _of_vertex(_backpressure),
    _VERTEX + "/flamegraph": _of_vertex(_flamegraph),
    _VERTEX + "/jm-operator-metrics": _of_vertex(lambda _, __, ___: []),
    _VERTEX + "/metrics": _vertex_metrics,
    _VERTEX + "/subtasks/accumulators": _of_vertex(vertices.subtask_accumulators),
    _VERTEX + "/subtasks/metrics": _aggregated_subtasks,
    _VERTEX + "/subtasks/{subtask}": _subtask,
    _VERTEX + "/subtasks/{subtask}/metrics": _subtask_metrics,
    _VERTEX + "/subtasks/{subtask}/attempts/{attempt}": _subtask,
    _VERTEX + "/subtasks/{subtask}/attempts/{attempt}/accumulators": _attempt_accumulators,
    "/penstock/jobs/{job_id}/live": _of_job(live.live),
    "/penstock/jobs/{job_id}/batches": _batches,
    "/penstock/jobs/{job_id}/history": _of_job(live.history),
    "/penstock/jobs/{job_id}/splits": _of_job(live.splits),
    "/penstock/samples": lambda _, context: [
        sample.to_json() for sample in collect(context.registry.all(), context.workers)
    ],
}

_WAITING: dict[str, Answer] = {
    "/jobmanager/logs": lambda _, context: context.logs.listing(),
    "/jobmanager/logs/{name}": lambda request, context: context.logs.read(request.path_params["name"]),
    "/jobmanager/log": lambda _, context: context.logs.newest(),
    "/jobmanager/stdout": lambda _, context: context.logs.newest(),
    "/taskmanagers/{worker_id}/logs": _of_worker(lambda _, context: context.logs.listing(), {"logs": []}),
    "/taskmanagers/{worker_id}/logs/{name}": _of_worker(
        lambda request, context: context.logs.read(request.path_params["name"])
    ),
    "/taskmanagers/{worker_id}/log": _of_worker(lambda _, context: context.logs.newest()),
    "/taskmanagers/{worker_id}/stdout": _of_worker(lambda _, context: context.logs.newest()),
    "/penstock/jobs/{job_id}/state": _browsing(lambda job, _: state_browser.states(job)),
    "/penstock/jobs/{job_id}/state/{operator}": _browsing(_entries),
    "/penstock/jobs/{job_id}/state/{operator}/{state}": _browsing(_state_of_key),
    "/penstock/savepoint": lambda request, _: state_browser.savepoint_contents(request.query_params.get("path")),
}
