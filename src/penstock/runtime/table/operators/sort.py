"""ORDER BY and LIMIT: temporal sort, sort of a whole batch job, limit without order (T86)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.row_buffer import RowBuffer
from penstock.runtime.table.sort_keys import SortColumn, sort_order

_I64 = pa.int64()


class TemporalSortOperator(TableOperator):
    """Emits rows in the order of their rowtime when the watermark has passed them.

    A row that is older than the last one emitted, or as old, is late and dropped (T46).
    """

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(self, order: Sequence[SortColumn], schema: pa.Schema) -> None:
        self.order = list(order)
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("sort", [(None, None), (_I64, MIN_WATERMARK)])
        self._buffer = RowBuffer(self._state, 0, [], self.schema)
        self._key = GroupedRows(pa.array([], pa.int32()), [()], [])
        self._late = context.metrics.counter("numLateRecordsDropped")

    def process(self, batch: ColumnBatch) -> None:
        """Keep the rows that are not late."""
        column = batch.column(self.order[0].column)
        if column.null_count:
            raise ValueError("the rowtime of a row is NULL: filter such rows out, or compute a value")
        if self.current_watermark > MIN_WATERMARK:
            last = self._state.gather_field(1, self._state.rows_of(self._key))[0]
            in_time = pc.greater(milliseconds(column), last)
            self._late.inc(len(batch) - in_time.true_count)
            batch = batch.filter(in_time)
        if len(batch):
            self._buffer.add(batch)

    def process_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed."""
        waiting = self._buffer.rows()
        if waiting is not None:
            times = milliseconds(waiting.column(self.order[0].column))
            due = pc.less_equal(times, pa.scalar(watermark, _I64))
            if due.true_count:
                latest = pa.array([pc.max(times.filter(due)).as_py()], _I64)
                self._state.scatter_field(1, self._state.rows_of(self._key), latest)
                self.emit(in_order(waiting.filter(due), self.order))
                self._buffer.keep(pc.invert(due))
        super().process_watermark(watermark)

    def end_batch(self) -> None:
        """Write the state."""
        self._buffer.write()


class BatchRowsOperator(TableOperator):
    """Base of operators that keep all rows of a batch job, and emit a result at the end."""

    keyed = True
    stateful = True

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: one entry per batch of rows, by its number."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self._backend = context.keyed_backend
        self._slot = self._backend.register("rows", "table state")
        self._next: int | None = None

    def result(self, rows: ColumnBatch) -> ColumnBatch:
        """Return the rows to emit, given all rows of the input."""
        raise NotImplementedError

    def process(self, batch: ColumnBatch) -> None:
        """Keep the rows. A batch job is never rescaled, so the number of a batch can be its key."""
        if self._next is None:
            self._next = max(self._backend.keys(), default=-1) + 1
        self._backend.set_current_key(self._next)
        entry = self._backend.entry
        entry[self._slot] = batch
        entry[0].dirty = True
        self._next += 1
        self._leave_key()

    def process_watermark(self, watermark: int) -> None:
        """Emit the result before the final watermark."""
        if watermark == MAX_WATERMARK:
            self._emit_result()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the result, unless the final watermark has already done so."""
        self._emit_result()

    def _emit_result(self) -> None:
        parts = []
        for number in sorted(self._backend.keys()):
            self._backend.set_current_key(number)
            entry = self._backend.entry
            if entry[self._slot] is not None:
                parts.append(entry[self._slot])
                entry[self._slot] = None
                entry[0].dirty = True
        self._leave_key()
        if parts:
            self.emit(self.result(ColumnBatch.concat(parts)))


class SortOperator(BatchRowsOperator):
    """Sorts all rows of a batch job, and returns a range of them."""

    def __init__(self, order: Sequence[SortColumn], offset: int, fetch: int | None) -> None:
        self.order = list(order)
        self.offset = offset
        self.fetch = fetch

    def result(self, rows: ColumnBatch) -> ColumnBatch:
        """Return the requested range of the sorted rows."""
        return in_order(rows, self.order)[self.offset : None if self.fetch is None else self.offset + self.fetch]


class LimitOperator(TableOperator):
    """Passes the first rows on, in arrival order."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(self, offset: int, fetch: int | None) -> None:
        self.offset = offset
        self.fetch = fetch

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: the number of rows so far."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("limit", [(_I64, 0)])
        self._key = GroupedRows(pa.array([], pa.int32()), [()], [])

    def process(self, batch: ColumnBatch) -> None:
        """Count the rows, and cut the batch."""
        row = self._state.rows_of(self._key)
        seen = self._state.gather(row)[0][0].as_py()
        end = None if self.fetch is None else self.offset + self.fetch
        if end is not None and seen >= end:
            return
        self._state.scatter(row, [pa.array([seen + len(batch)], _I64)])
        self.emit(batch[max(0, self.offset - seen) : None if end is None else end - seen])


def in_order(rows: ColumnBatch, order: Sequence[SortColumn]) -> ColumnBatch:
    """Return sorted rows."""
    if not order:
        return rows
    return rows.take(sort_order([(rows.column(key.column), key.descending, key.nulls_last) for key in order]))
