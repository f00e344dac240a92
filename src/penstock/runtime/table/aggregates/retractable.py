"""Aggregates that store all their values because any of them may be retracted (T55), and DISTINCT (T56)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.aggregates.base import Aggregate, AggregateInput, AggregateScan, RowAggregate
from penstock.runtime.table.aggregates.numeric import stored_type
from penstock.runtime.table.batch import positions
from penstock.runtime.table.keys import encode_column, key_values


class ExtremeWithRetract(RowAggregate):
    """MIN or MAX. The accumulator is the multiset of values and the current result."""

    def __init__(self, argument: pa.DataType, *, largest: bool) -> None:
        self.result_type = argument
        self.stored = stored_type(argument)
        self.largest = largest

    def create(self) -> Any:
        """Create an empty accumulator."""
        return [{}, None]

    def arguments(self, column: pa.Array) -> list[Any]:
        """Return values in their stored form."""
        return list(column.cast(self.stored).to_pylist())

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a value."""
        counts, extreme = accumulator
        (value,) = values
        if value is None:
            return
        counts[value] = counts.get(value, 0) + 1
        if extreme is None or (value > extreme if self.largest else value < extreme):
            accumulator[1] = value

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract a value. If it was the last extreme one, find the next."""
        counts, extreme = accumulator
        (value,) = values
        if value is None or value not in counts:
            return
        if counts[value] > 1:
            counts[value] -= 1
            return
        del counts[value]
        if value == extreme:
            accumulator[1] = (max(counts) if self.largest else min(counts)) if counts else None

    def value(self, accumulator: Any) -> Any:
        """Return the extreme value."""
        return accumulator[1]

    def column(self, values: list[Any]) -> pa.Array:
        """Return results as a column."""
        return pa.array(values, self.stored).cast(self.result_type)

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge the values of both."""
        merged = left[0] or self.create()
        for value, count in (right[0] or self.create())[0].items():
            merged[0][value] = merged[0].get(value, 0) + count
        if merged[0]:
            merged[1] = max(merged[0]) if self.largest else min(merged[0])
        return (merged,)


class DistinctAggregate(Aggregate):
    """Another aggregate over the distinct values of its arguments. Their counts are stored beside its accumulator."""

    def __init__(self, inner: Aggregate) -> None:
        self.inner = inner
        self.fields = (None, *inner.fields)
        self.empty = (None, *inner.empty)
        self.result_type = inner.result_type
        self.skips_null = inner.skips_null

    def user_functions(self) -> list[Any]:
        """Return the functions of the inner aggregate."""
        return self.inner.user_functions()

    def scan(self, batch: AggregateInput, fields: list[Any]) -> AggregateScan:
        """Add only the first row of a value, and retract only its last one."""
        if batch.signs is None and len(batch.arguments) == 1 and self.skips_null:
            mask, final = _first_rows(batch, fields[0])
        else:
            mask, final = _changing_rows(batch, fields[0], skips_null=self.skips_null)
        inner = AggregateInput(batch.segments, batch.arguments, batch.signs, mask)
        scan = self.inner.scan(inner, fields[1:])
        return AggregateScan(scan.initial, scan.running, [final, *scan.fields])

    def results(self, fields: list[Any]) -> pa.Array:
        """Return the results of the inner aggregate."""
        return self.inner.results(fields[1:])

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Reject merging: values in both accumulators count once, so they must be added one by one."""
        raise NotImplementedError("DISTINCT aggregates of sessions are merged row by row")


def _changing_rows(batch: AggregateInput, known: list[Any], *, skips_null: bool) -> tuple[pa.BooleanArray, list[Any]]:
    """Return the first row of every value and the row that retracts its last one, and the counts after the batch."""
    rows = list(zip(*map(key_values, batch.arguments), strict=True))
    skipped = [skips_null and None in row for row in rows]
    signs = [1] * len(rows) if batch.signs is None else batch.signs.to_pylist()
    counts = [True] * len(rows) if batch.mask is None else batch.mask.to_pylist()
    matters: list[bool] = []
    final: list[Any] = []
    for before, start, end in batch.segments.slices(known):
        seen: dict[Any, int] = {} if before is None else before
        matters += [
            counts[position] and not skipped[position] and _changes(seen, rows[position], signs[position])
            for position in range(start, end)
        ]
        final.append(seen)
    return pa.array(matters, pa.bool_()), final


def _first_rows(batch: AggregateInput, known: list[Any]) -> tuple[pa.BooleanArray, list[Any]]:
    """Like `_changing_rows` for added rows only: each value of a segment is looked up only once."""
    (column,) = batch.arguments
    where = positions(batch.segments.rows)
    codes, counted = batch.segments.codes, batch.counted(column)
    if counted is not None:
        column, codes, where = column.filter(counted), codes.filter(counted), where.filter(counted)
    final: list[Any] = [{} if seen is None else seen for seen in known]
    encoded = encode_column(column)
    size = len(encoded.dictionary)
    pairs = pc.add(pc.multiply(codes.cast(pa.int64()), pa.scalar(size, pa.int64())), encoded.indices.cast(pa.int64()))
    table = pa.table({"pair": pairs, "row": where})
    found = table.group_by("pair", use_threads=False).aggregate([("row", "min"), ("row", "count")])
    values = key_values(encoded.dictionary)
    first: list[int] = []
    columns = (found.column(name).to_pylist() for name in ("pair", "row_min", "row_count"))
    for pair, row, count in zip(*columns, strict=True):
        seen, key = final[pair // size], (values[pair % size],)
        before = seen.get(key, 0)
        seen[key] = before + count
        if not before:
            first.append(row)
    return pc.is_in(positions(batch.segments.rows), pa.array(first, pa.int64())), final


def _changes(seen: dict[Any, int], row: tuple[Any, ...], sign: int) -> bool:
    """Whether the row is the first or the last with its value."""
    before = seen.get(row, 0)
    if sign > 0:
        seen[row] = before + 1
        return before == 0
    if before <= 1:
        return seen.pop(row, None) is not None
    seen[row] = before - 1
    return False
