"""Decides whether a failed attempt leads to a restart or to the end of the job, in streaming and in batch mode."""

from __future__ import annotations

import time

from penstock.common.errors import FencedError, InvalidProgramError, PenstockError
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.core.return_values import check_verdict, milliseconds
from penstock.spark.session import SparkEndedError
from penstock.spark.start_failures import StartPatience

__all__ = ["Restarts"]


class Restarts:
    """The restarts of one job.

    >>> from penstock.common.errors import JobExecutionError
    >>> from penstock.common.restart_strategy import RestartStrategies
    >>> restarts = Restarts(RestartStrategies.fixed_delay_restart(1, 500))
    >>> failure = JobExecutionError("the sink is away")
    >>> restarts.pause_after(failure, committed=7), restarts.attempt
    (0.5, 1)
    >>> restarts.pause_after(failure, committed=7) is None, failure.__notes__
    (True, ['The job was restarted once before. Restart with fixed delay (500 ms). #1 restart attempts.'])
    """

    def __init__(self, strategy: RestartStrategyConfiguration | None) -> None:
        self.attempt = 0
        self._strategy = strategy
        self._backoff = strategy.create() if strategy is not None else None
        self._patience = StartPatience()

    def pause_after(self, error: PenstockError, committed: int | None) -> float | None:
        """Return the seconds to wait before the next attempt, and count it. Return ``None`` if the job must end.

        :param committed: the last checkpoint, which shows whether the job has made progress
        """
        if isinstance(error, (InvalidProgramError, SparkEndedError, FencedError)):
            return None  # the next attempt would fail again
        patient = self._patience.lasts(error, committed)
        pause = self._patience.pause
        if not patient:
            if self._backoff is None:
                return None
            self._backoff.notify_failure(int(time.time() * 1000))
            verdict = self._backoff.can_restart()
            check_verdict(verdict, self._backoff, "can_restart", operator_name="restart strategy")
            if not verdict:
                if self.attempt:
                    times = "once" if self.attempt == 1 else f"{self.attempt} times"
                    error.add_note(f"The job was restarted {times} before. {self._strategy}")
                return None
            pause = max(pause, milliseconds(self._backoff.delay_ms(), self._backoff, "delay_ms", positive=False) / 1000)
        self.attempt += 1
        return pause
