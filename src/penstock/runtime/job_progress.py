"""What the driver knows about a running job: records, watermarks, state, metrics, restarts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.frames import Level, TaskReport


@dataclass(slots=True)
class VertexProgress:
    """One task of the job, all subtasks together."""

    name: str
    records_in: int = 0
    records_out: int = 0
    watermarks: dict[int, int] = field(default_factory=dict)
    state_bytes: dict[int, int] = field(default_factory=dict)

    @property
    def watermark(self) -> int:
        """The slowest subtask."""
        return min(self.watermarks.values(), default=MIN_WATERMARK)

    @property
    def state_size(self) -> int:
        """Bytes of keyed state."""
        return sum(self.state_bytes.values())


class JobProgress:
    """Counts committed batches only, so a replayed batch counts once."""

    def __init__(self, graph: Any) -> None:
        self.vertices = {vertex.id: VertexProgress(vertex.name) for vertex in graph.vertices}
        self._sources = {vertex.id for vertex in graph.vertices if vertex.level == 0}
        self.metrics: dict[str, Any] = {}
        self._levels: dict[str, dict[tuple[int, int], Any]] = {}  # metric -> (vertex, subtask) -> value
        self.checkpoint_id = 0
        self.restarts = 0
        self.last_error: Exception | None = None
        self.last_source_records = 0
        self.source_records = 0
        self.recent: deque[tuple[float, int, float]] = deque(maxlen=100)  # (when, source records, seconds)

    def batch(self, reports: list[TaskReport], checkpoint_id: int, seconds: float) -> None:
        """A batch was committed."""
        self.checkpoint_id = checkpoint_id
        self.last_source_records = 0
        for report in reports:
            vertex = self.vertices[report.vertex]
            vertex.records_in += report.records_in
            vertex.records_out += report.records_out
            vertex.watermarks[report.subtask] = report.watermark
            vertex.state_bytes[report.subtask] = report.state_bytes
            if report.vertex in self._sources:
                self.last_source_records += report.records_in
            for name, value in report.metrics.items():
                if type(value) is Level:
                    levels = self._levels.setdefault(name, {})
                    levels[(report.vertex, report.subtask)] = value.value
                    self.metrics[name] = combined_level(name, list(levels.values()), self.metrics)
                else:
                    self.metrics[name] = self.metrics.get(name, 0) + value
        self.source_records += self.last_source_records
        self.recent.append((time.time(), self.last_source_records, seconds))

    def records_per_second(self, now: float, over: float = 5.0) -> float:
        """Records read from the sources per second, over the last few seconds.

        :param now: as :func:`time.time`
        """
        batches = [(when, records) for when, records, _ in self.recent if when > now - over]
        if not batches:
            return 0.0
        # A job that has run for less than that: since the first batch began.
        began = min(when - seconds for when, _, seconds in self.recent)
        return sum(records for _, records in batches) / max(min(over, now - began), 1e-3)

    @property
    def watermark(self) -> int:
        """The slowest task behind an exchange: how far event time has come."""
        behind = [vertex.watermark for key, vertex in self.vertices.items() if key not in self._sources]
        return min(behind, default=MIN_WATERMARK)

    @property
    def late_records(self) -> int:
        """Records dropped because their window was gone."""
        return sum(value for name, value in self.metrics.items() if name.endswith(".numLateRecordsDropped"))

    @property
    def state_bytes(self) -> int:
        """Bytes of keyed state, as last written."""
        return sum(vertex.state_size for vertex in self.vertices.values())

    @property
    def checkpointed_at(self) -> float | None:
        """When the last batch was committed, as :func:`time.time`; None: none was."""
        return self.recent[-1][0] if self.recent else None

    def restarted(self, error: Exception) -> None:
        """The job is about to be restarted after this error."""
        self.restarts += 1
        self.last_error = error


def combined_level(name: str, levels: list[Any], totals: Mapping[str, Any]) -> Any:
    """One value for all subtasks: the smallest, the largest, the mean of all, or else the sum.

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
