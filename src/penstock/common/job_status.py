"""The states of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """The state of a job. A job in a terminal state stays there.

    ``INITIALIZING`` exists in Flink but not in PyFlink: the job reads the state to restore.

    >>> JobStatus.FINISHED.is_globally_terminal_state(), JobStatus.RESTARTING.is_terminal_state()
    (True, False)
    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9
    INITIALIZING = 10

    def is_globally_terminal_state(self) -> bool:
        """Whether the job has ended and will not be resumed."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Whether the job no longer runs here. A suspended job may be resumed elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
