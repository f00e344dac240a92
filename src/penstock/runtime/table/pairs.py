"""Pairs of rows for joins: rows of a batch with rows of the state, found and tested in columns.

A row of the state is a tuple of values in stored form (see keys.py). All rows that a batch may match are concatenated
(:class:`StoredRows`), and pairs are two columns of positions, so conditions and results take a few calls on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.batch import ColumnBatch, positions
from penstock.runtime.table.expressions import (
    EvaluationContext,
    Expr,
    Rows,
    as_column,
    evaluator,
    input_columns,
    shifted,
)
from penstock.runtime.table.keys import key_column, key_values

_I64 = pa.int64()
_FIRST = pa.array([0], _I64)

ColumnOf = Callable[[int], pa.Array]
StoredRow = tuple[Any, ...]


def expand(counts: pa.Int64Array) -> tuple[pa.Int64Array, pa.Int64Array]:
    """Repeat every position by its count, and number the repetitions.

    >>> [column.to_pylist() for column in expand(pa.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    offsets = pa.concat_arrays([_FIRST, pc.cumulative_sum(counts)])
    total = offsets[-1].as_py()
    where = positions(total)
    lists = pa.LargeListArray.from_arrays(offsets, where)
    parents = pc.list_parent_indices(lists).cast(_I64)
    return parents, pc.subtract(where, offsets.take(parents))


def sums_of_runs(values: pa.Int64Array, counts: pa.Int64Array) -> pa.Int64Array:
    """Sum up adjacent values. Each count is the number of values in one sum.

    >>> sums_of_runs(pa.array([1, 2, 4]), pa.array([2, 0, 1])).to_pylist()
    [3, 0, 4]
    """
    total = pa.concat_arrays([_FIRST, pc.cumulative_sum(values)])
    ends = pc.cumulative_sum(counts)
    return pc.subtract(total.take(ends), total.take(pc.subtract(ends, counts)))


def stored_rows(batch: ColumnBatch, width: int) -> list[StoredRow]:
    """Return the first columns of a batch as tuples in stored form."""
    columns = [key_values(batch.column(index)) for index in range(width)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


class StoredRows:
    """Rows of the state, concatenated. Columns are created on demand."""

    __slots__ = ("_columns", "rows", "types")

    def __init__(self, rows: list[StoredRow], types: Sequence[pa.DataType]) -> None:
        self.rows = rows
        self.types = types
        self._columns: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, index: int) -> pa.Array:
        """Return one column of all rows."""
        known = self._columns.get(index)
        if known is None:
            known = key_column([row[index] for row in self.rows], self.types[index])
            self._columns[index] = known
        return known


class PairCondition:
    """A condition over the columns of two sides, left ones first. It must not swap a pair's sides."""

    def __init__(self, condition: Expr, left_width: int, context: EvaluationContext) -> None:
        used = sorted(input_columns(condition))
        self._left = [index for index in used if index < left_width]
        self._right = [index - left_width for index in used if index >= left_width]
        self._evaluate = evaluator(shifted(condition, used.index))
        self._context = context

    def mask(self, left: ColumnOf, right: ColumnOf, count: int) -> pa.BooleanArray:
        """Return whether the condition is TRUE for each pair."""
        columns = [*map(left, self._left), *map(right, self._right)] or [positions(count)]
        data = pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))])
        value = as_column(self._evaluate(Rows(data, self._context)), count, pa.bool_())
        return pc.fill_null(value, False) if value.null_count else value
