"""The first of two phases of a window aggregate: combines rows of a batch with the same key and slice.

A slice is the time between two boundaries of windows, so all rows of a slice belong to the same windows. An emitted row
has the last millisecond of its slice as rowtime. The second phase assigns it to its windows and merges. Rows are held
within a batch until a watermark passes the end of a slice. The second phase counts late rows, those of one key and
slice as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.aggregates.base import AggregateInput
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.keys import encode_column, group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.group_agg import AggregateCall
from penstock.runtime.table.operators.window_table_function import WindowClock
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.window_assigners import aligned
from penstock.runtime.table.zones import local_to_instant

_I64 = pa.int64()
_LOCAL = pa.timestamp("us")


class LocalWindowAggOperator(TableOperator):
    """Emits keys, partial results, and the rowtime of the slice."""

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        clock: WindowClock,
        slice_length: int,
        offset: int,
        schema: pa.Schema,
    ) -> None:
        self.keys = list(keys)
        self.calls = list(calls)
        self.clock = clock
        self.slice_length = slice_length
        self.offset = offset
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Start without rows."""
        super().setup(context, output)
        self._held: list[ColumnBatch] = []
        self._slice = MIN_WATERMARK

    def process(self, batch: ColumnBatch) -> None:
        """Hold the rows."""
        self._held.append(batch)

    def process_watermark(self, watermark: int) -> None:
        """Emit held rows before a watermark that may end a window."""
        current = (watermark + 1 - self.offset) // self.slice_length
        if not self.clock.local or current != self._slice:
            self._slice = current
            self._emit_partial()
        super().process_watermark(watermark)

    def end_batch(self) -> None:
        """Emit held rows: nothing is kept between batches."""
        self._emit_partial()

    def end_input(self) -> None:
        """Emit the rows of a batch job."""
        self._emit_partial()

    def _emit_partial(self) -> None:
        if not self._held:
            return
        batch = ColumnBatch.concat(self._held)
        self._held = []
        times = self.clock.times(batch, self.context.processing_time())
        slices = aligned(times, self.slice_length, self.offset)
        columns = [*(batch.column(index) for index in self.keys), slices]
        keyed = ColumnBatch(pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))]))
        grouped = group_rows(keyed, range(len(columns))) if self.keys else None
        if grouped is None:
            encoded = encode_column(slices)
            codes, parts = encoded.indices, [encoded.dictionary]
        else:
            codes, parts = grouped.codes, grouped.columns
        segments = Segments.of(codes, len(parts[0]))
        results = [self._partial(call, batch, segments) for call in self.calls]
        last = pc.add(parts[-1], pa.scalar(self.slice_length - 1, _I64))
        rowtime: Any = pc.multiply(last, pa.scalar(1000, _I64)).cast(_LOCAL)
        if not self.clock.local:
            rowtime = local_to_instant(rowtime, self.clock.zone)
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays([*parts[:-1], *results, rowtime], schema=self.schema)))

    def _partial(self, call: AggregateCall, batch: ColumnBatch, segments: Segments) -> pa.Array:
        aggregate = call.aggregate
        empty = [
            [value] * segments.count if kind is None else pa.repeat(pa.scalar(value, kind), segments.count)
            for kind, value in zip(aggregate.fields, aggregate.empty, strict=True)
        ]
        arguments = [segments.sort(batch.column(index)) for index in call.arguments]
        mask = None if call.filter is None else pc.fill_null(segments.sort(batch.column(call.filter)), False)
        return aggregate.results(aggregate.scan(AggregateInput(segments, arguments, None, mask), empty).fields)
