"""What a job has for as long as it lives, however often it is restarted or rescaled: its state, and what is asked."""

from __future__ import annotations

import threading
import time

from penstock.common.job_status import JobStatus
from penstock.runtime.queries import QueryBoard
from penstock.runtime.savepoint.tickets import SavepointTickets

__all__ = ["JobLife"]


def _now() -> int:
    return int(time.time() * 1000)


class JobLife:
    """The life of one job, told by its own thread and by whoever wants it to end.

    >>> life = JobLife("0" * 32, "counting")
    >>> life.becomes(JobStatus.RUNNING), life.becomes(JobStatus.CREATED)
    (True, False)
    >>> life.cancel(), life.becomes(JobStatus.RUNNING), life.status
    (True, False, <JobStatus.CANCELLING: 4>)
    >>> life.end(JobStatus.FINISHED)  # it was faster
    >>> life.cancel(), life.status
    (False, <JobStatus.FINISHED: 6>)
    """

    def __init__(self, job_id: str, job_name: str, *, compress_savepoints: bool = False) -> None:
        self.job_id = job_id
        self.job_name = job_name
        self.cancelled = threading.Event()
        """Somebody wants the job to end."""
        self.savepoints = SavepointTickets(job_id, job_name, compress=compress_savepoints)
        self.queries = QueryBoard()
        self._status = JobStatus.INITIALIZING
        self.entered: dict[JobStatus, int] = {JobStatus.INITIALIZING: _now()}
        """When the job came into each state last, in epoch milliseconds."""
        self._lock = threading.Lock()
        self._cancelled_at = 0.0

    @property
    def status(self) -> JobStatus:
        """Where the job is."""
        return self._status

    def becomes(self, status: JobStatus) -> bool:
        """The job is in another state now; refuses what Flink refuses, and says whether it did not.

        What is over stays as it is, what is cancelled only comes to its end, and a job is created once.
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
        """The job is to end; False if it is over already."""
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
        """How long it has been cancelled; 0 if it was not."""
        return time.monotonic() - self._cancelled_at if self.cancelled.is_set() else 0.0

    def end(self, status: JobStatus, stopped_with: str | None = None) -> None:
        """The job is over. Who still waits for something is told so.

        :param stopped_with: the path of the savepoint that was its last act
        """
        self.becomes(status)
        how = status.name if stopped_with is None else f"it was stopped with the savepoint {stopped_with}"
        self.queries.end(f"job '{self.job_name}' is not running: its state cannot be queried")
        self.savepoints.end(f"job '{self.job_name}' has ended ({how}): there is nothing to take a savepoint of")
