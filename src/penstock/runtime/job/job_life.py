"""The life of a job across restarts and rescaling: its status and the requests to it."""

from __future__ import annotations

import threading
import time

from penstock.common.job_status import JobStatus
from penstock.runtime.savepoint.savepoint_queue import SavepointQueue
from penstock.runtime.task.queries import QueryBoard

__all__ = ["JobLife"]


def _now() -> int:
    return int(time.time() * 1000)


class JobLife:
    """The life of one job. Its own thread and its clients change the status.

    >>> life = JobLife("0" * 32, "counting")
    >>> life.transition_to(JobStatus.RUNNING), life.transition_to(JobStatus.CREATED)
    (True, False)
    >>> life.cancel(), life.transition_to(JobStatus.RUNNING), life.status
    (True, False, <JobStatus.CANCELLING: 4>)
    >>> life.end(JobStatus.FINISHED)  # it ended before the request
    >>> life.cancel(), life.status
    (False, <JobStatus.FINISHED: 6>)
    """

    def __init__(self, job_id: str, job_name: str, *, compress_savepoints: bool = False) -> None:
        self.job_id = job_id
        self.job_name = job_name
        self.cancelled = threading.Event()
        """Set to end the job early."""
        self.savepoints = SavepointQueue(job_id, job_name, compress=compress_savepoints)
        self.queries = QueryBoard()
        self._status = JobStatus.INITIALIZING
        self.entered: dict[JobStatus, int] = {JobStatus.INITIALIZING: _now()}
        """When the job last entered each status, in epoch milliseconds."""
        self._lock = threading.Lock()
        self._cancelled_at = 0.0

    @property
    def status(self) -> JobStatus:
        """The current status."""
        return self._status

    def transition_to(self, status: JobStatus) -> bool:
        """Change the status; return False if Flink forbids the transition.

        A terminal status is final, a job that is being cancelled can only end, and a job is created only once.
        """
        with self._lock:
            now = self._status
            if now.is_terminal_state() or (now is JobStatus.CANCELLING and not status.is_terminal_state()):
                return False
            if status is JobStatus.CREATED and now is not JobStatus.INITIALIZING:
                return False
            self._enter(status)
            return True

    def cancel(self) -> bool:
        """Ask the job to end; return False if it has ended already."""
        with self._lock:
            if self._status.is_terminal_state():
                return False
            if not self.cancelled.is_set():
                self._cancelled_at = time.monotonic()
                self.cancelled.set()
            self._enter(JobStatus.CANCELLING)
            return True

    def _enter(self, status: JobStatus) -> None:
        self._status = status
        self.entered[status] = _now()

    @property
    def seconds_since_cancelled(self) -> float:
        """The time since the job was cancelled, or 0."""
        return time.monotonic() - self._cancelled_at if self.cancelled.is_set() else 0.0

    def end(self, status: JobStatus, stopped_with: str | None = None) -> None:
        """End the job, and fail all open requests.

        :param stopped_with: the path of the savepoint with which the job has stopped
        """
        self.transition_to(status)
        how = status.name if stopped_with is None else f"it was stopped with the savepoint {stopped_with}"
        self.queries.end(f"job '{self.job_name}' is not running: its state cannot be queried")
        self.savepoints.end(f"job '{self.job_name}' has ended ({how}): there is nothing to take a savepoint of")
