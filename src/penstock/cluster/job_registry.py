"""The known jobs of the service, newest last. Ended jobs are removed after some time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.cluster.monitored_job import MonitoredJob, now_ms

if TYPE_CHECKING:
    from penstock.runtime.job.job_client import ThreadJobClient

__all__ = ["JobRegistry"]

_EXPIRATION_MS = 3_600_000  # jobstore.expiration-time in Flink
_CAPACITY = 100  # jobstore.max-capacity: ended jobs keep their graphs in memory


class JobRegistry:
    """Jobs by id."""

    def __init__(self, expiration_ms: int = _EXPIRATION_MS) -> None:
        self._expiration_ms = expiration_ms
        self._jobs: dict[str, MonitoredJob] = {}
        self._lock = threading.Lock()

    def add(self, client: ThreadJobClient, program: str | None = None) -> MonitoredJob:
        """Add a job."""
        job = MonitoredJob(client, program)
        with self._lock:
            self._jobs[job.job_id] = job
        return job

    def all(self) -> list[MonitoredJob]:
        """Return all jobs that are running or ended recently."""
        limit = now_ms() - self._expiration_ms
        with self._lock:
            for job in [job for job in self._jobs.values() if 0 <= job.ended < limit]:
                del self._jobs[job.job_id]
            for job in [job for job in self._jobs.values() if job.ended >= 0][:-_CAPACITY]:
                del self._jobs[job.job_id]
            return list(self._jobs.values())

    def find(self, job_id: str) -> MonitoredJob | None:
        """Return the job with this id."""
        with self._lock:
            return self._jobs.get(job_id)
