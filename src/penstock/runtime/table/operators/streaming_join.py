"""The regular join: stores the rows of both sides and joins every new row with those of the other side (T70 to T72).

While a batch of one side is processed, the other side's rows do not change. Therefore all pairs of the batch are found
and tested at once, in columns. Only the partner counts of an outer side change from row to row; they are running sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.table.batch import DELETE, INSERT, ColumnBatch, positions, repeated
from penstock.runtime.table.expressions import EvaluationContext, Expr
from penstock.runtime.table.join_state import Form, SideRows, add_rows, change_count, change_partners
from penstock.runtime.table.keys import GroupedRows
from penstock.runtime.table.operators.keyed_join import KeyedJoinOperator
from penstock.runtime.table.pairs import expand, stored_rows, sums_of_runs
from penstock.runtime.table.segments import Segments

_I64, _I8 = pa.int64(), pa.int8()
_ZERO, _ONE = pa.scalar(0, _I64), pa.scalar(1, _I64)
_NO_ROW = pa.scalar(None, _I64)
_INSERT, _DELETE = pa.scalar(INSERT, _I8), pa.scalar(DELETE, _I8)


@dataclass(slots=True)
class JoinSide:
    """One input of a join."""

    types: Sequence[pa.DataType]
    """The columns of the input. Further columns are keys that are computed for the join."""
    keys: Sequence[int]
    form: Form
    outer: bool = False
    """Whether rows without a partner are in the result."""


@dataclass(slots=True)
class _Pairs:
    """Rows of a batch with rows of the other side."""

    own: pa.Int64Array
    other: pa.Int64Array
    matches: pa.Int64Array
    """The number of partners of each row of the batch."""


@dataclass(slots=True)
class _Changed:
    """Pairs whose row of the other side gets its first partner (``appeared``) or loses its last one."""

    own: pa.Int64Array
    other: pa.Int64Array
    appeared: pa.BooleanArray


class StreamingJoinOperator(KeyedJoinOperator):
    """Inner, outer, semi and anti joins. ``kind`` is one of INNER, LEFT, RIGHT, FULL, SEMI, ANTI.

    ``null_safe`` tells for each key column whether NULL equals NULL. Otherwise a row with NULL has no partner.
    """

    def __init__(
        self,
        left: JoinSide,
        right: JoinSide,
        kind: str,
        null_safe: Sequence[bool],
        condition: Expr | None,
        schema: pa.Schema,
        context: EvaluationContext,
    ) -> None:
        super().__init__((left.types, right.types), (left.keys, right.keys), (), null_safe, condition, schema, context)
        self.sides = (left, right)
        self.kind = kind

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Rows of the left side."""
        self._join(0, batch)

    def process2(self, batch: ColumnBatch) -> None:
        """Rows of the right side."""
        self._join(1, batch)

    def _join(self, number: int, batch: ColumnBatch) -> None:
        other_side = self.sides[1 - number]
        keys = self.keys_of(number, batch)
        own = keys.spread(self._state.gather_field(number, keys.rows))
        other = keys.spread(self._state.gather_field(1 - number, keys.rows))
        if other_side.form is Form.NUMBER:
            numbers = pa.array([value or 0 for value in other], _I64)
            pairs = _Pairs(_none(), _none(), numbers.take(keys.codes))
            partners = SideRows(Form.ROWS, [], other_side.types)
        else:
            partners = SideRows(other_side.form, other, other_side.types)
            pairs = self._pairs(number, batch, keys.codes, partners)
        signs = batch.signs()
        changed = self._change_partners(pairs, partners, signs) if other_side.form is Form.PARTNERS else None
        result = self._result(number, batch, pairs, partners, changed)
        self._store(number, batch, keys.grouped, own, signs, pairs.matches)
        # Write the pages of these keys, including partner counts that were changed in place.
        self.write(keys.rows, {number: keys.gathered(own)}, keys.gathered(other))
        if result is not None:
            self.emit(result)

    def _pairs(self, number: int, batch: ColumnBatch, codes: pa.Int64Array, partners: SideRows) -> _Pairs:
        """Return all pairs that satisfy the condition, in the order of the batch."""
        lengths = pa.array(partners.lengths, _I64)
        counts = lengths.take(codes)
        own, within = expand(counts)
        starts = pc.subtract(pc.cumulative_sum(lengths), lengths)
        other = pc.add(starts.take(codes).take(own), within)
        times = None if partners.times is None else pa.array(partners.times, _I64)

        def own_column(index: int) -> pa.Array:
            return batch.column(index).take(own)

        def other_column(index: int) -> pa.Array:
            return partners.rows.column(index).take(other)

        sides = (own_column, other_column) if number == 0 else (other_column, own_column)
        mask = self.test(*sides, len(own))
        if mask is None:
            return _Pairs(own, other, counts if times is None else sums_of_runs(times.take(other), counts))
        numbers = mask.cast(_I64)
        if times is not None:
            numbers = pc.multiply(numbers, times.take(other))
        return _Pairs(own.filter(mask), other.filter(mask), sums_of_runs(numbers, counts))

    def _change_partners(self, pairs: _Pairs, partners: SideRows, signs: pa.Int64Array | None) -> _Changed | None:
        """Update the partner counts of the other side's rows, and find those that change from or to zero."""
        if not len(pairs.own):
            return None
        encoded = pairs.other.dictionary_encode()
        segments = Segments.of(encoded.indices, len(encoded.dictionary))
        deltas = repeated(1, len(pairs.own), _I64) if signs is None else segments.sort(signs.take(pairs.own))
        touched = [partners.entries[position] for position in encoded.dictionary.to_pylist()]
        initial = pa.array([entry[1] for entry in touched], _I64)
        running = segments.running_sum(deltas, initial)
        for entry, count in zip(touched, segments.last(running).to_pylist(), strict=True):
            entry[1] = count
        before = segments.unsort(segments.before(initial, running))
        after = segments.unsort(running)
        appeared = pc.and_(pc.equal(before, _ZERO), pc.greater(after, _ZERO))
        vanished = pc.and_(pc.greater(before, _ZERO), pc.equal(after, _ZERO))
        mask = pc.or_(appeared, vanished)
        return _Changed(pairs.own.filter(mask), pairs.other.filter(mask), appeared.filter(mask))

    # -- results ------------------------------------------------------------------------------------------------

    def _result(
        self, number: int, batch: ColumnBatch, pairs: _Pairs, partners: SideRows, changed: _Changed | None
    ) -> ColumnBatch | None:
        if self.kind in ("SEMI", "ANTI"):
            return self._left_rows(number, batch, pairs, partners, changed)
        return self._joined_rows(number, batch, pairs, partners, changed)

    def _left_rows(
        self, number: int, batch: ColumnBatch, pairs: _Pairs, partners: SideRows, changed: _Changed | None
    ) -> ColumnBatch | None:
        """For semi and anti joins: return left rows with partners, or those without."""
        anti = self.kind == "ANTI"
        if number == 0:
            if anti and self.context.batch_execution:
                no_key = self._without_key(batch)
                return None if no_key is None else self._selected(batch.filter(no_key))
            mask = pc.equal(pairs.matches, _ZERO) if anti else pc.greater(pairs.matches, _ZERO)
            return self._selected(batch.filter(mask))
        if changed is None or (anti and self.context.batch_execution):
            return None
        comes = pc.invert(changed.appeared) if anti else changed.appeared
        kinds = pc.if_else(comes, _INSERT, _DELETE)
        return self._assemble(number, batch, partners, repeated(None, len(kinds), _I64), changed.other, kinds)

    def _selected(self, batch: ColumnBatch) -> ColumnBatch:
        width = len(self.sides[0].types)
        columns = batch.data.columns[:width] or [positions(len(batch))]
        schema = self.schema if width else batch.data.schema
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema), batch.kinds)

    def _without_key(self, batch: ColumnBatch) -> pa.BooleanArray | None:
        mask = None
        for key, null_safe in zip(self.sides[0].keys, self.null_safe, strict=True):
            column = batch.column(key)
            if not null_safe and column.null_count:
                mask = column.is_null() if mask is None else pc.or_(mask, column.is_null())
        return mask

    def _joined_rows(
        self, number: int, batch: ColumnBatch, pairs: _Pairs, partners: SideRows, changed: _Changed | None
    ) -> ColumnBatch | None:
        """Return pairs, and rows without partner, in the order of row-by-row processing."""
        inner = self.kind == "INNER"
        signs = batch.signs()
        kinds = _kinds(batch, pairs.own, signs, keep=inner)
        own, other = pairs.own, pairs.other
        later = self.context.batch_execution  # rows without partner are known only at the end
        parts: list[tuple[pa.Array, pa.Array, pa.Array, pa.Array]] = []
        if self.sides[number].outer:
            alone = pc.equal(pairs.matches, _ZERO)
            if later:
                alone = self._never_matching(number, batch)
            where = pc.indices_nonzero(alone).cast(_I64)
            pads = _kinds(batch, where, signs, keep=False)
            if pads is None:
                pads = repeated(INSERT, len(where), _I8)
            parts.append((where, repeated(None, len(where), _I64), pads, _order(where, 1)))
        if changed is not None and self.sides[1 - number].outer and not later:
            phase = pc.if_else(changed.appeared, pa.scalar(0, _I64), pa.scalar(2, _I64))
            pads = pc.if_else(changed.appeared, _DELETE, _INSERT)
            nothing = repeated(None, len(pads), _I64)
            parts.append((nothing, changed.other, pads, pc.add(_order(changed.own, 0), phase)))
        parts = [part for part in parts if len(part[2])]
        if not parts:
            return self._assemble(number, batch, partners, own, other, kinds)
        if kinds is None:
            kinds = repeated(INSERT, len(own), _I8)
        columns = list(zip((own, other, kinds, _order(own, 1)), *parts, strict=True))
        own, other, kinds, order = (pa.concat_arrays(list(column)) for column in columns)
        sorted_ = pc.array_sort_indices(order)
        own, other, kinds = own.take(sorted_), other.take(sorted_), kinds.take(sorted_)
        return self._assemble(number, batch, partners, own, other, kinds)

    def _never_matching(self, number: int, batch: ColumnBatch) -> pa.BooleanArray:
        mask = repeated(False, len(batch), pa.bool_())
        for key, null_safe in zip(self.sides[number].keys, self.null_safe, strict=True):
            if not null_safe:
                mask = pc.or_(mask, batch.column(key).is_null())
        return mask

    def _assemble(
        self,
        number: int,
        batch: ColumnBatch,
        partners: SideRows,
        own: pa.Int64Array,
        other: pa.Int64Array,
        kinds: pa.Int8Array | None,
    ) -> ColumnBatch | None:
        """Build result rows from positions in the batch and in the other side's rows. NULL means no row."""
        if not len(own):
            return None
        if partners.times is not None:  # a row that occurs twice
            times = pc.fill_null(pa.array(partners.times, _I64).take(other), 1)
            repeat, _ = expand(times)
            own, other = own.take(repeat), other.take(repeat)
            kinds = None if kinds is None else kinds.take(repeat)
        semi = self.kind in ("SEMI", "ANTI")
        own_width, other_width = len(self.sides[number].types), len(self.sides[1 - number].types)
        own_columns = [] if semi else [batch.column(index).take(own) for index in range(own_width)]
        other_columns = [partners.rows.column(index).take(other) for index in range(other_width)]
        columns = [*own_columns, *other_columns] if number == 0 else [*other_columns, *own_columns]
        if kinds is not None and not pc.any(kinds.cast(pa.bool_())).as_py():
            kinds = None
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds)

    # -- state --------------------------------------------------------------------------------------------------

    def _store(
        self,
        number: int,
        batch: ColumnBatch,
        grouped: GroupedRows,
        own: list[Any],
        signs: pa.Int64Array | None,
        matches: pa.Int64Array,
    ) -> None:
        """Add the batch to the rows of its side. Keys that never match are not written."""
        side = self.sides[number]
        if side.form is Form.NUMBER:
            segments = Segments.of(grouped.codes, len(grouped.keys))
            deltas = repeated(1, len(batch), _I64) if signs is None else segments.sort(signs)
            initial = pa.array([value or 0 for value in own], _I64)
            own[:] = [count or None for count in segments.last(segments.running_sum(deltas, initial)).to_pylist()]
            return
        rows = stored_rows(batch, len(side.types))
        if side.form is Form.ROWS:
            segments = Segments.of(grouped.codes, len(grouped.keys))
            if segments.order is not None:
                rows = [rows[position] for position in segments.order.to_pylist()]
            own[:] = [add_rows(value, rows[start:end]) for value, start, end in segments.slices(own)]
            return
        codes = grouped.codes.to_pylist()
        changes = [1] * len(rows) if signs is None else signs.to_pylist()
        if side.form is Form.COUNTS:
            for code, row, sign in zip(codes, rows, changes, strict=True):
                own[code] = change_count(own[code], row, sign)
            return
        for code, row, sign, partners in zip(codes, rows, changes, matches.to_pylist(), strict=True):
            own[code] = change_partners(own[code], row, sign, partners)

    # -- batch execution ----------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """In batch execution, emit rows without partner before the final watermark."""
        if watermark == MAX_WATERMARK:
            self._emit_without_partner()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the remaining rows of a batch job."""
        self._emit_without_partner()

    def _emit_without_partner(self) -> None:
        if not self.context.batch_execution:
            return
        state_rows = self._state.all_rows()
        if not state_rows.list:
            return
        for number, side in enumerate(self.sides):
            if not side.outer and not (self.kind == "ANTI" and number == 0):
                continue
            stored = SideRows(side.form, self._state.gather_field(number, state_rows), side.types)
            alone = pa.array([place for place, entry in enumerate(stored.entries) if not entry[1]], _I64)
            nothing = repeated(None, len(alone), _I64)
            other_types = self.sides[1 - number].types
            empty = ColumnBatch(
                pa.RecordBatch.from_arrays(
                    [pa.nulls(0, kind) for kind in other_types], names=[str(index) for index in range(len(other_types))]
                )
            )
            result = self._assemble(1 - number, empty, stored, nothing, alone, None)
            if result is not None:
                self.emit(result)
        self._state.remove(state_rows.list)


def _none() -> pa.Int64Array:
    return pa.array([], _I64)


def _order(rows: pa.Int64Array, phase: int) -> pa.Int64Array:
    """Sort the results by row of the batch and then by phase: retractions, pairs, additions."""
    return pc.add(pc.multiply(rows, pa.scalar(3, _I64)), pa.scalar(phase, _I64))


def _kinds(batch: ColumnBatch, rows: pa.Int64Array, signs: pa.Int64Array | None, *, keep: bool) -> pa.Int8Array | None:
    """Return the kinds of results: the kinds of the rows, or only insert and delete."""
    if batch.kinds is None or signs is None:
        return None
    if keep:
        return batch.kinds.take(rows)
    return pc.if_else(pc.greater(signs.take(rows), _ZERO), _INSERT, _DELETE)
