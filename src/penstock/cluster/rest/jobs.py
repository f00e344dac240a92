"""`/jobs`: lists, details, plan, configuration, exceptions and results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms, vertex_hex
from penstock.cluster.redaction import redact_settings, redact_text
from penstock.cluster.rest.plan import plan_of
from penstock.common.job_status import JobStatus

if TYPE_CHECKING:
    from penstock.runtime.plan.job_vertex import JobVertex

Json = dict[str, Any]

TASK_STATES = (
    "CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING",
    "INITIALIZING",
)  # fmt: skip
"""Flink's ExecutionState, in its order."""

_APPLICATION_STATUS = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def jobs(known: list[MonitoredJob]) -> Json:
    """`GET /jobs`."""
    return {"jobs": [{"id": job.job_id, "status": job.status.name} for job in known]}


def jobs_overview(known: list[MonitoredJob]) -> Json:
    """`GET /jobs/overview`."""
    now = now_ms()
    return {"jobs": [job_overview(job, now) for job in known]}


def job_overview(job: MonitoredJob, now: int) -> Json:
    """Return one job of the overview. `tasks` counts the subtasks of all tasks."""
    counts: Counter[str] = Counter()
    for vertex in job.graph.vertices:
        counts[job.task_state(vertex)] += vertex.parallelism
    tasks = {"total": counts.total(), **{state.lower(): counts[state] for state in TASK_STATES}}
    return {
        "jid": job.job_id,
        "name": job.name,
        "jobType": job_type(job),
        "schedulerType": "Adaptive" if can_rescale(job) else "Default",
        "start-time": job.started,
        "end-time": job.ended,
        "duration": job.duration(now),
        "state": job.status.name,
        "last-modification": max(job.life.entered.values()),
        "tasks": tasks,
        "pending-operators": 0,
    }


def job_type(job: MonitoredJob) -> str:
    """Return STREAMING or BATCH."""
    return "BATCH" if job.is_batch else "STREAMING"


def can_rescale(job: MonitoredJob) -> bool:
    """Whether the parallelism of the job can be changed while it runs."""
    return not job.is_batch


def job_details(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid`."""
    now = now_ms()
    states = Counter(job.task_state(vertex) for vertex in job.graph.vertices)
    return {
        "jid": job.job_id,
        "application-id": job.job_id,
        "name": job.name,
        "isStoppable": False,
        "state": job.status.name,
        "job-type": job_type(job),
        "schedulerType": "Adaptive" if can_rescale(job) else "Default",
        "start-time": job.started,
        "end-time": job.ended,
        "duration": job.duration(now),
        "maxParallelism": -1,
        "now": now,
        "timestamps": job.timestamps,
        "vertices": [_vertex_details(job, vertex, now) for vertex in job.graph.vertices],
        "status-counts": {state: states[state] for state in TASK_STATES},
        "pending-operators": 0,
        "plan": plan(job)["plan"],
    }


def _vertex_details(job: MonitoredJob, vertex: JobVertex, now: int) -> Json:
    state = job.task_state(vertex)
    subtasks = job.subtasks(vertex).values()
    return {
        "id": vertex_hex(vertex),
        "slotSharingGroupId": job.job_id,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": state,
        **task_times(job, now),
        "tasks": {name: vertex.parallelism if name == state else 0 for name in TASK_STATES},
        "metrics": io_metrics(job, vertex, list(subtasks), now),
    }


def task_times(job: MonitoredJob, now: int) -> Json:
    """Return when the tasks of a job started and ended, all of them together."""
    began = job.running_since
    if began < 0:
        return {"start-time": -1, "end-time": -1, "duration": -1}
    end = job.ended if job.status.is_terminal_state() else -1
    return {"start-time": began, "end-time": end, "duration": (now if end < 0 else end) - began}


def io_metrics(job: MonitoredJob, vertex: JobVertex, subtasks: list[Any], now: int) -> Json:
    """Return the total counters of some subtasks of a task. As in Flink, sources read nothing and sinks write nothing:
    records count where they cross an exchange.
    """
    received = [] if vertex.is_source else subtasks
    alive = max(0, task_times(job, now)["duration"]) * max(1, len(subtasks))
    busy = sum(subtask.busy_seconds for subtask in subtasks) * 1000
    waiting = sum(subtask.backpressured_seconds for subtask in subtasks) * 1000
    return {
        "read-bytes": sum(subtask.bytes_in for subtask in received),
        "read-bytes-complete": True,
        "write-bytes": sum(subtask.bytes_out for subtask in subtasks),
        "write-bytes-complete": True,
        "read-records": sum(subtask.records_in for subtask in received),
        "read-records-complete": True,
        "write-records": sum(subtask.records_out for subtask in subtasks),
        "write-records-complete": True,
        "accumulated-backpressured-time": int(waiting),
        "accumulated-idle-time": max(0, int(alive - busy - waiting)),
        "accumulated-busy-time": busy if subtasks else "NaN",
    }


def plan(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid/plan`."""
    return plan_of(job.graph, job.job_id)


def job_status(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid/status`."""
    return {"status": job.status.name}


def execution_result(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid/execution-result`."""
    if not job.status.is_terminal_state():
        return {"status": {"id": "IN_PROGRESS"}}
    result: Json = {
        "id": job.job_id,
        "application-id": job.job_id,
        "name": job.name,
        "application-status": _APPLICATION_STATUS.get(job.status, "UNKNOWN"),
        "accumulator-results": {},
        "net-runtime": job.duration(now_ms()),
        "start-time": job.started,
        "end-time": job.ended,
    }
    failures = job.progress.exceptions.newest_first()
    if job.status is JobStatus.FAILED and failures:
        result["failure-cause"] = failure_cause(failures[0].name, failures[0].message)
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


def failure_cause(name: str, message: str) -> Json:
    """Return an exception in Flink's form, without a serialized Java object."""
    return {"class": name, "stack-trace": redact_text(message), "serialized-throwable": ""}


def job_config(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid/config`."""
    return {
        "jid": job.job_id,
        "name": job.name,
        "execution-config": {
            "restart-strategy": "Cluster level default restart strategy",
            "job-parallelism": job.settings.parallelism,
            "object-reuse-mode": False,
            "user-config": redact_settings(job.settings.job_parameters),
        },
    }


def exceptions(job: MonitoredJob, limit: int, *, labelled: bool = False) -> Json:
    """`GET /jobs/:jobid/exceptions`; `labelled` selects those with a label, which do not exist here."""
    history = job.progress.exceptions
    entries = [] if labelled else history.newest_first()
    shown = []
    for entry in entries[:limit]:
        found: Json = {
            "exceptionName": entry.name,
            "stacktrace": redact_text(entry.message),
            "timestamp": entry.timestamp,
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        if entry.operator is not None:
            found["taskName"] = _task_name(job, entry.operator, entry.subtask or 0)
            found["endpoint"] = found["taskManagerId"] = "localhost"
        shown.append(found)
    return {"exceptionHistory": {"entries": shown, "truncated": history.truncated or len(entries) > limit}}


def _task_name(job: MonitoredJob, operator: str, subtask: int) -> str:
    for vertex in job.graph.vertices:
        if any(chained.name == operator for chained in vertex.operators):
            return f"{vertex.name} ({subtask + 1}/{vertex.parallelism}) - execution #{job.progress.restarts}"
    return operator
