"""The window join: joins rows of both sides in the same window, when the window ends (T65)."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch, positions, repeated
from penstock.runtime.table.join_state import add_rows
from penstock.runtime.table.keys import key_values
from penstock.runtime.table.operators.keyed_join import DueKeys, KeyedJoinOperator
from penstock.runtime.table.pairs import StoredRows, expand, stored_rows
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.zones import local_to_instant

_I64 = pa.int64()
_LOCAL = pa.timestamp("us")


class WindowJoinOperator(KeyedJoinOperator):
    """All kinds of joins. ``window_end`` is the position of that column among the keys. Inputs have only inserts.

    ``zone`` is the time zone of windows if the time attribute is an instant.
    """

    state_name = "window join"

    def __init__(
        self, *arguments: Any, kind: str, window_end: int, zone: str | None = None, processing_time: bool = False
    ) -> None:
        super().__init__(*arguments)
        self.kind = kind
        self.window_end = window_end
        self.zone = zone
        self.processing_time = processing_time

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Windows of an earlier run are read with the first row or watermark."""
        super().setup(context, output)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._due = DueKeys()
        self._ends: dict[int, int] = {}
        self._known = False

    def _find_windows(self) -> None:
        self._known = True
        for row in self._state.all_rows().list:
            key = self._state.keys_by_row[row]
            self._due.add(self._last_millisecond(key[self.window_end]), key)

    def _last_millisecond(self, end: int) -> int:
        last = self._ends.get(end)
        if last is None:
            instant = end
            if self.zone is not None:
                instant = local_to_instant(pa.scalar(end, _I64).cast(_LOCAL), self.zone).cast(_I64).as_py()
            last = self._ends[end] = instant // 1000 - 1
        return last

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Rows of the left side."""
        self._keep(0, batch)

    def process2(self, batch: ColumnBatch) -> None:
        """Rows of the right side."""
        self._keep(1, batch)

    def _keep(self, number: int, batch: ColumnBatch) -> None:
        if not self._known:
            self._find_windows()
        batch = self._in_time(number, batch)
        if not len(batch):
            return
        keys = self.keys_of(number, batch)
        own = keys.spread(self._state.gather_field(number, keys.rows))
        other = keys.spread(self._state.gather_field(1 - number, keys.rows))
        rows = stored_rows(batch, len(self.types[number]))
        segments = Segments.of(keys.grouped.codes, len(keys.grouped.keys))
        if segments.order is not None:
            rows = [rows[position] for position in segments.order.to_pylist()]
        own = [add_rows(value, rows[start:end]) for value, start, end in segments.slices(own)]
        for key in keys.gathered(keys.grouped.keys):
            self._due.add(self._last_millisecond(key[self.window_end]), key)
        self.write(keys.rows, {number: keys.gathered(own)}, keys.gathered(other))
        self._emit_without_key(number, batch)

    def _in_time(self, number: int, batch: ColumnBatch) -> ColumnBatch:
        """Return the rows whose window has not ended."""
        if self.current_watermark == MIN_WATERMARK or self.processing_time:
            return batch
        codes = batch.column(self.keys[number][self.window_end]).dictionary_encode()
        late = [self._last_millisecond(end) <= self.current_watermark for end in key_values(codes.dictionary)]
        if not any(late):
            return batch
        kept = pc.invert(pa.array(late).take(codes.indices))
        self._late.inc(len(batch) - kept.true_count)
        return batch.filter(kept)

    def _emit_without_key(self, number: int, batch: ColumnBatch) -> None:
        """Emit rows with NULL in a key, which have no partner."""
        if not self._padded(number):
            return
        mask = None
        for key, null_safe in zip(self.keys[number], self.null_safe, strict=True):
            column = batch.column(key)
            if not null_safe and column.null_count:
                mask = column.is_null() if mask is None else pc.or_(mask, column.is_null())
        if mask is not None:
            self._pad(number, batch.column, pc.indices_nonzero(mask).cast(_I64))

    def _padded(self, number: int) -> bool:
        if number == 0:
            return self.kind in ("LEFT", "FULL", "ANTI")
        return self.kind in ("RIGHT", "FULL")

    def _pad(self, number: int, column: Any, rows: pa.Int64Array) -> None:
        nothing = repeated(None, len(rows), _I64)
        if number == 0:
            self.emit(self.result(column, None, rows, nothing))
        else:
            self.emit(self.result(None, column, nothing, rows))

    # -- ends of windows ----------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Join the windows that have ended."""
        if not self._known:
            self._find_windows()
        if not self.processing_time:
            self._fire(watermark)
        super().process_watermark(watermark)

    def advance_processing_time(self, now: int) -> None:
        """Join the windows that have ended, in processing time."""
        if self.processing_time:
            if not self._known:
                self._find_windows()
            self._fire(now)
        super().advance_processing_time(now)

    def next_wakeup(self) -> int | None:
        """Return the end of the next processing-time window."""
        return self._due.next if self.processing_time else None

    def _fire(self, time: int) -> None:
        keys = self._due.pop_until(time)
        if not keys:
            return
        state_rows = self.rows_of_keys(keys)
        lists = [self._state.gather_field(number, state_rows) for number in (0, 1)]
        self._state.remove(state_rows.list)
        left, right = (
            StoredRows(list(chain.from_iterable(value or () for value in values)), self.types[number])
            for number, values in enumerate(lists)
        )
        left_lengths, right_lengths = (pa.array([len(value or ()) for value in values], _I64) for values in lists)
        owners, _ = expand(left_lengths)  # the key of every left row
        left_rows, within = expand(right_lengths.take(owners))
        starts = pc.subtract(pc.cumulative_sum(right_lengths), right_lengths)
        right_rows = pc.add(starts.take(owners).take(left_rows), within)
        pairs = left_rows, right_rows
        mask = self.test(
            lambda index: left.column(index).take(pairs[0]),
            lambda index: right.column(index).take(pairs[1]),
            len(left_rows),
        )
        if mask is not None:
            left_rows, right_rows = left_rows.filter(mask), right_rows.filter(mask)
        self._emit_window(left, right, left_rows, right_rows)

    def _emit_window(
        self, left: StoredRows, right: StoredRows, left_rows: pa.Int64Array, right_rows: pa.Int64Array
    ) -> None:
        if self.kind == "SEMI":
            chosen = pc.unique(left_rows)
            self.emit(self.result(left.column, None, chosen, chosen))
        elif self.kind != "ANTI" and len(left_rows):
            self.emit(self.result(left.column, right.column, left_rows, right_rows))
        for number, (side, matched) in enumerate(((left, left_rows), (right, right_rows))):
            if self._padded(number) and len(side):
                every = positions(len(side))
                alone = every.filter(pc.invert(pc.is_in(every, matched)))
                if len(alone):
                    self._pad(number, side.column, alone)
