"""Jobs whose driver was killed: responses from the record of the driver."""

from __future__ import annotations

from typing import Any, Protocol

from penstock.cluster.monitored_job import now_ms
from penstock.cluster.redaction import redact_text
from penstock.cluster.rest.jobs import TASK_STATES, Json, failure_cause
from penstock.cluster.rest.overview import application_of
from penstock.cluster.rest.responses import RestError
from penstock.common.job_status import JobStatus

__all__ = ["DriverRecord", "recorded_answer", "recorded_overview"]

_ERROR = "penstock.common.errors.PenstockError"


class DriverRecord(Protocol):
    """The information about a job outside its process."""

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


def recorded_overview(record: DriverRecord) -> Json:
    """Return a job whose driver does not respond, from its record. A lost job counts as failed."""
    started = int(record.started * 1000)
    # A killed process could not record the end time, but an ended job needs one.
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


def recorded_answer(record: DriverRecord, path: str) -> Json:
    """Respond to a `GET`. `path` has no version. The tasks and metrics of the job are lost."""
    match path.strip("/").split("/")[0:1] + path.strip("/").split("/")[2:]:
        case ["jobs"]:
            return _details(record)
        case ["jobs", "plan"]:
            return {"plan": _empty_plan(record)}
        case ["jobs", "status"]:
            return {"status": recorded_overview(record)["state"]}
        case ["jobs", "exceptions"]:
            return {"exceptionHistory": {"entries": _exceptions(record), "truncated": False}}
        case ["jobs", "execution-result"]:
            return _result(record)
        case ["jobs", "accumulators"]:
            return {"job-accumulators": [], "user-task-accumulators": [], "serialized-user-task-accumulators": {}}
        case ["applications"]:
            return _application(record)
        case ["applications", "exceptions"]:
            entries = [_without_task(entry, record) for entry in _exceptions(record)]
            return {"exceptionHistory": {"entries": entries}}
    if record.is_over:
        raise RestError(404, f"Job {record.job_id} has ended, and nothing is kept about this")
    raise RestError(404, f"The process of job {record.job_id} serves no REST API: install penstock[service] for it")


def _details(record: DriverRecord) -> Json:
    known = recorded_overview(record)
    return {
        "jid": record.job_id,
        "application-id": record.job_id,
        "name": record.name,
        "isStoppable": False,
        "state": known["state"],
        "job-type": known["jobType"],
        "schedulerType": None,
        "start-time": known["start-time"],
        "end-time": known["end-time"],
        "duration": known["duration"],
        "maxParallelism": -1,
        "now": now_ms(),
        "timestamps": {**{status.name: 0 for status in JobStatus}, known["state"]: known["last-modification"]},
        "vertices": [],
        "status-counts": dict.fromkeys(TASK_STATES, 0),
        "pending-operators": 0,
        "plan": _empty_plan(record),
    }


def _empty_plan(record: DriverRecord) -> Json:
    return {"jid": record.job_id, "name": record.name, "type": "STREAMING", "nodes": []}


def _exceptions(record: DriverRecord) -> list[Json]:
    if record.error is None:
        return []
    return [
        {
            "exceptionName": _ERROR,
            "stacktrace": redact_text(record.error),
            "timestamp": recorded_overview(record)["end-time"],
            "failureLabels": {},
            "concurrentExceptions": [],
        }
    ]


def _result(record: DriverRecord) -> Json:
    known = recorded_overview(record)
    result: dict[str, Any] = {
        "id": record.job_id,
        "application-id": record.job_id,
        "name": record.name,
        "application-status": "SUCCEEDED" if known["state"] == "FINISHED" else known["state"],
        "accumulator-results": {},
        "net-runtime": known["duration"],
        "start-time": known["start-time"],
        "end-time": known["end-time"],
    }
    if record.error is not None:
        result["failure-cause"] = failure_cause(_ERROR, record.error)
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


def _application(record: DriverRecord) -> Json:
    job = recorded_overview(record)
    application = application_of(job)
    states = ("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED")
    timestamps = {**dict.fromkeys(states, 0), application["status"]: job["last-modification"]}
    return {**application, "timestamps": timestamps, "jobs": [job]}


def _without_task(entry: Json, record: DriverRecord) -> Json:
    return {
        "exceptionName": entry["exceptionName"],
        "stacktrace": entry["stacktrace"],
        "timestamp": entry["timestamp"],
        "jobId": record.job_id,
    }
