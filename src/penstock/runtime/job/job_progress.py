"""The driver's view of a running job: records, watermarks, state, metrics, restarts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.exchange.frames import Level, TaskReport
from penstock.runtime.job.batch_history import BatchHistory, BatchRecord, StepTotals
from penstock.runtime.job.checkpoint_statistics import CheckpointHistory, CheckpointStatistics
from penstock.runtime.job.exception_history import ExceptionHistory
from penstock.runtime.job.rates import Rate
from penstock.runtime.plan.offset import Offset

_SHORTEST_BATCH = 0.1  # seconds
_GAP = 0.1  # as a fraction of the batch's duration: after a shorter pause, there was more to read


RATES = ("records_in", "records_out", "bytes_in", "bytes_out", "busy_seconds", "backpressured_seconds")
"""The quantities for which subtasks have rates."""


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When a batch ran, and whether it began right after the previous one."""

    start: float
    end: float
    follows: bool
    sources: frozenset[int]

    def is_source(self, vertex: int) -> bool:
        """Whether a vertex reads from a source."""
        return vertex in self.sources

    def held_up(self, busy_seconds: float) -> float:
        """Return how long a source waited for the rest of the batch although there was more to read."""
        return max(0.0, self.end - self.start - busy_seconds) if self.follows else 0.0


@dataclass(slots=True)
class SubtaskProgress:
    """One subtask of a vertex, in committed batches only."""

    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0
    watermark: int = MIN_WATERMARK
    output_watermark: int = MIN_WATERMARK
    state_bytes: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)  # operator name and metric -> value
    backpressured_seconds: float = 0.0
    rates: dict[str, Rate] = field(default_factory=lambda: {name: Rate() for name in RATES})

    def add(self, report: TaskReport, batch: BatchTimes) -> None:
        """Add a committed batch."""
        held_up = batch.held_up(report.busy_seconds) if batch.is_source(report.vertex) else 0.0
        self.backpressured_seconds += held_up
        amounts = (
            report.records_in, report.records_out, report.bytes_in, report.bytes_out, report.busy_seconds, held_up,
        )  # fmt: skip
        for rate, amount in zip(self.rates.values(), amounts, strict=True):
            rate.add(amount, batch.start, batch.end)
        self.records_in += report.records_in
        self.records_out += report.records_out
        self.bytes_in += report.bytes_in
        self.bytes_out += report.bytes_out
        self.busy_seconds += report.busy_seconds
        self.watermark = report.watermark
        if report.output_watermark is not None:
            self.output_watermark = report.output_watermark
        self.state_bytes = report.state_bytes
        for name, value in report.metrics.items():
            self.metrics[name] = value.value if type(value) is Level else self.metrics.get(name, 0) + value


@dataclass(slots=True)
class VertexProgress:
    """One vertex of the job."""

    name: str
    subtasks: dict[int, SubtaskProgress] = field(default_factory=dict)
    earlier_in: int = 0  # before the job was rescaled
    earlier_out: int = 0

    @property
    def records_in(self) -> int:
        """Records received by all subtasks. For a source: records read."""
        return self.earlier_in + sum(subtask.records_in for subtask in self.subtasks.values())

    @property
    def records_out(self) -> int:
        """Records sent by all subtasks."""
        return self.earlier_out + sum(subtask.records_out for subtask in self.subtasks.values())

    @property
    def watermark(self) -> int:
        """The minimum over all subtasks."""
        return min((subtask.watermark for subtask in self.subtasks.values()), default=MIN_WATERMARK)

    @property
    def output_watermark(self) -> int:
        """The minimum over all subtasks of the watermark sent to other tasks."""
        return min((subtask.output_watermark for subtask in self.subtasks.values()), default=MIN_WATERMARK)

    @property
    def state_size(self) -> int:
        """Bytes of keyed state."""
        return sum(subtask.state_bytes for subtask in self.subtasks.values())

    def rescaled(self) -> None:
        """Continue at another parallelism: totals continue, and subtasks report the rest again."""
        self.earlier_in, self.earlier_out = self.records_in, self.records_out
        self.subtasks.clear()


class JobProgress:
    """The progress of a job in committed batches only, so that a replayed batch counts once."""

    def __init__(self, graph: Any) -> None:
        self.vertices = {vertex.id: VertexProgress(vertex.name) for vertex in graph.vertices}
        self._sources = frozenset(vertex.id for vertex in graph.vertices if vertex.level == 0)
        self.metrics: dict[str, Any] = {}
        self._levels: dict[str, dict[tuple[int, int], Any]] = {}  # metric -> (vertex, subtask) -> value
        self.checkpoint_id = 0
        self.restarts = 0
        self.last_error: Exception | None = None
        self.last_source_records = 0
        self.source_records = 0
        self.recent: deque[tuple[float, int, float]] = deque(maxlen=100)  # (when, source records, seconds)
        self.checkpoints = CheckpointHistory()
        self.exceptions = ExceptionHistory()
        self.batches = BatchHistory()
        self._steps = StepTotals()
        self.committed = Offset()  # where the sources are after the last batch
        self.pending: dict[str, dict[str, int]] = {}  # records after that, by source and split, where known

    def batch(self, reports: list[TaskReport], checkpoint_id: int, seconds: float, *, checkpoint: bool = True) -> None:
        """Add a batch. With `checkpoint`, it was also committed."""
        self.last_source_records = 0
        now = time.time()
        times = self._times(now, seconds)
        changed: set[str] = set()
        for report in reports:
            subtasks = self.vertices[report.vertex].subtasks
            subtask = subtasks.get(report.subtask)
            if subtask is None:
                subtask = subtasks[report.subtask] = SubtaskProgress()
            subtask.add(report, times)
            if report.vertex in self._sources:
                self.last_source_records += report.records_in
            for name, value in report.metrics.items():
                if type(value) is Level:
                    self._levels.setdefault(name, {})[(report.vertex, report.subtask)] = value.value
                    changed.add(name)
                else:
                    self.metrics[name] = self.metrics.get(name, 0) + value
        for name in changed:
            self.metrics[name] = combined_level(name, list(self._levels[name].values()), self.metrics)
        self.source_records += self.last_source_records
        self._note_recent(now, seconds, checkpoint=checkpoint)
        self._steps.add(reports, now - seconds, self.last_source_records)
        if checkpoint:
            self.checkpoint_id = checkpoint_id
            self.checkpoints.add(self._statistics(reports, checkpoint_id, now, seconds))
            self.batches.add(self._record(checkpoint_id, now))
            self._steps = StepTotals()

    def _note_recent(self, now: float, seconds: float, *, checkpoint: bool) -> None:
        records = self.last_source_records
        if not checkpoint and self.recent:
            when, before, took = self.recent[-1]
            if now - when + took < _SHORTEST_BATCH:  # there may be hundreds of steps per second: combine them
                self.recent[-1] = (now, before + records, now - when + took)
                return
        self.recent.append((now, records, seconds))

    def _times(self, now: float, seconds: float) -> BatchTimes:
        start = now - seconds
        follows = bool(self.recent) and start - self.recent[-1][0] < _GAP * seconds
        return BatchTimes(start, now, follows, self._sources)

    def _statistics(
        self, reports: list[TaskReport], checkpoint_id: int, now: float, seconds: float
    ) -> CheckpointStatistics:
        completed = int(now * 1000)
        return CheckpointStatistics(
            checkpoint_id,
            triggered=completed - int(seconds * 1000),
            completed=completed,
            state_size=self.state_bytes,
            written_size=sum(report.written_bytes for report in reports),
            subtasks=sum(len(vertex.subtasks) for vertex in self.vertices.values()),
            records=self.last_source_records,
        )

    def _record(self, checkpoint_id: int, now: float) -> BatchRecord:
        steps = self._steps
        return BatchRecord(
            checkpoint_id,
            start=round(steps.began * 1000),
            end=round(now * 1000),
            steps=steps.count,
            records_in=steps.records_in,
            watermark=self.watermark,
            late_records=self.late_records,
            state_size=self.state_bytes,
            written_size=steps.written_size,
            busy=steps.busy_by_vertex(),
        )

    def records_per_second(self, now: float, over: float = 5.0) -> float:
        """Return the records read from the sources per second, over the last few seconds.

        :param now: like :func:`time.time`
        """
        batches = [(when, records) for when, records, _ in self.recent if when > now - over]
        if not batches:
            return 0.0
        # A job that has run for less time: since its first batch began.
        began = min(when - seconds for when, _, seconds in self.recent)
        return sum(records for _, records in batches) / max(min(over, now - began), 1e-3)

    @property
    def watermark(self) -> int:
        """The minimum over all vertices after an exchange: the event time that the job has reached."""
        behind = [vertex.watermark for key, vertex in self.vertices.items() if key not in self._sources]
        return min(behind, default=MIN_WATERMARK)

    @property
    def late_records(self) -> int:
        """Records dropped because their window had expired."""
        return sum(value for name, value in self.metrics.items() if name.endswith(".numLateRecordsDropped"))

    @property
    def state_bytes(self) -> int:
        """Bytes of keyed state when last written."""
        return sum(vertex.state_size for vertex in self.vertices.values())

    @property
    def checkpointed_at(self) -> float | None:
        """When the last batch was committed, like :func:`time.time`; None if none was."""
        return self.recent[-1][0] if self.recent else None

    def restarted(self, error: Exception) -> None:
        """Record an error that restarts the job."""
        self.restarts += 1
        self.last_error = error
        self.exceptions.add(error)

    def failed(self, error: BaseException) -> None:
        """Record the error that has ended the job."""
        self.exceptions.add(error)


def combined_level(name: str, levels: list[Any], totals: Mapping[str, Any]) -> Any:
    """Combine the values of all subtasks: the minimum, the maximum, the total mean, or otherwise the sum.

    >>> combined_level("sizes.min", [3, 5], {}), combined_level("open_sessions", [3, 5], {})
    (3, 8)
    """
    metric, _, suffix = name.rpartition(".")
    if not all(isinstance(level, Number) for level in levels):
        return levels[-1]
    if suffix in ("min", "max"):
        return min(levels) if suffix == "min" else max(levels)
    if suffix == "mean" and totals.get(f"{metric}.count"):
        return totals.get(f"{metric}.sum", 0) / totals[f"{metric}.count"]
    return sum(levels)
