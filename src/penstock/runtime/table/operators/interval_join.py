"""The interval join: rows of two streams whose times are close to each other (T73).

A pair matches if ``lower <= right time - left time <= upper``. A row is kept until it can have no more partners. Then a
row of an outer side that never had a partner is padded with NULL.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch, positions, repeated
from penstock.runtime.table.operators.keyed_join import BatchKeys, DueKeys, KeyedJoinOperator
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.pairs import StoredRow, StoredRows, expand, stored_rows

_I64 = pa.int64()

Entry = list[Any]
"""A row in state: its time in milliseconds, whether it had a partner, its values."""


class IntervalJoinOperator(KeyedJoinOperator):
    """Inner and outer joins in event time or processing time. ``time_columns`` are None for processing time."""

    state_name = "interval join"

    def __init__(
        self,
        *arguments: Any,
        outer: tuple[bool, bool],
        time_columns: tuple[int, int] | None,
        lower: int,
        upper: int,
    ) -> None:
        super().__init__(*arguments)
        self.outer = outer
        self.time_columns = time_columns
        self.lower = lower
        self.upper = upper
        self.kept_for = (max(0, upper), max(0, -lower))
        """How long rows of each side are kept after their own time."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Rows of an earlier run are read with the first row or watermark."""
        super().setup(context, output)
        self._due = DueKeys()
        self._known = False

    def _find_rows(self) -> None:
        self._known = True
        rows = self._state.all_rows()
        for number, kept in enumerate(self.kept_for):
            for row, entries in zip(rows.list, self._state.gather_field(number, rows), strict=True):
                for time, _, _ in entries or ():
                    self._due.add(time + kept, self._state.keys_by_row[row])

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Rows of the left side."""
        self._join(0, batch)

    def process2(self, batch: ColumnBatch) -> None:
        """Rows of the right side."""
        self._join(1, batch)

    def _join(self, number: int, batch: ColumnBatch) -> None:
        if not self._known:
            self._find_rows()
        times = self._times(number, batch)
        keys = self.keys_of(number, batch)
        own = keys.spread(self._state.gather_field(number, keys.rows))
        other = keys.spread(self._state.gather_field(1 - number, keys.rows))
        entries: list[Entry] = list(chain.from_iterable(value or () for value in other))
        partners = StoredRows([entry[2] for entry in entries], self.types[1 - number])
        mine, theirs = self._pairs(number, batch, times, keys, other, entries, partners)
        had_partner: set[int] = set()
        if self.outer[number]:
            had_partner = set(pc.unique(mine).to_pylist())
        if self.outer[1 - number]:
            for place in pc.unique(theirs).to_pylist():
                entries[place][1] = True
        if len(mine):
            sides = (batch.column, partners.column) if number == 0 else (partners.column, batch.column)
            rows = (mine, theirs) if number == 0 else (theirs, mine)
            self.emit(self.result(*sides, *rows))
        alone = self._store(number, batch, times, keys, own, had_partner)
        self.write(keys.rows, {number: keys.gathered(own)}, keys.gathered(other))
        if alone and self.outer[number]:
            self._pad(number, batch.column, pa.array(alone, _I64))

    def _times(self, number: int, batch: ColumnBatch) -> pa.Int64Array:
        if self.time_columns is None:
            return repeated(self.context.processing_time(), len(batch), _I64)
        column = batch.column(self.time_columns[number])
        if column.null_count:
            raise ValueError("the rowtime of a row is NULL: filter such rows out before the interval join")
        return milliseconds(column)

    def _pairs(
        self,
        number: int,
        batch: ColumnBatch,
        times: pa.Int64Array,
        keys: BatchKeys,
        other: list[Any],
        entries: list[Entry],
        partners: StoredRows,
    ) -> tuple[pa.Int64Array, pa.Int64Array]:
        lengths = pa.array([len(value or ()) for value in other], _I64)
        mine, within = expand(lengths.take(keys.codes))
        if not len(mine):
            return mine, mine
        starts = pc.subtract(pc.cumulative_sum(lengths), lengths)
        theirs = pc.add(starts.take(keys.codes).take(mine), within)
        stored = pa.array([entry[0] for entry in entries], _I64)
        first, second = times.take(mine), stored.take(theirs)
        distance = pc.subtract(second, first) if number == 0 else pc.subtract(first, second)
        fits = pc.and_(
            pc.greater_equal(distance, pa.scalar(self.lower, _I64)),
            pc.less_equal(distance, pa.scalar(self.upper, _I64)),
        )
        mine, theirs = mine.filter(fits), theirs.filter(fits)

        def own_column(index: int) -> pa.Array:
            return batch.column(index).take(mine)

        def other_column(index: int) -> pa.Array:
            return partners.column(index).take(theirs)

        sides = (own_column, other_column) if number == 0 else (other_column, own_column)
        mask = self.test(*sides, len(mine))
        return (mine, theirs) if mask is None else (mine.filter(mask), theirs.filter(mask))

    def _store(
        self,
        number: int,
        batch: ColumnBatch,
        times: pa.Int64Array,
        keys: BatchKeys,
        own: list[Any],
        had_partner: set[int],
    ) -> list[int]:
        """Store rows that may still get partners. Return rows that never had one and will not get one."""
        now = self.context.processing_time() if self.time_columns is None else self.current_watermark
        kept = self.kept_for[number]
        live = None if keys.live is None else set(keys.live)
        rows = stored_rows(batch, len(self.types[number]))
        alone: list[int] = []
        names = keys.grouped.keys
        columns = zip(keys.codes.to_pylist(), times.to_pylist(), rows, strict=True)
        for place, (code, time, row) in enumerate(columns):
            matched = place in had_partner
            if time + kept < now or (live is not None and code not in live):
                if not matched:
                    alone.append(place)
                continue
            entry: Entry = [time, matched, row]
            if own[code] is None:
                own[code] = [entry]
            else:
                own[code].append(entry)
            self._due.add(time + kept, names[code])
        return alone

    def _pad(self, number: int, column: Any, rows: pa.Int64Array) -> None:
        nothing = repeated(None, len(rows), _I64)
        if number == 0:
            self.emit(self.result(column, None, rows, nothing))
        else:
            self.emit(self.result(None, column, nothing, rows))

    # -- time ---------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Drop rows that are too old. Results may be behind the watermark by the size of the interval."""
        if not self._known:
            self._find_rows()
        if self.time_columns is None:
            super().process_watermark(watermark)
            return
        self._expire(watermark)
        self.current_watermark = watermark
        held_back = watermark if watermark == MAX_WATERMARK else watermark - max(self.kept_for)
        if held_back > MIN_WATERMARK:
            self.output.emit_watermark(held_back)

    def advance_processing_time(self, now: int) -> None:
        """Drop rows that are too old, in processing time."""
        if self.time_columns is None:
            if not self._known:
                self._find_rows()
            self._expire(now)
        super().advance_processing_time(now)

    def next_wakeup(self) -> int | None:
        """Return when the next row expires."""
        first = self._due.next if self.time_columns is None else None
        return None if first is None else first + 1

    def _expire(self, time: int) -> None:
        keys = self._due.pop_until(time - 1)
        if not keys:
            return
        rows = self.rows_of_keys(keys)
        fields: dict[int, list[Any]] = {}
        for number, kept in enumerate(self.kept_for):
            alone: list[StoredRow] = []
            remaining: list[Any] = []
            for entries in self._state.gather_field(number, rows):
                left = [entry for entry in entries or () if entry[0] + kept >= time]
                if self.outer[number]:
                    alone += [entry[2] for entry in entries or () if entry[0] + kept < time and not entry[1]]
                remaining.append(left or None)
            fields[number] = remaining
            if alone:
                self._pad(number, StoredRows(alone, self.types[number]).column, positions(len(alone)))
        self.write(rows, fields)
