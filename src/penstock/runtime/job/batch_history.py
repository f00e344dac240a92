"""The last batches of a job, for its timeline."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from penstock.runtime.exchange.frames import TaskReport

_KEPT = 1000
_SECONDS = 900


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One committed batch. Times are epoch milliseconds, durations milliseconds, sizes bytes."""

    checkpoint_id: int
    start: int
    end: int
    steps: int
    records_in: int
    watermark: int
    late_records: int
    """The total of the job so far."""
    state_size: int
    written_size: int
    busy: dict[int, int] = field(default_factory=dict)
    """By vertex: the time that its busiest subtask spent in its operators."""


class StepTotals:
    """The totals of all steps since the last checkpoint: one step, or many in the continuous mode."""

    def __init__(self) -> None:
        self.began = 0.0
        self.count = 0
        self.records_in = 0
        self.written_size = 0
        self._busy: dict[tuple[int, int], float] = {}

    def add(self, reports: list[TaskReport], began: float, records_in: int) -> None:
        """Add a step. `began` is in epoch seconds."""
        if not self.count:
            self.began = began
        self.count += 1
        self.records_in += records_in
        for report in reports:
            self.written_size += report.written_bytes
            subtask = (report.vertex, report.subtask)
            self._busy[subtask] = self._busy.get(subtask, 0.0) + report.busy_seconds

    def busy_by_vertex(self) -> dict[int, int]:
        """Return the milliseconds of the busiest subtask of each vertex."""
        found: dict[int, int] = {}
        for (vertex, _), seconds in self._busy.items():
            found[vertex] = max(found.get(vertex, 0), round(seconds * 1000))
        return found


@dataclass(slots=True)
class SecondRecord:
    """The batches committed in one second: sums, the longest duration, and the last values of the rest."""

    second: int
    records_in: int = 0
    longest: int = 0
    watermark: int = 0
    late_records: int = 0
    state_size: int = 0


class BatchHistory:
    """The last thousand batches, and sums per second of the last 15 minutes.

    >>> history = BatchHistory()
    >>> for n in (1, 2, 3):
    ...     history.add(BatchRecord(n, 0, 10, 1, 5, 0, 0, 0, 0))
    >>> [batch.checkpoint_id for batch in history.since(1)]
    [2, 3]
    """

    def __init__(self) -> None:
        self._batches: deque[BatchRecord] = deque(maxlen=_KEPT)
        self._seconds: deque[SecondRecord] = deque(maxlen=_SECONDS)

    def add(self, batch: BatchRecord) -> None:
        """Add a committed batch."""
        self._batches.append(batch)
        second = batch.end // 1000
        if not self._seconds or self._seconds[-1].second != second:
            self._seconds.append(SecondRecord(second))
        sums = self._seconds[-1]
        sums.records_in += batch.records_in
        sums.longest = max(sums.longest, batch.end - batch.start)
        sums.watermark, sums.late_records, sums.state_size = batch.watermark, batch.late_records, batch.state_size

    def seconds(self) -> list[SecondRecord]:
        """Return the sums per second, oldest first. Seconds without a batch are left out."""
        return list(self._seconds)

    def since(self, checkpoint_id: int) -> list[BatchRecord]:
        """Return the batches after this one, oldest first. A batch repeated after a restart has the same number."""
        return [batch for batch in list(self._batches) if batch.checkpoint_id > checkpoint_id]
