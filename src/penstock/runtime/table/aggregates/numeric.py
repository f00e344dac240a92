"""COUNT, SUM, AVG, MIN and MAX."""

from __future__ import annotations

from decimal import Decimal
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.table.aggregates.base import AggregateInput, ColumnAggregate
from penstock.runtime.table.decimals import EXACT, MAX_PRECISION, divide_half_up, fit

_I64 = pa.int64()
_ZERO = pa.scalar(0, _I64)


class CountAggregate(ColumnAggregate):
    """COUNT(*) and COUNT(x): rows, or rows whose argument is not NULL."""

    fields = types = (_I64,)
    empty = (0,)
    result_type = _I64

    def running(self, batch: AggregateInput, initial: list[pa.Array]) -> list[pa.Array]:
        """Compute a running sum of ones."""
        mask = batch.mask
        for column in batch.arguments:
            if column.null_count:
                mask = column.is_valid() if mask is None else pc.and_(mask, column.is_valid())
        return [batch.segments.running_sum(batch.deltas(mask), initial[0])]

    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Return the count."""
        return fields[0]

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add the counts."""
        return (left[0] + right[0],)


class SumAggregate(ColumnAggregate):
    """SUM(x): NULL without values that are not NULL. Integers wrap in their own type (T30)."""

    def __init__(self, argument: pa.DataType, result: pa.DataType) -> None:
        self.result_type = result
        self.decimal = pt.is_decimal(argument)
        self.floating = pt.is_floating(argument)
        stored = result if self.decimal else pa.float64() if self.floating else _I64
        zero: Any = Decimal(0) if self.decimal else 0.0 if self.floating else 0
        self.single = argument == pa.float32()
        self.types = (stored, _I64)
        self.fields = (None if self.decimal else stored, _I64)
        self.empty = (zero, 0)

    def running(self, batch: AggregateInput, initial: list[pa.Array]) -> list[pa.Array]:
        """Compute the running sum and the running count of values."""
        column = batch.arguments[0]
        mask = batch.counted(column)
        counts = batch.segments.running_sum(batch.deltas(mask), initial[1])
        if self.decimal or self.floating:
            return [self._fold(batch, column, mask, initial[0]), counts]
        values = column.cast(_I64)
        if batch.signs is not None:
            values = pc.multiply(values, batch.signs)
        if mask is not None:
            values = pc.if_else(mask, values, _ZERO)
        return [batch.segments.running_sum(values, initial[0]), counts]

    def _fold(
        self, batch: AggregateInput, column: pa.Array, mask: pa.BooleanArray | None, initial: pa.Array
    ) -> pa.Array:
        """Add one value after the other: the order of additions affects the last digits."""
        stored = self.types[0]
        values = column.cast(stored)
        if batch.signs is not None:
            taken = pc.less(batch.signs, _ZERO)
            values = pc.if_else(taken, pc.negate(values), values)
        if mask is not None:
            values = pc.if_else(mask, values, pa.scalar(self.empty[0], stored))
        step = _add_single if self.single else _add_decimals if self.decimal else add
        return pa.array(batch.segments.fold(step, values.to_pylist(), initial.to_pylist()), stored)

    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Return the sums; NULL without values."""
        total = wrapped(fields[0], self.result_type)
        return pc.if_else(pc.equal(fields[1], _ZERO), pa.scalar(None, self.result_type), total)

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add the sums."""
        total: Any = _add_decimals(left[0], right[0]) if self.decimal else left[0] + right[0]
        if not self.decimal and not self.floating:
            total = (total + 2**63) % 2**64 - 2**63
        return (total, left[1] + right[1])


class Sum0Aggregate(SumAggregate):
    """The sum; 0 without values. It adds up partial counts."""

    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Return the sum."""
        return wrapped(fields[0], self.result_type)


class AvgAggregate(SumAggregate):
    """AVG(x): integers give an integer, truncated towards zero; decimals are rounded half up (T30, T32)."""

    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Divide the sum by the count; NULL without values."""
        total, count = fields
        divisor = pc.if_else(pc.equal(count, _ZERO), pa.scalar(None, _I64), count)
        if self.decimal:
            pairs = zip(total.to_pylist(), divisor.to_pylist(), strict=True)
            return pa.array([_average(value, by, self.result_type) for value, by in pairs], self.result_type)
        if self.floating:
            return pc.divide(total.cast(pa.float64()), divisor.cast(pa.float64())).cast(self.result_type)
        return wrapped(pc.divide(total, divisor), self.result_type)


class ExtremeAggregate(ColumnAggregate):
    """MIN(x) or MAX(x) of rows that are never retracted."""

    fields = (None,)
    empty = (None,)

    def __init__(self, argument: pa.DataType, *, largest: bool) -> None:
        self.result_type = argument
        self.types = (stored_type(argument),)
        self.largest = largest

    def running(self, batch: AggregateInput, initial: list[pa.Array]) -> list[pa.Array]:
        """Compute the maximum or minimum so far. NULLs are skipped."""
        values = batch.arguments[0].cast(self.types[0])
        if batch.mask is not None:
            values = pc.if_else(batch.mask, values, pa.scalar(None, self.types[0]))
        combine = pc.max_element_wise if self.largest else pc.min_element_wise
        return [batch.segments.running(combine, values, initial[0])]

    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Return the value."""
        return fields[0].cast(self.result_type)

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the larger or smaller value."""
        if left[0] is None or right[0] is None:
            return right if left[0] is None else left
        return (max(left[0], right[0]) if self.largest else min(left[0], right[0]),)


def stored_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of values in state: times and dates are integers, which are pickled quickly."""
    if pt.is_timestamp(type_) or pt.is_time64(type_) or pt.is_duration(type_):
        return _I64
    if pt.is_date32(type_) or pt.is_time32(type_):
        return pa.int32()
    return type_


def wrapped(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert numbers to a type that may be too small: the high bits are lost, as in Java."""
    return numbers if numbers.type == type_ else numbers.cast(type_, safe=False)


def _add_single(left: float, right: float) -> float:
    return float(pa.scalar(left + right, pa.float32()).as_py())


def _add_decimals(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    return None if left is None or right is None else fit(EXACT.add(left, right), MAX_PRECISION)


def _average(total: Decimal | None, count: int | None, result: pa.DataType) -> Decimal | None:
    if total is None or count is None:
        return None
    return divide_half_up(total, count, result.precision, result.scale)
