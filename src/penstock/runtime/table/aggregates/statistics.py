"""STDDEV and VAR (T59), with Welford's running mean and sum of squares, which can also be retracted."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from penstock.core.table.type_rules import average_type, is_numeric
from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate
from penstock.runtime.table.decimals import fit


class VarianceAggregate(RowAggregate):
    """The accumulator is the count, the mean and the sum of squared differences from the mean."""

    def __init__(self, request: AggregateRequest, *, sample: bool, root: bool) -> None:
        self.result_type = request.result_type
        self.sample = sample
        self.root = root

    def create(self) -> Any:
        """Create an empty accumulator."""
        return [0, 0.0, 0.0]

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a value."""
        if values[0] is None:
            return
        value = float(values[0])
        accumulator[0] += 1
        distance = value - accumulator[1]
        accumulator[1] += distance / accumulator[0]
        accumulator[2] += distance * (value - accumulator[1])

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract a value."""
        if values[0] is None or not accumulator[0]:
            return
        if accumulator[0] == 1:
            accumulator[:] = self.create()
            return
        value = float(values[0])
        distance = value - accumulator[1]
        accumulator[0] -= 1
        accumulator[1] -= distance / accumulator[0]
        accumulator[2] -= distance * (value - accumulator[1])

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two accumulators."""
        one, other = left[0] or self.create(), right[0] or self.create()
        count = one[0] + other[0]
        if not count:
            return (one,)
        distance = other[1] - one[1]
        mean = one[1] + distance * other[0] / count
        return ([count, mean, one[2] + other[2] + distance * distance * one[0] * other[0] / count],)

    def value(self, accumulator: Any) -> Any:
        """Return the variance or its root; NULL for too few values."""
        count, _, squares = accumulator
        divisor = count - 1 if self.sample else count
        if divisor <= 0:
            return None
        variance = max(0.0, squares) / divisor
        return math.sqrt(variance) if self.root else variance

    def column(self, values: list[Any]) -> pa.Array:
        """Return results in the type of the argument, as in Flink: integers are truncated."""
        kind = self.result_type
        if pt.is_floating(kind):
            return pa.array(values, kind)
        if pt.is_decimal(kind):
            return pa.array(
                [None if value is None else fit(Decimal(repr(value)), kind.precision, kind.scale) for value in values],
                kind,
            )
        return pa.array([None if value is None else int(value) for value in values], kind)


@aggregate("STDDEV_POP", gives=lambda types: average_type(types[0]) if is_numeric(types[0]) else None)
def stddev_pop(request: AggregateRequest) -> Aggregate:
    """The standard deviation of all values."""
    return VarianceAggregate(request, sample=False, root=True)


@aggregate("STDDEV_SAMP", "STDDEV", gives=lambda types: average_type(types[0]) if is_numeric(types[0]) else None)
def stddev_samp(request: AggregateRequest) -> Aggregate:
    """The standard deviation of a sample."""
    return VarianceAggregate(request, sample=True, root=True)


@aggregate("VAR_POP", gives=lambda types: average_type(types[0]) if is_numeric(types[0]) else None)
def var_pop(request: AggregateRequest) -> Aggregate:
    """The variance of all values."""
    return VarianceAggregate(request, sample=False, root=False)


@aggregate("VAR_SAMP", "VARIANCE", gives=lambda types: average_type(types[0]) if is_numeric(types[0]) else None)
def var_samp(request: AggregateRequest) -> Aggregate:
    """The variance of a sample."""
    return VarianceAggregate(request, sample=True, root=False)
