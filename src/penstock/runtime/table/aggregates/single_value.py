"""SINGLE_VALUE: the value of the only row, for scalar subqueries (T77)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.runtime.table.aggregates.numeric import stored_type
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate


class SingleValueAggregate(RowAggregate):
    """Fails if there are two rows. The accumulator is the number of rows and the value."""

    def __init__(self, argument: pa.DataType) -> None:
        self.result_type = argument
        self.stored = stored_type(argument)

    def create(self) -> Any:
        """Create an empty accumulator."""
        return [0, None]

    def arguments(self, column: pa.Array) -> list[Any]:
        """Return values in their stored form."""
        return list(column.cast(self.stored).to_pylist())

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add the only row."""
        if accumulator[0] > 0:
            raise ValueError("a scalar subquery returned more than one row: use an aggregate or LIMIT 1 in it")
        accumulator[:] = [accumulator[0] + 1, values[0]]

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract the row."""
        accumulator[:] = [accumulator[0] - 1, None]

    def value(self, accumulator: Any) -> Any:
        """Return the value; NULL without a row."""
        return accumulator[1]

    def column(self, values: list[Any]) -> pa.Array:
        """Return results as a column."""
        return pa.array(values, self.stored).cast(self.result_type)


@aggregate("SINGLE_VALUE", gives=lambda types: types[0].nullable())
def single_value(request: AggregateRequest) -> Aggregate:
    """The value of the only row."""
    return SingleValueAggregate(request.result_type)
