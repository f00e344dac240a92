"""Window aggregates: one row per window and key when the watermark passes the window's end (T62).

The window is part of the key, so the state is the same as that of GROUP BY. The ends of windows are kept in memory by
key, and read from the state when the operator starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_fields import KeyRows
from penstock.runtime.table.keys import GroupedRows, key_columns_of
from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
from penstock.runtime.table.window_ends import WindowEnds

_I64 = pa.int64()


class WindowAggOperator(GroupAggFunction):
    """Aggregates rows with window columns. ``window_end`` is the position of that column among the keys."""

    emits_changes = False

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        schema: pa.Schema,
        *,
        window_end: int,
        zone: str | None = None,
        processing_time: bool = False,
    ) -> None:
        super().__init__(keys, calls, schema)
        self.window_end = window_end
        self.zone = zone
        """The zone of windows if the time attribute is an instant; None if it is a TIMESTAMP."""
        self.processing_time = processing_time

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Prepare to find the open windows."""
        super().setup(context, output)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._ends = WindowEnds(self.window_end, self.zone)
        self._known = False

    def _find_open_windows(self) -> None:
        """Read the windows in the state of an earlier run, once, before the first row or watermark."""
        self._known = True
        if not self.context.batch_execution:
            self._ends.add(self._state.keys_by_row[row] for row in self._state.all_rows().list)

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Add the rows that are not late to the state of their windows."""
        if not self._known:
            self._find_open_windows()
        if not self.processing_time:
            kept = self._ends.without_late(batch, self.keys[self.window_end], self.current_watermark)
            self._late.inc(len(batch) - len(kept))
            if not len(kept):
                return
            batch = kept
        super().process(batch)

    def note_keys(self, grouped: GroupedRows, first_counts: pa.Int64Array) -> None:
        """Record the ends of new windows: results are emitted only then."""
        if self.context.batch_execution:
            return
        new = pc.indices_nonzero(pc.equal(first_counts, pa.scalar(0, _I64))).to_pylist()
        self._ends.add(grouped.keys[position] for position in new)

    # -- ends of windows ----------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Emit the windows that end at the watermark or earlier, oldest first."""
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
        if not keys:
            return
        columns = key_columns_of(keys, self._key_types)
        rows = self._state.rows_of(GroupedRows(pa.array([], pa.int32()), keys, columns))
        fields = self._state.gather(rows)
        results = [call.aggregate.results(fields[place]) for call, place in zip(self.calls, self._places, strict=True)]
        batch = ColumnBatch(pa.RecordBatch.from_arrays([*columns, *results], schema=self.schema))
        self._remove(rows)
        alive = pc.greater(fields[0], pa.scalar(0, _I64))
        self.emit(batch if alive.true_count == len(keys) else batch.filter(alive))

    def _remove(self, rows: KeyRows) -> None:
        self._state.remove(rows.list)
