"""GROUP BY without a window: an aggregate that updates its result with every row (T50 to T56).

The changelog is exact: it has the results before and after every input row, as if rows were processed one by one. In
mini-batch mode, there is one change per key and batch (T18). In batch execution, there is one row per key at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.aggregates.base import Aggregate, AggregateInput, AggregateScan
from penstock.runtime.table.batch import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    ColumnBatch,
    positions,
    repeated,
)
from penstock.runtime.table.column_fields import FieldType
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows, group_rows, key_columns_of
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.user_functions import close_functions, open_functions

_I8, _I64 = pa.int8(), pa.int64()
_ZERO = pa.scalar(0, _I64)


@dataclass(slots=True)
class AggregateCall:
    """An aggregate and the input columns that it reads. ``filter`` is a BOOLEAN column."""

    aggregate: Aggregate
    arguments: list[int]
    filter: int | None = None


class GroupAggFunction(TableOperator):
    """Stores one accumulator per aggregate and key, and the number of rows per key."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend
    emits_changes = True
    """Whether every row may change a result. Windows have their results at the end."""

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        schema: pa.Schema,
        *,
        emits_update_before: bool = True,
        mini_batch: bool = False,
        always_emits: bool = False,
        emits_default: bool = False,
    ) -> None:
        self.keys = list(keys)
        self.calls = list(calls)
        self.schema = schema
        self.emits_update_before = emits_update_before
        self.mini_batch = mini_batch
        self.always_emits = always_emits
        """Whether unchanged results are emitted, which state TTL downstream needs (T51)."""
        self.emits_default = emits_default
        """Whether a batch job without rows has one result (T53)."""
        self._emitted_results = False

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: the number of rows, then the fields of every aggregate."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        fields: list[tuple[FieldType, Any]] = [(_I64, 0)]
        self._places: list[slice] = []
        for call in self.calls:
            start = len(fields)
            fields += zip(call.aggregate.fields, call.aggregate.empty, strict=True)
            self._places.append(slice(start, len(fields)))
        self._state.define("aggregates", fields)
        self._empty = tuple(initial for _, initial in fields)
        self._key_types = [self.schema.field(index).type for index in range(len(self.keys))]
        for call in self.calls:
            call.aggregate.results_at_end = not self.emits_changes or context.batch_execution

    def open(self) -> None:
        """Open the user's functions."""
        open_functions(self._user_functions(), self.context)

    def close(self) -> None:
        """Close the user's functions."""
        close_functions(self._user_functions(), self.context)

    def _user_functions(self) -> list[Any]:
        return [function for call in self.calls for function in call.aggregate.user_functions()]

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Add the rows to the state of their keys, and emit changes."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        fields = self._state.gather(rows)
        segments = Segments.of(grouped.codes, len(grouped.keys))
        signs = batch.signs()
        if signs is not None:
            signs = segments.sort(signs)
        first_counts: pa.Int64Array = fields[0]
        counts = segments.running_sum(pa.repeat(1, segments.rows) if signs is None else signs, first_counts)
        if signs is not None and pc.min(counts).as_py() < 0:
            self.process_batch(_without_unknown(batch, segments, signs, first_counts.to_pylist()), None)
            return
        emptied = None if signs is None else pc.equal(counts, _ZERO)
        is_first = None
        if emptied is not None and emptied.true_count:  # after its last row has been retracted, a key starts again
            segments, is_first = segments.split_behind(emptied)
            fields = _spread(fields, is_first, self._empty)
        scans = self._scan(batch, segments, signs, fields)
        final = [segments.last(counts), *(field for scan in scans for field in scan.fields)]
        if is_first is not None:
            final = _last_of_each(final, is_first)
        self._state.scatter(rows, final)
        if is_first is not None:
            left = final[0].to_pylist()
            self._state.remove([row for row, count in zip(rows.list, left, strict=True) if not count])
        if not self.emits_changes:
            self.note_keys(grouped, first_counts)
        elif self.context.batch_execution:
            return
        elif self.mini_batch:
            self.emit(self._change_of_each_key(grouped.keys, first_counts, scans, is_first, final))
        else:
            self.emit(self._change_of_each_row(batch, segments, fields[0], counts, scans))

    def note_keys(self, grouped: GroupedRows, first_counts: pa.Int64Array) -> None:
        """Hook for operators that emit later: receives the keys of a batch, and their row counts before it."""

    def _scan(
        self, batch: ColumnBatch, segments: Segments, signs: pa.Int64Array | None, fields: list[Any]
    ) -> list[AggregateScan]:
        scans = []
        for call, place in zip(self.calls, self._places, strict=True):
            arguments = [segments.sort(batch.column(index)) for index in call.arguments]
            mask = None
            if call.filter is not None:
                mask = pc.fill_null(segments.sort(batch.column(call.filter)), False)
            try:
                scans.append(call.aggregate.scan(AggregateInput(segments, arguments, signs, mask), fields[place]))
            except Exception as error:
                raise user_error(self.context, error, "accumulate") from None
        return scans

    # -- changes ------------------------------------------------------------------------------------------------

    def _change_of_each_row(
        self,
        batch: ColumnBatch,
        segments: Segments,
        first_counts: pa.Int64Array,
        counts: pa.Int64Array,
        scans: list[AggregateScan],
    ) -> ColumnBatch:
        inverse = None if segments.order is None else pc.inverse_permutation(segments.order)

        def in_order(column: pa.Array) -> pa.Array:
            return column if inverse is None else column.take(inverse)

        old = [in_order(segments.before(scan.initial, scan.running)) for scan in scans]
        new = [in_order(scan.running) for scan in scans]
        before = in_order(segments.before(first_counts, counts))
        return self._changes([batch.column(index) for index in self.keys], before, in_order(counts), old, new)

    def _change_of_each_key(
        self,
        keys: list[Any],
        first_counts: pa.Int64Array,
        scans: list[AggregateScan],
        is_first: pa.BooleanArray | None,
        final: list[Any],
    ) -> ColumnBatch:
        old = [scan.initial if is_first is None else scan.initial.filter(is_first) for scan in scans]
        new = [call.aggregate.results(final[place]) for call, place in zip(self.calls, self._places, strict=True)]
        keys_columns = key_columns_of(keys, self._key_types)
        return self._changes(keys_columns, first_counts, final[0], old, new)

    def _changes(
        self,
        keys: list[pa.Array],
        counts_before: pa.Int64Array,
        counts_after: pa.Int64Array,
        old: list[pa.Array],
        new: list[pa.Array],
    ) -> ColumnBatch:
        """Return changelog rows from the results before and after: retractions first, then additions."""
        existed, exists = pc.greater(counts_before, _ZERO), pc.greater(counts_after, _ZERO)
        updated = pc.and_(existed, exists)
        if not self.always_emits:
            updated = pc.and_(updated, _differ(old, new, len(updated)))
        taken = pc.and_not(existed, exists)
        if self.emits_update_before:
            taken = pc.or_(taken, updated)
        added = pc.or_(pc.and_not(exists, existed), updated)
        chosen = interleaved(taken, added)
        kinds = None
        if existed.true_count:
            kinds = pa.concat_arrays(
                [
                    pc.if_else(exists, pa.scalar(UPDATE_BEFORE, _I8), pa.scalar(DELETE, _I8)),
                    pc.if_else(existed, pa.scalar(UPDATE_AFTER, _I8), pa.scalar(INSERT, _I8)),
                ]
            ).take(chosen)
        columns = [pa.concat_arrays(both).take(chosen) for both in zip([*keys, *old], [*keys, *new], strict=True)]
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds)

    # -- batch execution ----------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """In batch execution, emit results before the final watermark."""
        if watermark == MAX_WATERMARK:
            self._emit_results()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the results of a batch job."""
        self._emit_results()

    def _emit_results(self) -> None:
        if not self.context.batch_execution:
            return
        rows = self._state.all_rows()
        if not rows.list:
            if self.emits_default and not self._emitted_results:
                self._emit_default()
            return
        self._emitted_results = True
        fields = self._state.gather(rows)
        results = [call.aggregate.results(fields[place]) for call, place in zip(self.calls, self._places, strict=True)]
        keys = [self._state.keys_by_row[row] for row in rows.list]
        columns = [*key_columns_of(keys, self._key_types), *results]
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema)))
        self._state.remove(rows.list)

    def _emit_default(self) -> None:
        self._emitted_results = True
        results = [call.aggregate.results([[value] for value in call.aggregate.empty]) for call in self.calls]
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(results, schema=self.schema)))


def interleaved(first: pa.BooleanArray, second: pa.BooleanArray) -> pa.Int64Array:
    """Return positions in two concatenated columns: for each row, first the first column's and then the second's.

    >>> interleaved(pa.array([True, False]), pa.array([True, True])).to_pylist()
    [0, 2, 3]
    """
    count = len(first)
    both = positions(2 * count)
    half = pc.shift_right(both, pa.scalar(1, _I64))
    pattern = pc.add(half, pc.multiply(pc.bit_wise_and(both, pa.scalar(1, _I64)), pa.scalar(count, _I64)))
    return pattern.filter(pa.concat_arrays([first, second]).take(pattern))


def _differ(old: list[pa.Array], new: list[pa.Array], rows: int) -> pa.BooleanArray:
    differ = repeated(False, rows, pa.bool_())
    for before, after in zip(old, new, strict=True):
        differ = pc.or_(differ, is_distinct(before, after))
    return differ


def is_distinct(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """IS DISTINCT FROM: NULL equals NULL and differs from all other values."""
    if pa.types.is_nested(left.type):  # Arrow cannot compare lists and structs
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([before != after for before, after in pairs], pa.bool_())
    unequal = pc.not_equal(left, right)
    if not left.null_count and not right.null_count:
        return unequal
    return pc.coalesce(unequal, pc.xor(left.is_null(), right.is_null()))


def _spread(fields: list[Any], is_first: pa.BooleanArray, empty: tuple[Any, ...]) -> list[Any]:
    """Return the initial fields of split segments: the first one of a key has its state, the others start empty."""
    result: list[Any] = []
    flags = is_first.to_pylist()
    for field, blank in zip(fields, empty, strict=True):
        values = iter(field.to_pylist() if isinstance(field, pa.Array) else field)
        spread = [next(values) if first else blank for first in flags]
        result.append(pa.array(spread, field.type) if isinstance(field, pa.Array) else spread)
    return result


def _last_of_each(fields: list[Any], is_first: pa.BooleanArray) -> list[Any]:
    """Return the fields at the end of the last segment of every key."""
    firsts = pc.indices_nonzero(is_first).to_pylist()
    last = [position - 1 for position in firsts[1:]] + [len(is_first) - 1]
    return [
        field.take(pa.array(last)) if isinstance(field, pa.Array) else [field[position] for position in last]
        for field in fields
    ]


def _without_unknown(
    batch: ColumnBatch, segments: Segments, signs: pa.Int64Array, counts: Sequence[int]
) -> ColumnBatch:
    """Remove retractions for keys without rows: they are ignored, as in Flink."""
    keep = [True] * segments.rows
    signs_list = signs.to_pylist()
    for count, start, end in segments.slices(counts):
        rows = count
        for position in range(start, end):
            if rows + signs_list[position] < 0:
                keep[position] = False
            else:
                rows += signs_list[position]
    mask = pa.array(keep)
    if segments.order is not None:
        kept = segments.order.filter(mask)
        return batch.take(kept.take(pc.array_sort_indices(kept)))
    return batch.filter(mask)
