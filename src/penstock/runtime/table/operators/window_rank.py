"""Top-N and deduplication of windows: emitted once, when the watermark passes the window's end (T66)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.keys import GroupedRows, key_columns_of
from penstock.runtime.table.operators.rank import RankOperator
from penstock.runtime.table.window_ends import WindowEnds


class WindowRankOperator(RankOperator):
    """Ranks rows with window columns. ``window_end`` is the position of that column among the keys."""

    emits_changes = False

    def __init__(self, *arguments: Any, window_end: int, zone: str | None, processing_time: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.window_end = window_end
        self.zone = zone
        """The zone of windows if the time attribute is an instant; None if it is a TIMESTAMP."""
        self.processing_time = processing_time

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Open windows are read from state with the first row or watermark."""
        super().setup(context, output)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._ends = WindowEnds(self.window_end, self.zone)
        self._known = False
        self._key_types = [self.input_schema.field(index).type for index in self.keys]

    def _find_open_windows(self) -> None:
        self._known = True
        if not self.context.batch_execution:
            self._ends.add(self._state.keys_by_row[row] for row in self._state.all_rows().list)

    def process(self, batch: ColumnBatch) -> None:
        """Rank the rows that are not late."""
        if not self._known:
            self._find_open_windows()
        if not self.processing_time and not self.context.batch_execution:
            kept = self._ends.without_late(batch, self.keys[self.window_end], self.current_watermark)
            self._late.inc(len(batch) - len(kept))
            batch = kept
        if len(batch):
            super().process(batch)

    def note_keys(self, grouped: GroupedRows, counts: pa.Int64Array) -> None:
        """Record the ends of new windows."""
        if not self.context.batch_execution:
            new = pc.indices_nonzero(pc.equal(counts, pa.scalar(0, pa.int64()))).to_pylist()
            self._ends.add(grouped.keys[position] for position in new)

    def process_watermark(self, watermark: int) -> None:
        """Emit the windows that have ended."""
        if not self._known:
            self._find_open_windows()
        if not self.processing_time:
            self._fire(watermark)
        super().process_watermark(watermark)

    def advance_processing_time(self, now: int) -> None:
        """Emit the processing-time windows that have ended."""
        if not self._known:
            self._find_open_windows()
        if self.processing_time:
            self._fire(now)
        super().advance_processing_time(now)

    def next_wakeup(self) -> int | None:
        """Return the end of the next processing-time window."""
        return self._ends.next() if self.processing_time else None

    def _fire(self, time: int) -> None:
        keys = self._ends.take_due(time)
        if keys:
            columns = key_columns_of(keys, self._key_types)
            self.emit_range(self._state.rows_of(GroupedRows(pa.array([], pa.int32()), keys, columns)))
