"""The REST application: every path of Flink's API, bare and below `/v1`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.monitored_job import MonitoredJob, now_ms
from penstock.cluster.rest import checkpoints, job_control, jobs, metrics, overview, vertices
from penstock.cluster.rest.operations import OperationStore
from penstock.cluster.rest.responses import (
    RestError,
    bad_parameter,
    error_response,
    json_response,
    parse_id,
    server_error,
)
from penstock.cluster.rest.security import BrowserGuard
from penstock.cluster.workers import Workers
from penstock.runtime.job import JobVertex

__all__ = ["ClusterContext", "create_app", "http_error"]

_MAX_EXCEPTIONS = 20


@dataclass(slots=True)
class ClusterContext:
    """Everything the endpoints answer from."""

    registry: JobRegistry
    workers: Workers
    settings: dict[str, str] = field(default_factory=dict)
    operations: OperationStore = field(default_factory=OperationStore)
    java: dict[str, Any] = field(default_factory=dict)
    allowed_hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})

    def switch(self, key: str, *, default: bool = True) -> bool:
        """Whether a feature is on."""
        return self.settings.get(key, str(default)).strip().lower() == "true"


Answer = Callable[[Request, ClusterContext], Any]


def create_app(context: ClusterContext) -> Starlette:
    """The ASGI application over these jobs."""
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        routes += [Route(prefix + path, _endpoint(answer, context)) for path, answer in _READING.items()]
        routes += [
            Route(prefix + path, partial(_run_changing, change, context), methods=[method])
            for (method, path), change in job_control.CHANGING.items()
        ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(BrowserGuard, allowed_hosts=context.allowed_hosts)],
        exception_handlers={RestError: error_response, HTTPException: http_error, Exception: server_error},
    )


def _endpoint(answer: Answer, context: ClusterContext) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return json_response(answer(request, context))

    return respond


async def _run_changing(change: job_control.Change, context: ClusterContext, request: Request) -> Response:
    body = await job_control.read_body(request)
    job_id = request.path_params.get("job_id")
    job = None if job_id is None else _job(request, context)
    return await run_in_threadpool(change, job_control.Call(request, body, job, context.operations, context.settings))


def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in {404, 405}:
        return json_response({"errors": [f"Not found: {request.url.path}"]}, 404)
    return json_response({"errors": [str(error.detail)]}, error.status_code)


# -- what a path names ------------------------------------------------------------------------------------------------


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
    return vertices.subtask_details(
        job, vertex, vertices.check_subtask(vertex, request.path_params["subtask"]), context.workers
    )


def _exceptions(request: Request, context: ClusterContext) -> Any:
    limit = request.query_params.get("maxExceptions", str(_MAX_EXCEPTIONS))
    if not limit.isdigit():
        raise bad_parameter("query", "maxExceptions", limit)
    return jobs.exceptions(_job(request, context), int(limit))


def _checkpoints(request: Request, context: ClusterContext) -> Any:
    return checkpoints.checkpoints(
        _job(request, context), everything=request.query_params.get("all", "").lower() == "true"
    )


def _checkpoint_details(request: Request, context: ClusterContext) -> Any:
    return checkpoints.checkpoint_details(_job(request, context), request.path_params["checkpoint_id"])


def _checkpoint_subtasks(request: Request, context: ClusterContext) -> Any:
    job = _job(request, context)
    return checkpoints.checkpoint_subtasks(job, request.path_params["checkpoint_id"], _vertex(request, job))


def _backpressure(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Any:
    return vertices.backpressure(job, vertex)


def _worker(request: Request, context: ClusterContext) -> Any:
    worker = context.workers.find(request.path_params["worker_id"])
    if worker is None:
        raise RestError(404, f"Could not find TaskExecutor {request.path_params['worker_id']}")
    return overview.task_manager_details(worker)


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

# More particular paths first: `/jobs/overview` is not the job "overview".
_READING: dict[str, Answer] = {
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
    "/applications/{job_id}/exceptions": lambda _, __: {"exceptionHistory": {"entries": []}},
    "/applications/{job_id}/jobmanager/config": lambda _, context: overview.job_manager_config(context.settings),
    "/jobmanager/config": lambda _, context: overview.job_manager_config(context.settings),
    "/jobmanager/environment": lambda _, context: overview.environment(context.java),
    "/jobmanager/thread-dump": lambda _, __: overview.thread_dump(),
    "/jobmanager/profiler": lambda _, __: {"profilingList": []},
    "/datasets": lambda _, __: {"dataSets": []},
    "/taskmanagers": lambda _, context: overview.task_managers(context.workers),
    "/taskmanagers/{worker_id}": _worker,
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
    _JOB + "/resource-requirements": _of_job(job_control.resource_requirements),
    _VERTEX: _of_vertex(vertices.vertex_details),
    _VERTEX + "/subtasktimes": _of_vertex(vertices.subtask_times),
    _VERTEX + "/taskmanagers": _of_vertex(vertices.vertex_workers),
    _VERTEX + "/watermarks": _of_vertex(lambda job, vertex, _: vertices.watermarks(job, vertex)),
    _VERTEX + "/accumulators": _of_vertex(lambda _, vertex, __: vertices.accumulators(vertex)),
    _VERTEX + "/backpressure": _of_vertex(_backpressure),
    _VERTEX + "/jm-operator-metrics": _of_vertex(lambda _, __, ___: []),
    _VERTEX + "/metrics": _vertex_metrics,
    _VERTEX + "/subtasks/accumulators": _of_vertex(vertices.subtask_accumulators),
    _VERTEX + "/subtasks/metrics": _aggregated_subtasks,
    _VERTEX + "/subtasks/{subtask}": _subtask,
    _VERTEX + "/subtasks/{subtask}/metrics": _subtask_metrics,
    _VERTEX + "/subtasks/{subtask}/attempts/{attempt}": _subtask,
}
