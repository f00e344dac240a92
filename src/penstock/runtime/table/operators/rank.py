"""Top-N: the rows of each key with ranks in a range, updated with every row (T83 to T85).

A key stores its rows in order, each with a Python value for comparison. If rows are only added, rows after the range
are dropped, and rows that cannot enter the range are filtered out in columns. If rows may be retracted, all are stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ColumnBatch
from penstock.runtime.table.column_fields import KeyRows
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows, group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.sort_keys import SortColumn, comparable_keys
from penstock.runtime.table.stored_rows import StoredRow, columns_of, stored_rows

_I64 = pa.int64()
_ANY = 2**63 - 1  # a threshold that every row passes


@dataclass(frozen=True, slots=True)
class RankRange:
    """Ranks from ``start`` to ``end``, both included, counted from 1."""

    start: int
    end: int
    with_rank: bool = False
    """Whether the last column is the rank."""

    @property
    def is_first(self) -> bool:
        """Whether it is the first rank alone: a better row then updates the result (T84)."""
        return self.start == self.end == 1


@dataclass(slots=True)
class _Changes:
    """Rows to emit: positions in a pool with the rows of the batch, followed by rows of the state."""

    rows: int
    kinds: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    extra: list[StoredRow] = field(default_factory=list)
    place_of: dict[int, int] = field(default_factory=dict)

    def add(self, kind: int, row: int | StoredRow, rank: int) -> None:
        """Add a change of one row: a position in the batch, or a row of the state."""
        if not isinstance(row, int):
            place = self.place_of.get(id(row))
            if place is None:
                place = self.place_of[id(row)] = self.rows + len(self.extra)
                self.extra.append(row)
            row = place
        self.kinds.append(kind)
        self.places.append(row)
        self.ranks.append(rank)


class RankOperator(TableOperator):
    """Keeps the rows of each key sorted, and equal rows in arrival order."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend
    emits_changes = True
    """Whether every row may change the result. Windows have their results at the end."""

    def __init__(
        self,
        keys: Sequence[int],
        order: Sequence[SortColumn],
        ranks: RankRange,
        input_schema: pa.Schema,
        schema: pa.Schema,
        *,
        retracts: bool = False,
        emits_update_before: bool = True,
        ties_replace: bool = False,
    ) -> None:
        self.keys = list(keys)
        self.order = list(order)
        self.ranks = ranks
        self.input_schema = input_schema
        self.schema = schema
        self.retracts = retracts
        """Whether rows may be retracted."""
        self.emits_update_before = emits_update_before
        self.ties_replace = ties_replace
        """Whether a row ranks before earlier rows that are equal."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: number of rows, a threshold to enter, the rows with their sort keys."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("rank", [(_I64, 0), (_I64, _ANY), (None, None)])
        self._bisect = bisect_left if self.ties_replace else bisect_right
        self._rank_pairs: list[int] = []  # 1, 1, 2, 2, ...
        first = self.order[0] if self.order else None
        type_ = None if first is None else self.input_schema.field(first.column).type
        self._threshold_column = (
            first if first is not None and (pt.is_integer(type_) or pt.is_timestamp(type_)) else None
        )

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Insert every row, and emit changes in the range."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        counts, thresholds, lists = self._state.gather(rows)
        self.note_keys(grouped, counts)
        if self.retracts:
            self._apply(batch, grouped, rows, lists)
            return
        candidates = self._candidates(batch, grouped, counts, thresholds)
        if candidates is not None:
            if not candidates.true_count:
                return
            codes = grouped.codes.filter(candidates)
            batch = batch.filter(candidates)
        else:
            codes = grouped.codes
        self._insert(batch, codes, rows, lists)

    def note_keys(self, grouped: GroupedRows, counts: pa.Int64Array) -> None:
        """Hook for operators that emit later: receives the keys of a batch, and their row counts before it."""

    def _candidates(
        self, batch: ColumnBatch, grouped: GroupedRows, counts: pa.Int64Array, thresholds: pa.Int64Array
    ) -> pa.BooleanArray | None:
        """Return the rows that may enter the range; None if all may."""
        full = pc.greater_equal(counts, pa.scalar(self.ranks.end, _I64))
        if not full.true_count:
            return None
        if not self.order:
            return None if self.ties_replace else pc.invert(full).take(grouped.codes)
        first = self._threshold_column
        if first is None:
            return None
        values = batch.column(first.column).cast(_I64)
        if first.descending:
            values = pc.negate(values)
        limit = thresholds.take(grouped.codes)
        strict = len(self.order) == 1 and not self.ties_replace
        passes = pc.less(values, limit) if strict else pc.less_equal(values, limit)
        passes = pc.or_(pc.fill_null(passes, True), pc.invert(full).take(grouped.codes))
        return None if passes.true_count == len(batch) else passes

    def _insert(self, batch: ColumnBatch, codes: pa.Int32Array, rows: KeyRows, lists: list[Any]) -> None:
        """Insert rows without retractions. Meanwhile, lists contain positions in the pool of :class:`_Changes`."""
        end = self.ranks.end
        changes = _Changes(len(batch))
        emits = self.emits_changes and not self.context.batch_execution
        note = self._note_ranks if self.ranks.with_rank or self.ranks.is_first else self._note_rows
        find = self._bisect
        touched: set[int] = set()
        sort_keys = comparable_keys(batch.data.columns, self.order) or [0] * len(batch)
        for position, (code, key) in enumerate(zip(codes.to_pylist(), sort_keys, strict=True)):
            known = lists[code]
            if known is None:
                known = lists[code] = ([], [])
            keys, refs = known
            place = find(keys, key)
            if place >= end:
                continue
            if code not in touched:
                touched.add(code)
                first = len(batch) + len(changes.extra)
                changes.extra += refs
                refs[:] = range(first, first + len(refs))
            keys.insert(place, key)
            refs.insert(place, position)
            if emits:
                note(changes, refs, place)
            if len(keys) > end:
                keys.pop()
                refs.pop()
        if not touched:
            return
        chosen = sorted(touched)
        self._store_new_rows(batch, [lists[code][1] for code in chosen], changes.extra)
        self._write(rows, lists, chosen)
        self._emit_changes(batch, changes)

    def _note_rows(self, changes: _Changes, refs: list[int], place: int) -> None:
        """Record changes after a row was inserted at this place: the row that drops out, and the new row (T84)."""
        start, end, size = self.ranks.start - 1, self.ranks.end, len(refs)
        if size > end:
            changes.kinds.append(DELETE)
            changes.places.append(refs[end])
        if size > start:
            changes.kinds.append(INSERT)
            changes.places.append(refs[max(start, place)])

    def _note_ranks(self, changes: _Changes, refs: list[int], place: int) -> None:
        """Record changes after an insertion at this place: all later ranks change (T85). Slices keep this loop fast."""
        start, end, size = self.ranks.start - 1, self.ranks.end, len(refs)
        low = max(start, place)
        updated = min(size - 1, end) - low
        if updated > 0:
            if self.emits_update_before:
                pairs = [0] * (2 * updated)
                pairs[::2] = refs[low + 1 : low + 1 + updated]
                pairs[1::2] = refs[low : low + updated]
                changes.places += pairs
                changes.kinds += [UPDATE_BEFORE, UPDATE_AFTER] * updated
                twice = self._rank_pairs
                if len(twice) < 2 * (low + updated):
                    twice[:] = [rank for rank in range(1, 2 * (low + updated) + 1) for _ in (0, 1)]
                changes.ranks += twice[2 * low : 2 * (low + updated)]
            else:
                changes.places += refs[low : low + updated]
                changes.kinds += [UPDATE_AFTER] * updated
                changes.ranks += range(low + 1, low + 1 + updated)
        if low < size <= end:
            changes.kinds.append(INSERT)
            changes.places.append(refs[size - 1])
            changes.ranks.append(size)

    def _store_new_rows(self, batch: ColumnBatch, lists: list[list[Any]], known: list[StoredRow]) -> None:
        """Replace positions in the pool by rows."""
        count = len(batch)
        kept = [ref for refs in lists for ref in refs if ref < count]
        stored = dict(zip(kept, stored_rows(batch.take(pa.array(kept, _I64))), strict=True))
        for refs in lists:
            refs[:] = [stored[ref] if ref < count else known[ref - count] for ref in refs]

    def _apply(self, batch: ColumnBatch, grouped: GroupedRows, rows: KeyRows, lists: list[Any]) -> None:
        """Insert and retract rows."""
        changes = _Changes(len(batch)) if self.emits_changes and not self.context.batch_execution else None
        stored = stored_rows(batch)
        if changes is not None:
            changes.place_of.update({id(row): position for position, row in enumerate(stored)})
        sort_keys = comparable_keys(batch.data.columns, self.order) or [0] * len(batch)
        kinds = batch.kinds_or_inserts().to_pylist()
        removed: list[StoredRow] = []  # keeps rows alive, so that their identities stay unique during the batch
        for row, code, key, kind in zip(stored, grouped.codes.to_pylist(), sort_keys, kinds, strict=True):
            known = lists[code]
            if known is None:
                known = lists[code] = ([], [])
            keys, refs = known
            if kind in (INSERT, UPDATE_AFTER):
                place = self._bisect(keys, key)
                keys.insert(place, key)
                refs.insert(place, row)
                if changes is not None:
                    self._inserted(changes, refs, place)
                continue
            place = bisect_left(keys, key)
            while place < len(keys) and keys[place] == key and refs[place] != row:
                place += 1
            if place == len(keys) or keys[place] != key:
                continue  # a missing row is ignored, as in Flink
            removed.append(refs[place])
            del keys[place]
            gone = refs.pop(place)
            if changes is not None:
                self._deleted(changes, refs, place, gone)
        self._write(rows, lists, range(len(lists)))
        empty = [row for row, known in zip(rows.list, lists, strict=True) if not known or not known[0]]
        if empty:
            self._state.remove(empty)
        if changes is not None:
            self._emit_changes(batch, changes)

    def _write(self, rows: KeyRows, lists: list[Any], codes: Sequence[int]) -> None:
        """Store the lists of some keys, and the threshold to enter a full list."""
        end, several = self.ranks.end, len(self.order) > 1
        chosen: list[Any] = [lists[code] or ([], []) for code in codes]
        limits = []
        for keys, _ in chosen:
            worst: Any = _ANY
            if self._threshold_column is not None and len(keys) >= end:
                worst = keys[end - 1][0] if several else keys[end - 1]
            limits.append(worst if isinstance(worst, int) else _ANY)
        counts = pa.array([len(keys) for keys, _ in chosen], _I64)
        self._state.scatter(KeyRows([rows.list[code] for code in codes]), [counts, pa.array(limits, _I64), chosen])

    # -- changes ------------------------------------------------------------------------------------------------

    def _inserted(self, changes: _Changes, refs: list[Any], place: int) -> None:
        """Record that a row was inserted at this place."""
        start, end, size = self.ranks.start - 1, self.ranks.end, len(refs)
        if place >= end:
            return
        if not self.ranks.with_rank:
            if size > end:
                changes.add(DELETE, refs[end], 0)
            if size > start:
                changes.add(INSERT, refs[max(place, start)], 0)
            return
        for rank in range(max(place, start), min(size, end)):
            if rank == size - 1:
                changes.add(INSERT, refs[rank], rank + 1)
            else:
                self._replace(changes, refs[rank + 1], refs[rank], rank + 1)

    def _deleted(self, changes: _Changes, refs: list[Any], place: int, gone: Any) -> None:
        """Record that the row at this place was removed."""
        start, end, size = self.ranks.start - 1, self.ranks.end, len(refs)
        if place >= end:
            return
        if not self.ranks.with_rank:
            if size + 1 > start:
                changes.add(DELETE, gone if place >= start else refs[start - 1], 0)
            if size >= end:
                changes.add(INSERT, refs[end - 1], 0)
            return
        for rank in range(max(place, start), min(size + 1, end)):
            old = gone if rank == place else refs[rank - 1]
            if rank < size:
                self._replace(changes, old, refs[rank], rank + 1)
            else:
                changes.add(DELETE, old, rank + 1)

    def _replace(self, changes: _Changes, old: Any, new: Any, rank: int) -> None:
        if self.emits_update_before:
            changes.add(UPDATE_BEFORE, old, rank)
        changes.add(UPDATE_AFTER, new, rank)

    def _emit_changes(self, batch: ColumnBatch, changes: _Changes) -> None:
        if not changes.kinds:
            return
        columns = batch.data.columns
        if changes.extra:
            extra = columns_of(changes.extra, self.input_schema)
            columns = [pa.concat_arrays(both) for both in zip(columns, extra, strict=True)]
        places = pa.array(changes.places, _I64)
        result = [column.take(places) for column in columns]
        if self.ranks.with_rank:
            result.append(pa.array(changes.ranks, _I64))
        kinds = pa.array(changes.kinds, pa.int8()) if any(changes.kinds) else None
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(result, schema=self.schema), kinds))

    # -- results at the end -------------------------------------------------------------------------------------

    def emit_range(self, rows: KeyRows) -> None:
        """Emit the rows in the range of some keys, and remove the keys."""
        start, end = self.ranks.start - 1, self.ranks.end
        results: list[StoredRow] = []
        ranks: list[int] = []
        for known in self._state.gather(rows)[2]:
            if known is not None:
                chosen = known[1][start:end]
                results += chosen
                ranks += range(start + 1, start + 1 + len(chosen))
        self._state.remove(rows.list)
        if not results:
            return
        columns = columns_of(results, self.input_schema)
        if self.ranks.with_rank:
            columns.append(pa.array(ranks, _I64))
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema)))

    def process_watermark(self, watermark: int) -> None:
        """In batch execution, emit results before the final watermark."""
        if watermark == MAX_WATERMARK:
            self._emit_results()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the results of a batch job."""
        self._emit_results()

    def _emit_results(self) -> None:
        if self.context.batch_execution:
            rows = self._state.all_rows()
            if rows.list:
                self.emit_range(rows)
