"""Retries on a machine where Spark's Python processes do not start in time.

Spark gives the process that plans a query ten seconds to start, and a task's worker a minute. Both limits are fixed in
Spark, and a very busy machine needs longer. This is not a failure of the job: nothing was committed, so the batch can
run again. The job therefore restarts, whatever its restart strategy is. The number of attempts is limited, because an
environment in which Python cannot start at all looks the same. There is a pause between attempts, because abandoned
processes are still starting, and jobs that keep starting more of them block each other.
"""

from __future__ import annotations

from penstock.common.errors import JobExecutionError, PenstockError

__all__ = ["StartPatience", "WorkerStartError"]

_ATTEMPTS = 5
_LONGEST_PAUSE = 30.0


class WorkerStartError(JobExecutionError):
    """A Python process of Spark did not start in time."""


class StartPatience:
    """Counts how often a job could not start since its last commit.

    >>> patience = StartPatience()
    >>> patience.lasts(WorkerStartError("too slow"), committed=7), patience.lasts(JobExecutionError("x"), committed=7)
    (True, False)
    """

    def __init__(self, attempts: int = _ATTEMPTS) -> None:
        self._attempts = attempts
        self._failures = 0
        self._committed: int | None = None

    @property
    def pause(self) -> float:
        """Return the delay before the next attempt, in seconds. It doubles every time.

        >>> patience, pauses = StartPatience(), []
        >>> for _ in range(4):
        ...     patience.lasts(WorkerStartError("too slow"), committed=7) and pauses.append(patience.pause)
        >>> pauses
        [1.0, 2.0, 4.0, 8.0]
        """
        return min(2.0 ** (self._failures - 1), _LONGEST_PAUSE) if self._failures else 0.0

    def lasts(self, error: PenstockError, committed: int | None) -> bool:
        """Whether to restart after the error. ``committed`` shows whether the job made progress since the last one."""
        if not isinstance(error, WorkerStartError):
            self._failures = 0
            return False
        if committed != self._committed:
            self._committed, self._failures = committed, 0
        self._failures += 1
        if self._failures < self._attempts:
            return True
        error.add_note(
            f"Tried {self._failures} times. Either this machine is too busy to start a Python process within the time "
            "that Spark allows, or Python cannot start there: see Spark's output with PENSTOCK_DEBUG=1"
        )
        return False
