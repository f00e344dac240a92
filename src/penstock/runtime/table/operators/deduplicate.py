"""Deduplication: the first or the last row of each key by time (T87)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import INSERT, UPDATE_AFTER, UPDATE_BEFORE, ColumnBatch, positions
from penstock.runtime.table.column_fields import KeyRows
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows, group_rows, key_columns_of
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.group_agg import interleaved
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.sort_keys import sort_order
from penstock.runtime.table.stored_rows import StoredColumns

_I8, _I64 = pa.int8(), pa.int64()
_ZERO, _ONE = pa.scalar(0, _I64), pa.scalar(1, _I64)
_WAITING, _DONE = 1, 2


class _Deduplicate(TableOperator):
    """Stores one row per key: whether it exists, its time, its columns."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend
    keeps_rows = True

    def __init__(self, keys: Sequence[int], schema: pa.Schema, time_column: int | None = None) -> None:
        self.keys = list(keys)
        self.schema = schema
        self.time_column = time_column
        """The column of the rowtime. None means arrival order."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._stored = StoredColumns(self.schema)
        self._keeps_rows = self.keeps_rows or context.batch_execution
        rows = self._stored.fields if self._keeps_rows else []
        self._state.define("deduplicate", [(_I64, 0), (_I64, MIN_WATERMARK), *rows])

    def times(self, batch: ColumnBatch) -> pa.Int64Array:
        """Return the rowtime of every row in milliseconds, or 0 for all in arrival order."""
        if self.time_column is None:
            return pa.repeat(_ZERO, len(batch))
        column = batch.column(self.time_column)
        if column.null_count:
            raise ValueError("the rowtime of a row is NULL: filter such rows out, or compute a value")
        return milliseconds(column)

    def batch_of(self, columns: list[pa.Array], kinds: pa.Int8Array | None = None) -> ColumnBatch:
        """Return rows of the schema."""
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds)

    def emit_all(self) -> None:
        """Emit the rows of a batch job."""
        rows = self._state.all_rows()
        if rows.list:
            self.emit(self.batch_of(self._stored.decode(self._state.gather(rows)[2:])))
            self._state.remove(rows.list)

    def process_watermark(self, watermark: int) -> None:
        """In batch execution, emit rows before the final watermark."""
        if self.context.batch_execution and watermark == MAX_WATERMARK:
            self.emit_all()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the rows of a batch job."""
        if self.context.batch_execution:
            self.emit_all()


class KeepFirstRow(_Deduplicate):
    """Keeps the first row in arrival order."""

    keeps_rows = False

    def process(self, batch: ColumnBatch) -> None:
        """Emit the first row of every new key."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        fields = self._state.gather(rows)
        segments = Segments.of(grouped.codes, len(grouped.keys))
        firsts = segments.starts if segments.order is None else segments.order.take(segments.starts)
        new = pc.equal(fields[0], _ZERO)
        chosen = firsts.filter(new)
        if not len(chosen):
            return
        if self.context.batch_execution:
            new_rows = KeyRows(rows.column.filter(new).to_pylist())
            added = batch.take(chosen)
            ones = pa.repeat(_ONE, len(chosen))
            self._state.scatter(new_rows, [ones, ones, *self._stored.encode(added.data.columns)])
            return
        self._state.scatter(rows, [pa.repeat(_ONE, len(rows.list)), *fields[1:]])
        self.emit(batch.take(chosen.take(pc.array_sort_indices(chosen))))


class KeepFirstRowByRowtime(_Deduplicate):
    """Keeps the first row by rowtime. Emits it when the watermark has passed it, so results are never updated (T13)."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Waiting rows are read from state with the first row or watermark."""
        super().setup(context, output)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._waiting: dict[int, list[Any]] = {}
        self._known = False
        self._key_types = [self.schema.field(index).type for index in self.keys]

    def _find_waiting(self) -> None:
        self._known = True
        if self.context.batch_execution:
            return
        rows = self._state.all_rows()
        if not rows.list:
            return
        status, times, *_ = self._state.gather(rows)
        for row, one, time in zip(rows.list, status.to_pylist(), times.to_pylist(), strict=True):
            if one == _WAITING:
                self._waiting.setdefault(time, []).append(self._state.keys_by_row[row])

    def process(self, batch: ColumnBatch) -> None:
        """Keep the first row of every key that has not been emitted."""
        if not self._known:
            self._find_waiting()
        times = self.times(batch)
        if self.current_watermark > MIN_WATERMARK and not self.context.batch_execution:
            in_time = pc.greater(times, pa.scalar(self.current_watermark, _I64))
            if in_time.true_count < len(batch):
                self._late.inc(len(batch) - in_time.true_count)
                batch, times = batch.filter(in_time), times.filter(in_time)
                if not len(batch):
                    return
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        status, known_times, *_ = self._state.gather(rows)
        order = sort_order([(grouped.codes, False, False), (times, False, False)])
        ends = pc.run_end_encode(grouped.codes.take(order)).run_ends.cast(_I64)
        firsts = order.take(pa.concat_arrays([pa.array([0], _I64), ends.slice(0, len(ends) - 1)]))
        first_times = times.take(firsts)
        earlier = pc.and_(pc.equal(status, pa.scalar(_WAITING, _I64)), pc.less(first_times, known_times))
        better = pc.or_(pc.equal(status, _ZERO), earlier)
        if not better.true_count:
            return
        chosen = batch.take(firsts.filter(better))
        new_times = first_times.filter(better)
        where = KeyRows(rows.column.filter(better).to_pylist())
        waiting = pa.repeat(pa.scalar(_WAITING, _I64), len(chosen))
        self._state.scatter(where, [waiting, new_times, *self._stored.encode(chosen.data.columns)])
        if not self.context.batch_execution:
            keys = self._state.keys_by_row
            for row, time in zip(where.list, new_times.to_pylist(), strict=True):
                self._waiting.setdefault(time, []).append(keys[row])

    def process_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed, in the order of their times."""
        if not self._known:
            self._find_waiting()
        due = sorted(time for time in self._waiting if time <= watermark)
        pairs = [(key, time) for time in due for key in dict.fromkeys(self._waiting.pop(time))]
        if pairs:
            self._emit_due([key for key, _ in pairs], pa.array([time for _, time in pairs], _I64))
        super().process_watermark(watermark)

    def _emit_due(self, keys: list[Any], times: pa.Int64Array) -> None:
        columns = key_columns_of(keys, self._key_types)
        rows = self._state.rows_of(GroupedRows(pa.array([], pa.int32()), keys, columns))
        status, known_times, *stored = self._state.gather(rows)
        valid = pc.and_(pc.equal(status, pa.scalar(_WAITING, _I64)), pc.equal(known_times, times))
        batch = self.batch_of(self._stored.decode(stored)).filter(valid)
        emitted = KeyRows(rows.column.filter(valid).to_pylist())
        done = pa.repeat(pa.scalar(_DONE, _I64), len(emitted.list))
        forgotten = [
            [None] * len(done) if isinstance(field, list) else field.filter(valid) for field in (known_times, *stored)
        ]
        self._state.scatter(emitted, [done, *forgotten])
        self.emit(batch)


class KeepLastRow(_Deduplicate):
    """Keeps the last row, by rowtime or in arrival order. A row with the same time replaces the previous one."""

    def __init__(
        self,
        keys: Sequence[int],
        schema: pa.Schema,
        time_column: int | None = None,
        *,
        emits_update_before: bool = True,
    ) -> None:
        super().__init__(keys, schema, time_column)
        self.keeps_rows = emits_update_before

    def process(self, batch: ColumnBatch) -> None:
        """Replace rows one by one in arrival order."""
        grouped = group_rows(batch, self.keys)
        count = len(grouped.keys)
        rows = self._state.rows_of(grouped)
        present, known_times, *stored = self._state.gather(rows)
        segments = Segments.of(grouped.codes, count)
        times = segments.sort(self.times(batch))
        order = positions(len(batch)) if segments.order is None else segments.order
        codes = segments.codes
        if self.time_column is not None:
            highest = segments.running(pc.max_element_wise, times, known_times)
            accepted = pc.greater_equal(times, segments.before(known_times, highest))
            if accepted.true_count < len(batch):
                order, codes, times = order.filter(accepted), codes.filter(accepted), times.filter(accepted)
        if not len(order):
            return
        codes = codes.cast(_I64)
        where = positions(len(order))
        begins = pc.or_(
            pc.equal(where, _ZERO),
            pc.not_equal(codes, codes.take(pc.max_element_wise(pc.subtract(where, _ONE), _ZERO))),
        )
        existed = pc.or_(pc.invert(begins), pc.equal(present.take(codes), _ONE))
        # The rows of the state, then the accepted ones: one pool for old and new rows.
        accepted_rows = batch.take(order).data.columns
        old = pc.if_else(begins, codes, pc.add(where, pa.scalar(count - 1, _I64)))
        last = pc.indices_nonzero(pa.concat_arrays([begins.slice(1), pa.array([True])])).cast(_I64)
        pool = accepted_rows
        if self._keeps_rows:
            pool = [pa.concat_arrays(both) for both in zip(self._stored.decode(stored), accepted_rows, strict=True)]
        if not self.context.batch_execution:
            self._emit_changes(pool, count, pc.array_sort_indices(order), old, existed)
        changed = KeyRows(rows.column.take(codes.take(last)).to_pylist())
        kept = self._stored.encode([column.take(last) for column in accepted_rows]) if self._keeps_rows else []
        self._state.scatter(changed, [pa.repeat(_ONE, len(last)), times.take(last), *kept])

    def _emit_changes(
        self, pool: list[pa.Array], states: int, arrival: pa.Int64Array, old: pa.Int64Array, existed: pa.BooleanArray
    ) -> None:
        existed = existed.take(arrival)
        kinds = pc.if_else(existed, pa.scalar(UPDATE_AFTER, _I8), pa.scalar(INSERT, _I8))
        if not self.keeps_rows:
            self.emit(self.batch_of([column.take(arrival) for column in pool], kinds if existed.true_count else None))
            return
        both = pa.concat_arrays([old.take(arrival), pc.add(arrival.cast(_I64), pa.scalar(states, _I64))])
        chosen = interleaved(existed, pa.repeat(True, len(arrival)))
        places = both.take(chosen)
        before = pa.repeat(pa.scalar(UPDATE_BEFORE, _I8), len(arrival))
        all_kinds = pa.concat_arrays([before, kinds]).take(chosen) if existed.true_count else None
        self.emit(self.batch_of([column.take(places) for column in pool], all_kinds))
