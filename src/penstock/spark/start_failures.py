"""Patience with a machine on which Spark's Python processes do not start in time.

Spark gives the process that plans a query ten seconds to start, and a task's worker a minute. Both are written into
Spark, and a machine that is busy enough needs longer. That is no failure of the job: nothing was committed, and what
was not committed is run again. So the job is begun again whatever its restart strategy says, but not for ever: an
environment in which Python cannot start at all looks the same.
"""

from __future__ import annotations

from penstock.common.errors import JobExecutionError, PenstockError

__all__ = ["StartPatience", "WorkerStartError"]

_ATTEMPTS = 5


class WorkerStartError(JobExecutionError):
    """A Python process of Spark's did not start in time."""


class StartPatience:
    """Counts how often a job could not begin since it last committed something.

    >>> patience = StartPatience()
    >>> patience.lasts(WorkerStartError("too slow"), committed=7), patience.lasts(JobExecutionError("x"), committed=7)
    (True, False)
    """

    def __init__(self, attempts: int = _ATTEMPTS) -> None:
        self._attempts = attempts
        self._failures = 0
        self._committed: int | None = None

    def lasts(self, error: PenstockError, committed: int | None) -> bool:
        """Whether to begin again after the error; ``committed`` tells whether the job got on since the last one."""
        if not isinstance(error, WorkerStartError):
            return False
        if committed != self._committed:
            self._committed, self._failures = committed, 0
        self._failures += 1
        if self._failures < self._attempts:
            return True
        error.add_note(
            f"Tried {self._failures} times. Either this machine is too busy to start a Python process within the time "
            "that Spark allows, or Python cannot start there: see what Spark says with PENSTOCK_DEBUG=1"
        )
        return False
