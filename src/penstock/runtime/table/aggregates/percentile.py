"""PERCENTILE: the exact value at a position among all values, interpolated if necessary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.core.table.type_rules import is_integer, is_numeric
from penstock.core.table.types import ArrayType, DataType, DoubleType
from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate


class Percentile(RowAggregate):
    """The accumulator is the multiset of values and the requested positions."""

    def __init__(self, request: AggregateRequest) -> None:
        self.result_type = request.result_type
        self.is_array = isinstance(request.result, ArrayType)

    def create(self) -> Any:
        """Create an empty accumulator."""
        return [{}, None]

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a value as often as the third argument says."""
        self._add(accumulator, 1, *values)

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract a value."""
        self._add(accumulator, -1, *values)

    def _add(self, accumulator: Any, sign: int, value: Any, places: Any, times: int | None = 1) -> None:
        wanted = places if isinstance(places, list) else [places]
        if any(one is None or not 0 <= one <= 1 for one in wanted):
            raise ValueError(f"the percentage of PERCENTILE must be between 0 and 1, got {places}")
        accumulator[1] = [float(one) for one in wanted]
        if value is None or times is None or times <= 0:
            return
        counts, key = accumulator[0], float(value)
        counts[key] = counts.get(key, 0) + sign * times
        if counts[key] <= 0:
            del counts[key]

    def value(self, accumulator: Any) -> Any:
        """Return the value at each position; NULL without values."""
        counts, wanted = accumulator
        if not counts:
            return None
        ordered = sorted(counts.items())
        found = [_at(ordered, sum(counts.values()), place) for place in wanted]
        return found if self.is_array else found[0]


def _at(ordered: Sequence[tuple[float, int]], total: int, place: float) -> float:
    """Return the value at a position, counted from 0 to the last value.

    >>> _at([(1.0, 1), (3.0, 1)], 2, 0.5)
    2.0
    """
    position = (total - 1) * place
    low, high = _nth(ordered, math.floor(position)), _nth(ordered, math.ceil(position))
    return low + (high - low) * (position - math.floor(position))


def _nth(ordered: Sequence[tuple[float, int]], number: int) -> float:
    for value, count in ordered:
        if number < count:
            return value
        number -= count
    return ordered[-1][0]


def _type(types: Sequence[DataType]) -> DataType | None:
    if not is_numeric(types[0]) or (len(types) > 2 and not is_integer(types[2])):
        return None
    if isinstance(types[1], ArrayType):
        return ArrayType(DoubleType()) if is_numeric(types[1].element_type) else None
    return DoubleType() if is_numeric(types[1]) else None


@aggregate("PERCENTILE", gives=_type, arguments=(2, 3))
def percentile(request: AggregateRequest) -> Aggregate:
    """PERCENTILE(value, percentage or array of percentages [, frequency])"""
    return Percentile(request)
