"""`/overview`, `/config`, `/applications`, `/jobmanager` and `/taskmanagers`: the cluster as a whole."""

from __future__ import annotations

import platform
import sys
import threading
import time
import traceback
from collections import Counter
from importlib import metadata
from typing import Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms
from penstock.cluster.redaction import redact_settings, redact_text
from penstock.cluster.rest.jobs import Json, job_overview
from penstock.cluster.rest.task_managers import task_managers
from penstock.cluster.workers import Workers
from penstock.common.job_status import JobStatus

FLINK_VERSION = "2.3.0"
"""The level of the REST API, for clients that compare versions."""
COMMIT = "penstock"
PENSTOCK_VERSION = metadata.version("penstock")
_MB = 1024 * 1024
_APPLICATION_STATES = ("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED")


def overview(known: list[MonitoredJob], workers: Workers) -> Json:
    """`GET /overview`. All jobs that have not ended count as running."""
    states = Counter(job.status for job in known)
    slots = sum(worker.cores for worker in workers.all())
    free = sum(worker["freeSlots"] for worker in task_managers(workers, known)["taskmanagers"])
    return {
        "taskmanagers": len(workers.all()),
        "slots-total": slots,
        "slots-available": free,
        "jobs-running": sum(count for status, count in states.items() if not status.is_terminal_state()),
        "jobs-finished": states[JobStatus.FINISHED],
        "jobs-cancelled": states[JobStatus.CANCELED],
        "jobs-failed": states[JobStatus.FAILED],
        "flink-version": FLINK_VERSION,
        "flink-commit": COMMIT,
        "penstock-version": PENSTOCK_VERSION,
    }


def config(*, submit: bool, cancel: bool, rescale: bool, history: bool = False, refresh_ms: int = 3000) -> Json:
    """`GET /config`, which a dashboard reads first."""
    offset = -(time.altzone if time.localtime().tm_isdst else time.timezone)
    return {
        "refresh-interval": refresh_ms,
        "timezone-name": time.tzname[time.localtime().tm_isdst > 0],
        "timezone-offset": offset * 1000,
        "flink-version": FLINK_VERSION,
        "flink-revision": f"{COMMIT} @ {PENSTOCK_VERSION}",
        "features": {
            "web-submit": submit,
            "web-cancel": cancel,
            "web-rescale": rescale,
            "web-history": history,
        },
    }


# -- applications -----------------------------------------------------------------------------------------------------


def applications(known: list[MonitoredJob]) -> Json:
    """`GET /applications/overview`: each job is a separate application."""
    now = now_ms()
    return {"applications": [_application(job, now) for job in known]}


def _application(job: MonitoredJob, now: int) -> Json:
    return {
        "id": job.job_id,
        "name": f"SingleJobApplication({job.name})",
        "start-time": job.started,
        "end-time": job.ended,
        "duration": job.duration(now),
        "status": application_status(job.status.name),
        "jobs": {job.status.name: 1},
    }


def application_of(job: Json) -> Json:
    """Return the application of one job from its overview."""
    return {
        "id": job["jid"],
        "name": f"SingleJobApplication({job['name']})",
        "start-time": job["start-time"],
        "end-time": job["end-time"],
        "duration": job["duration"],
        "status": application_status(job["state"]),
        "jobs": {job["state"]: 1},
    }


def application_status(job_state: str) -> str:
    """Return the state of an application with one job. It has fewer states than a job, one spelled differently.

    >>> application_status("RESTARTING"), application_status("CANCELLING"), application_status("FAILED")
    ('RUNNING', 'CANCELING', 'FAILED')
    """
    if job_state == "CANCELLING":
        return "CANCELING"
    if job_state == "INITIALIZING":
        return "CREATED"
    return job_state if job_state in _APPLICATION_STATES else "RUNNING"


def application_details(job: MonitoredJob) -> Json:
    """`GET /applications/:applicationid`."""
    now = now_ms()
    found = _application(job, now)
    stamps = job.timestamps
    stamps["CANCELING"] = stamps["CANCELLING"]
    timestamps = {state: stamps[state] for state in _APPLICATION_STATES}
    return {**found, "timestamps": timestamps, "jobs": [job_overview(job, now)]}


def application_exceptions(job: MonitoredJob) -> Json:
    """`GET /applications/:applicationid/exceptions`: the failures of its jobs."""
    failed = job.progress.exceptions.newest_first()[:1] if job.status is JobStatus.FAILED else []
    entries = [
        {
            "exceptionName": entry.name,
            "stacktrace": redact_text(entry.message),
            "timestamp": entry.timestamp,
            "jobId": job.job_id,
        }
        for entry in failed
    ]
    return {"exceptionHistory": {"entries": entries}}


# -- the driver -------------------------------------------------------------------------------------------------------


def job_manager_config(settings: dict[str, str]) -> list[Json]:
    """`GET /jobmanager/config`."""
    return [{"key": key, "value": value} for key, value in sorted(redact_settings(settings).items())]


def environment(java: dict[str, Any]) -> Json:
    """`GET /jobmanager/environment`: the driver's JVM, and its Python."""
    packages = sorted({f"{dist.name}=={dist.version}" for dist in metadata.distributions()})
    return {
        "jvm": {
            "version": str(java.get("version", "none")),
            "arch": platform.machine(),
            "options": list(java.get("options", [])),
        },
        "classpath": list(java.get("classpath", [])),
        "python": {"version": sys.version, "executable": sys.executable, "packages": packages},
    }


def thread_dump() -> Json:
    """`GET /jobmanager/thread-dump`: the threads of the driver's Python."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return {
        "threadInfos": [
            {
                "threadName": names.get(ident, str(ident)),
                "stringifiedThreadInfo": f'"{names.get(ident, ident)}" Id={ident}\n'
                + "".join(traceback.format_stack(frame)),
            }
            for ident, frame in sys._current_frames().items()
        ]
    }
