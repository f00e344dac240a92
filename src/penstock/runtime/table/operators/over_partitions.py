"""OVER over whole partitions: in batch jobs, and ordered by columns other than time attributes (T81)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ColumnBatch
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.sort import BatchRowsOperator, in_order
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.over_functions import OverCall, OverFrame, event_segments, partition_results
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.sort_keys import SortColumn, comparable_keys
from penstock.runtime.table.stored_rows import StoredRow, columns_of, stored_rows

_I64 = pa.int64()


class _OverPartitions(TableOperator):
    """Emits the input's columns, followed by results over partitions."""

    keyed = True
    stateful = True

    def __init__(
        self,
        keys: Sequence[int],
        order: Sequence[SortColumn],
        frame: OverFrame,
        calls: Sequence[OverCall],
        input_schema: pa.Schema,
        schema: pa.Schema,
        *,
        emits_update_before: bool = True,
    ) -> None:
        self.keys = list(keys)
        self.order = list(order)
        self.frame = frame
        self.calls = list(calls)
        self.input_schema = input_schema
        self.schema = schema
        self.emits_update_before = emits_update_before

    def results(self, columns: list[pa.Array], segments: Segments) -> list[pa.Array]:
        """Return the results of rows in segment order."""
        order = [columns[key.column] for key in self.order]
        times = None
        if not self.frame.rows and self.frame.preceding is not None:
            times = milliseconds(order[0]) if pt.is_timestamp(order[0].type) else order[0].cast(_I64)
        return partition_results(self.calls, self.frame, columns, segments, order, times)


class BatchOverOperator(_OverPartitions, BatchRowsOperator):
    """Keeps all rows of a batch job, and emits them with their results at the end."""

    def result(self, rows: ColumnBatch) -> ColumnBatch:
        """Return the rows with their results."""
        rows = in_order(rows, self.order)
        grouped = group_rows(rows, self.keys)
        segments = Segments.of(grouped.codes, len(grouped.keys))
        rows = rows if segments.order is None else rows.take(segments.order)
        columns = rows.data.columns
        results = self.results(columns, segments)
        return ColumnBatch(pa.RecordBatch.from_arrays([*columns, *results], schema=self.schema))


class NonTimeOverOperator(_OverPartitions):
    """Keeps the rows of each key sorted. Results of rows after a new one are updated, once per batch."""

    keyed_backend = ColumnStateBackend

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: the rows of a key with their sort keys."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("over", [(None, None)])

    def process(self, batch: ColumnBatch) -> None:
        """Update the lists of keys, and emit the difference of results."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        known: list[Any] = self._state.gather(rows)[0]
        before = [list(one[1]) if one else [] for one in known]
        lists: list[Any] = [one or ([], []) for one in known]
        sort_keys = comparable_keys(batch.data.columns, self.order) or [0] * len(batch)
        kinds = batch.kinds_or_inserts().to_pylist()
        for row, code, key, kind in zip(stored_rows(batch), grouped.codes.to_pylist(), sort_keys, kinds, strict=True):
            keys, members = lists[code]
            if kind in (INSERT, UPDATE_AFTER):
                place = bisect_right(keys, key)
                keys.insert(place, key)
                members.insert(place, row)
                continue
            place = bisect_left(keys, key)
            while place < len(keys) and keys[place] == key and members[place] != row:
                place += 1
            if place < len(keys) and keys[place] == key:
                del keys[place], members[place]
        self._state.scatter(rows, [lists])
        self._emit_difference(before, [members for _, members in lists])
        gone = [row for row, (keys, _) in zip(rows.list, lists, strict=True) if not keys]
        if gone:
            self._state.remove(gone)

    def _emit_difference(self, before: list[list[StoredRow]], after: list[list[StoredRow]]) -> None:
        """Emit the difference of results. Rows are compared by identity, since they may be equal."""
        old, new = self._with_results(before), self._with_results(after)
        old_values, new_values = _tuples(old), _tuples(new)
        width = len(old_values)
        kinds: list[int] = []
        places: list[int] = []
        old_at = new_at = 0
        for had, has in zip(before, after, strict=True):
            present = {id(row) for row in has}
            previous = {}
            for offset, row in enumerate(had):
                if id(row) in present:
                    previous[id(row)] = old_at + offset
                else:
                    kinds.append(DELETE)
                    places.append(old_at + offset)
            for offset, row in enumerate(has):
                place = previous.get(id(row))
                here = new_at + offset
                if place is None:
                    kinds.append(INSERT)
                    places.append(width + here)
                elif old_values[place] != new_values[here]:
                    if self.emits_update_before:
                        kinds.append(UPDATE_BEFORE)
                        places.append(place)
                    kinds.append(UPDATE_AFTER)
                    places.append(width + here)
            old_at += len(had)
            new_at += len(has)
        if kinds:
            chosen = pa.array(places, _I64)
            columns = [pa.concat_arrays(both).take(chosen) for both in zip(old, new, strict=True)]
            changed = pa.array(kinds, pa.int8()) if any(kinds) else None
            self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), changed))

    def _with_results(self, lists: list[list[StoredRow]]) -> list[pa.Array]:
        counts = [len(one) for one in lists if one]
        if not counts:
            return [pa.array([], field.type) for field in self.schema]
        columns = columns_of([row for one in lists for row in one], self.input_schema)
        return [*columns, *self.results(columns, event_segments(counts))]


def _tuples(columns: list[pa.Array]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
