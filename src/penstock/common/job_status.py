"""The states of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """Where a job is in its life. A job that has reached a terminal state stays there.

    ``INITIALIZING`` exists in Flink but not in PyFlink: the job reads the state from which it resumes.

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
        """Whether the job is over and will not be taken up again."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Whether the job no longer runs here; a suspended one may be taken up elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
