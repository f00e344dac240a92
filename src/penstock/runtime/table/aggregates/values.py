"""FIRST_VALUE, LAST_VALUE, LISTAGG, COLLECT and ARRAY_AGG: aggregates that depend on the order of rows (T54)."""

from __future__ import annotations

from typing import Any

from penstock.core.table.arrow import python_values, to_column
from penstock.core.table.type_rules import is_character
from penstock.core.table.types import ArrayType, DataType, MultisetType, VarCharType
from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate


class _TypedAggregate(RowAggregate):
    """A row aggregate with Python values of SQL types."""

    def __init__(self, request: AggregateRequest) -> None:
        self.types = request.types
        self.result = request.result
        self.result_type = request.result_type

    def rows(self, columns: list[Any], count: int) -> list[tuple[Any, ...]]:
        """Return values of the argument types."""
        values = [python_values(column, type_) for column, type_ in zip(columns, self.types, strict=True)]
        return list(zip(*values, strict=True))

    def column(self, values: list[Any]) -> Any:
        """Return results of the result type."""
        return to_column(values, self.result)


class _OrderedValues(_TypedAggregate):
    """The accumulator is the list of values in arrival order."""

    skips_null = True

    def create(self) -> Any:
        """Create an empty list."""
        return []

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Append a value."""
        if values[0] is not None or not self.skips_null:
            accumulator.append(values[0])

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove the first equal value."""
        if (values[0] is not None or not self.skips_null) and values[0] in accumulator:
            accumulator.remove(values[0])

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Append the values of one accumulator to those of the other."""
        return ([*(left[0] or []), *(right[0] or [])],)


class FirstValue(_OrderedValues):
    """The first value that is not NULL."""

    def value(self, accumulator: Any) -> Any:
        """Return the first value."""
        return accumulator[0] if accumulator else None


class LastValue(_OrderedValues):
    """The last value that is not NULL."""

    def value(self, accumulator: Any) -> Any:
        """Return the last value."""
        return accumulator[-1] if accumulator else None


class OnlyFirstValue(FirstValue):
    """FIRST_VALUE without retraction: one value is enough."""

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Keep the first value."""
        if not accumulator and values[0] is not None:
            accumulator.append(values[0])


class OnlyLastValue(LastValue):
    """LAST_VALUE without retraction: one value is enough."""

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Keep the last value."""
        if values[0] is not None:
            accumulator[:] = [values[0]]


def _same(types: Any) -> DataType | None:
    return types[0].nullable()  # type: ignore[no-any-return]


@aggregate("FIRST_VALUE", gives=_same)
def first_value(request: AggregateRequest) -> Aggregate:
    """The first value that is not NULL."""
    return FirstValue(request) if request.retracts else OnlyFirstValue(request)


@aggregate("LAST_VALUE", gives=_same)
def last_value(request: AggregateRequest) -> Aggregate:
    """The last value that is not NULL."""
    return LastValue(request) if request.retracts else OnlyLastValue(request)


class ListAgg(_OrderedValues):
    """Strings, joined by a separator."""

    def create(self) -> Any:
        """Create an accumulator: no strings, and the separator, which comes with the first row."""
        return []

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Append a string, and keep the separator."""
        if values[0] is not None:
            accumulator.append((values[0], values[1] if len(values) > 1 else ","))

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove the first equal string."""
        for position, (text, _) in enumerate(accumulator):
            if text == values[0]:
                del accumulator[position]
                return

    def value(self, accumulator: Any) -> Any:
        """Return the joined strings; NULL without strings."""
        if not accumulator:
            return None
        parts = [accumulator[0][0]]
        for text, separator in accumulator[1:]:
            parts += [separator, text]
        return "".join(parts)


@aggregate("LISTAGG", gives=lambda types: VarCharType() if all(map(is_character, types)) else None, arguments=(1, 2))
def listagg(request: AggregateRequest) -> Aggregate:
    """Strings, joined by a separator."""
    return ListAgg(request)


class ArrayAgg(_OrderedValues):
    """All values, including NULLs."""

    skips_null = False

    def value(self, accumulator: Any) -> Any:
        """Return the values; NULL without values."""
        return list(accumulator) or None


@aggregate("ARRAY_AGG", gives=lambda types: ArrayType(types[0]))
def array_agg(request: AggregateRequest) -> Aggregate:
    """All values as an array."""
    return ArrayAgg(request)


class Collect(_TypedAggregate):
    """A multiset of the values that are not NULL."""

    def create(self) -> Any:
        """Create an empty accumulator."""
        return {}

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Increase the count of a value."""
        if values[0] is not None:
            accumulator[values[0]] = accumulator.get(values[0], 0) + 1

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Decrease the count of a value."""
        left = accumulator.get(values[0], 0) - 1
        if left > 0:
            accumulator[values[0]] = left
        else:
            accumulator.pop(values[0], None)

    def value(self, accumulator: Any) -> Any:
        """Return the values with their counts."""
        return dict(accumulator)


@aggregate("COLLECT", gives=lambda types: MultisetType(types[0], _nullable=False))
def collect(request: AggregateRequest) -> Aggregate:
    """All values with their counts."""
    return Collect(request)
