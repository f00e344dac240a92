"""COUNT, SUM, AVG, MIN and MAX under their SQL names."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.table.type_rules import average_type, is_numeric, sum_type
from penstock.core.table.types import ArrayType, BigIntType, DataType, MapType, MultisetType, RowType
from penstock.runtime.table.aggregates.base import Aggregate
from penstock.runtime.table.aggregates.numeric import (
    AvgAggregate,
    CountAggregate,
    ExtremeAggregate,
    Sum0Aggregate,
    SumAggregate,
)
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate
from penstock.runtime.table.aggregates.retractable import ExtremeWithRetract

_MANY = 1_000


@aggregate("COUNT", gives=lambda types: BigIntType(_nullable=False), arguments=(0, _MANY), default=0)
def count(request: AggregateRequest) -> Aggregate:
    """Count rows, or rows without a NULL among the arguments."""
    return CountAggregate()


@aggregate("SUM", gives=lambda types: sum_type(types[0]) if is_numeric(types[0]) else None)
def total(request: AggregateRequest) -> Aggregate:
    """The sum; NULL without values."""
    return SumAggregate(request.argument, request.result_type)


@aggregate("$SUM0", gives=lambda types: sum_type(types[0]).not_null() if is_numeric(types[0]) else None, default=0)
def total_or_zero(request: AggregateRequest) -> Aggregate:
    """The sum; 0 without values."""
    return Sum0Aggregate(request.argument, request.result_type)


@aggregate("AVG", gives=lambda types: average_type(types[0]) if is_numeric(types[0]) else None)
def average(request: AggregateRequest) -> Aggregate:
    """The average, in the type of the argument."""
    return AvgAggregate(request.argument, request.result_type)


def _comparable(types: Sequence[DataType]) -> DataType | None:
    unordered = (ArrayType, MapType, MultisetType, RowType)
    return None if isinstance(types[0], unordered) else types[0].nullable()


@aggregate("MAX", gives=_comparable)
def largest(request: AggregateRequest) -> Aggregate:
    """The largest value."""
    if request.retracts:
        return ExtremeWithRetract(request.argument, largest=True)
    return ExtremeAggregate(request.argument, largest=True)


@aggregate("MIN", gives=_comparable)
def smallest(request: AggregateRequest) -> Aggregate:
    """The smallest value."""
    if request.retracts:
        return ExtremeWithRetract(request.argument, largest=False)
    return ExtremeAggregate(request.argument, largest=False)
