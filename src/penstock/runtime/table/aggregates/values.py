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
        """Values of the types of the arguments."""
        values = [python_values(column, type_) for column, type_ in zip(columns, self.types, strict=True)]
        return list(zip(*values, strict=True))

    def column(self, values: list[Any]) -> Any:
        """Results of the result type."""
        return to_column(values, self.result)


class _OrderedValues(_TypedAggregate):
    """The accumulator is the list of values in order of arrival."""

    skips_null = True

    def create(self) -> Any:
        """No values."""
        return []

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Append."""
        if values[0] is not None or not self.skips_null:
            accumulator.append(values[0])

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove the first equal one."""
        if (values[0] is not None or not self.skips_null) and values[0] in accumulator:
            accumulator.remove(values[0])

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of one after those of the other."""
        return ([*(left[0] or []), *(right[0] or [])],)


class FirstValue(_OrderedValues):
    """The first value that is not NULL."""

    def value(self, accumulator: Any) -> Any:
        """The first."""
        return accumulator[0] if accumulator else None


class LastValue(_OrderedValues):
    """The last value that is not NULL."""

    def value(self, accumulator: Any) -> Any:
        """The last."""
        return accumulator[-1] if accumulator else None


class OnlyFirstValue(FirstValue):
    """The same if rows are never taken away: one value is enough."""

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Keep the first."""
        if not accumulator and values[0] is not None:
            accumulator.append(values[0])


class OnlyLastValue(LastValue):
    """The same if rows are never taken away: one value is enough."""

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Keep the last."""
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
    """Texts with a separator between them."""

    def create(self) -> Any:
        """No texts, and the separator, which comes with the first row."""
        return []

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Append text and separator."""
        if values[0] is not None:
            accumulator.append((values[0], values[1] if len(values) > 1 else ","))

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove the first equal text."""
        for position, (text, _) in enumerate(accumulator):
            if text == values[0]:
                del accumulator[position]
                return

    def value(self, accumulator: Any) -> Any:
        """All texts; NULL if there are none."""
        if not accumulator:
            return None
        parts = [accumulator[0][0]]
        for text, separator in accumulator[1:]:
            parts += [separator, text]
        return "".join(parts)


@aggregate("LISTAGG", gives=lambda types: VarCharType() if all(map(is_character, types)) else None, arguments=(1, 2))
def listagg(request: AggregateRequest) -> Aggregate:
    """Texts with a separator between them."""
    return ListAgg(request)


class ArrayAgg(_OrderedValues):
    """All values, NULLs too."""

    skips_null = False

    def value(self, accumulator: Any) -> Any:
        """The values; NULL if there are none."""
        return list(accumulator) or None


@aggregate("ARRAY_AGG", gives=lambda types: ArrayType(types[0]))
def array_agg(request: AggregateRequest) -> Aggregate:
    """All values as an array."""
    return ArrayAgg(request)


class Collect(_TypedAggregate):
    """A multiset of the values that are not NULL."""

    def create(self) -> Any:
        """No values."""
        return {}

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Count."""
        if values[0] is not None:
            accumulator[values[0]] = accumulator.get(values[0], 0) + 1

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Count back."""
        left = accumulator.get(values[0], 0) - 1
        if left > 0:
            accumulator[values[0]] = left
        else:
            accumulator.pop(values[0], None)

    def value(self, accumulator: Any) -> Any:
        """Values with counts."""
        return dict(accumulator)


@aggregate("COLLECT", gives=lambda types: MultisetType(types[0], _nullable=False))
def collect(request: AggregateRequest) -> Aggregate:
    """All values with their counts."""
    return Collect(request)
