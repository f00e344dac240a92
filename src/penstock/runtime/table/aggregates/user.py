"""User-defined aggregate functions: Python functions on accumulators, pandas functions on whole groups (T103, T104)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import arrow_type, python_values, to_column
from penstock.core.table.types import DataType
from penstock.runtime.table.aggregates.base import RowAggregate
from penstock.runtime.table.user_functions import to_pandas


class UserAggregate(RowAggregate):
    """A user's aggregate function, applied row by row. `wrapper` is the function with its types."""

    def __init__(self, wrapper: Any, types: Sequence[DataType]) -> None:
        self.wrapper = wrapper
        self.types = list(types)
        self.result_type = arrow_type(wrapper.result_type)

    def user_functions(self) -> list[Any]:
        """Return the user's function."""
        return [self.wrapper]

    def create(self) -> Any:
        """Create an accumulator."""
        return self.wrapper.function.create_accumulator()

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a row."""
        self.wrapper.function.accumulate(accumulator, *values)

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract a row."""
        self.wrapper.function.retract(accumulator, *values)

    def value(self, accumulator: Any) -> Any:
        """Return the result."""
        return self.wrapper.function.get_value(accumulator)

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two accumulators."""
        merged = self.create() if left[0] is None else left[0]
        if right[0] is not None:
            self.wrapper.function.merge(merged, [right[0]])
        return (merged,)

    def rows(self, columns: list[pa.Array], count: int) -> list[tuple[Any, ...]]:
        """Return arguments as Python values of their SQL types."""
        values = [python_values(column, type_) for column, type_ in zip(columns, self.types, strict=True)]
        return list(zip(*values, strict=True)) if values else [()] * count

    def column(self, values: list[Any]) -> pa.Array:
        """Return results as a column."""
        return to_column(values, self.wrapper.result_type)


class PandasAggregate(UserAggregate):
    """A function of Series. Its accumulator contains the rows of the group."""

    def create(self) -> Any:
        """Create an empty list."""
        return []

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add the row."""
        accumulator.append(values)

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove an equal row."""
        if values in accumulator:
            accumulator.remove(values)

    def value(self, accumulator: Any) -> Any:
        """Call the function with the rows as Series."""
        columns = list(zip(*accumulator, strict=True)) if accumulator else [()] * len(self.types)
        series = [
            to_pandas(to_column(list(column), type_), type_) for column, type_ in zip(columns, self.types, strict=True)
        ]
        function = self.wrapper.function
        found: Any = function.accumulate_series(*series) if accumulator else None
        return found.item() if hasattr(found, "item") else found

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge the rows."""
        return ([*(left[0] or []), *(right[0] or [])],)
