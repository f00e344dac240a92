"""Aggregates over rows in order: LAG, RANK and DENSE_RANK of rows that arrive one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import python_values, to_column
from penstock.core.table.types import DataType
from penstock.runtime.table.aggregates.base import RowAggregate


class LagAggregate(RowAggregate):
    """The value of an earlier row. The accumulator contains the values since then."""

    def __init__(self, types: tuple[DataType, ...], result: DataType, result_type: pa.DataType) -> None:
        self.types = types
        self.result = result
        self.result_type = result_type

    def create(self) -> Any:
        """Create an accumulator: values, offset, default for missing rows."""
        return [[], 1, None]

    def rows(self, columns: list[Any], count: int) -> list[tuple[Any, ...]]:
        """Return values of the argument types."""
        return list(zip(*map(python_values, columns, self.types), strict=True))

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a row."""
        value, *rest = values
        if rest:
            accumulator[1] = rest[0]
        if len(rest) > 1:
            accumulator[2] = rest[1]
        seen = accumulator[0]
        seen.append(value)
        if len(seen) > accumulator[1] + 1:
            del seen[0]

    def value(self, accumulator: Any) -> Any:
        """Return the oldest value, once there are enough."""
        seen, distance, default = accumulator
        return seen[0] if len(seen) > distance else default

    def column(self, values: list[Any]) -> pa.Array:
        """Return results of the result type."""
        return to_column(values, self.result)


class RankAggregate(RowAggregate):
    """RANK or DENSE_RANK. The accumulator: rows, rank and dense rank so far, and the last row's order values."""

    result_type = pa.int64()

    def __init__(self, *, dense: bool) -> None:
        self.dense = dense

    def create(self) -> Any:
        """Create an empty accumulator."""
        return [0, 0, 0, None]

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a row."""
        accumulator[0] += 1
        if accumulator[3] != values:
            accumulator[1] = accumulator[0]
            accumulator[2] += 1
            accumulator[3] = values

    def value(self, accumulator: Any) -> Any:
        """Return the rank."""
        return accumulator[2 if self.dense else 1]
