"""Statistics of a job's checkpoints: counts, summaries, and a history of one day.

A micro-batch is a checkpoint, so there may be ten per second. Counts and averages cover all of them. The history keeps
the last ten, one per second for a minute, one per minute for a day, and every savepoint and failure.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

_LAST = 10
_SECONDS = 60
_MINUTES = 24 * 60
_FINDABLE = 5_000
_SPECIAL = 100
_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class CheckpointStatistics:
    """One checkpoint. Times are epoch milliseconds, durations milliseconds, sizes bytes."""

    checkpoint_id: int
    triggered: int
    completed: int
    state_size: int
    written_size: int
    subtasks: int
    records: int = 0
    savepoint: str | None = None
    """The savepoint's path, if the checkpoint wrote one."""
    failure: str | None = None

    @property
    def duration(self) -> int:
        """The time from planning to the commit."""
        return max(0, self.completed - self.triggered)


class Summary:
    """Smallest, largest and average of all values; percentiles of the last thousand.

    >>> summary = Summary()
    >>> for value in (10, 30, 20):
    ...     summary.add(value)
    >>> summary.minimum, summary.maximum, summary.average, summary.percentile(50)
    (10, 30, 20, 20.0)
    """

    __slots__ = ("_samples", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.count = self.total = self.minimum = self.maximum = 0
        self._samples = array("q")  # a ring buffer without an object per sample

    def add(self, value: int) -> None:
        """Add a value."""
        self.minimum = min(self.minimum, value) if self.count else value
        self.maximum = max(self.maximum, value) if self.count else value
        if len(self._samples) < _SAMPLES:
            self._samples.append(value)
        else:
            self._samples[self.count % _SAMPLES] = value
        self.count += 1
        self.total += value

    @property
    def average(self) -> int:
        """The mean as an integer, as in Flink; 0 without values."""
        return self.total // self.count if self.count else 0

    def percentile(self, percent: float) -> float:
        """Return a percentile, interpolated as in Flink (commons-math's default estimate); NaN without samples."""
        values = sorted(self._samples)
        if not values:
            return math.nan
        position = percent / 100 * (len(values) + 1)
        if position < 1:
            return float(values[0])
        if position >= len(values):
            return float(values[-1])
        below = math.floor(position)
        return values[below - 1] + (position - below) * (values[below] - values[below - 1])


class CheckpointHistory:
    """The checkpoints of a job: counts, summaries and history.

    >>> history = CheckpointHistory()
    >>> for n in range(1, 31):
    ...     history.add(CheckpointStatistics(n, 100 * n, 100 * n + 40, 5, 5, 2))
    >>> history.completed, [c.checkpoint_id for c in history.latest(3)], history.duration.average
    (30, [30, 29, 28], 40)
    >>> [c.checkpoint_id for c in history.all()][-2:]
    [10, 1]
    """

    def __init__(self) -> None:
        self.completed = self.failed = self.restored = 0
        self.duration, self.state_size, self.written_size = Summary(), Summary(), Summary()
        self.latest_completed: CheckpointStatistics | None = None
        self.latest_savepoint: CheckpointStatistics | None = None
        self.latest_failed: CheckpointStatistics | None = None
        self.latest_restored: tuple[int, int, str | None] | None = None
        """(checkpoint id, epoch milliseconds, savepoint path) of the last restore."""
        self._last: deque[CheckpointStatistics] = deque(maxlen=_LAST)
        self._findable: deque[CheckpointStatistics] = deque(maxlen=_FINDABLE)
        self._by_second: deque[CheckpointStatistics] = deque(maxlen=_SECONDS)
        self._by_minute: deque[CheckpointStatistics] = deque(maxlen=_MINUTES)
        self._special: deque[CheckpointStatistics] = deque(maxlen=_SPECIAL)

    def add(self, checkpoint: CheckpointStatistics) -> None:
        """Add a completed or failed checkpoint."""
        self._last.append(checkpoint)
        self._findable.append(checkpoint)
        if checkpoint.failure is not None:
            self.failed += 1
            self.latest_failed = checkpoint
            self._special.append(checkpoint)
            return
        self.completed += 1
        self.latest_completed = checkpoint
        self.duration.add(checkpoint.duration)
        self.state_size.add(checkpoint.state_size)
        self.written_size.add(checkpoint.written_size)
        _keep_first(self._by_second, checkpoint, 1_000)
        _keep_first(self._by_minute, checkpoint, 60_000)

    def savepoint_taken(self, checkpoint_id: int, location: str) -> None:
        """Record that the last checkpoint has also written a savepoint."""
        checkpoint = self.latest_completed
        if checkpoint is not None and checkpoint.checkpoint_id == checkpoint_id:
            checkpoint = self.latest_completed = self.latest_savepoint = replace(checkpoint, savepoint=location)
            self._last[-1] = checkpoint
            self._special.append(checkpoint)

    def restored_from(self, checkpoint_id: int, time_ms: int, savepoint: str | None = None) -> None:
        """Record that the job has started from this checkpoint or savepoint."""
        self.restored += 1
        self.latest_restored = (checkpoint_id, time_ms, savepoint)

    def latest(self, count: int = _LAST) -> list[CheckpointStatistics]:
        """Return the last checkpoints, newest first."""
        return list(reversed(self._last))[:count]

    def all(self) -> list[CheckpointStatistics]:
        """Return the whole history, newest first."""
        return _newest_first((*self._last, *self._by_second, *self._by_minute, *self._special))

    def find(self, checkpoint_id: int) -> CheckpointStatistics | None:
        """Return a checkpoint, even if the history has just dropped it: clients read the list before the details."""
        known = (*self.all(), *self._findable)
        return next((found for found in known if found.checkpoint_id == checkpoint_id), None)


def _keep_first(kept: deque[CheckpointStatistics], checkpoint: CheckpointStatistics, period_ms: int) -> None:
    if not kept or kept[-1].completed // period_ms != checkpoint.completed // period_ms:
        kept.append(checkpoint)


def _newest_first(checkpoints: Iterable[CheckpointStatistics]) -> list[CheckpointStatistics]:
    by_id: dict[int, CheckpointStatistics] = {}
    for checkpoint in checkpoints:
        known = by_id.get(checkpoint.checkpoint_id)
        if known is None or known.savepoint is None:
            by_id[checkpoint.checkpoint_id] = checkpoint
    return [by_id[checkpoint_id] for checkpoint_id in sorted(by_id, reverse=True)]
