"""CAST and TRY_CAST (T33, T37, T40).

The planner puts the target type into the call's own type. Numbers are converted by columns; strings and times in zones
are converted value by value, by the rules of :mod:`penstock.runtime.table.text`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.arrow import python_values, to_column
from penstock.core.table.type_rules import (
    as_decimal,
    is_approximate,
    is_binary,
    is_character,
    is_integer,
    is_interval,
    is_numeric,
    is_temporal,
)
from penstock.core.table.types import (
    ArrayType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
)
from penstock.runtime.table.decimals import fit
from penstock.runtime.table.expressions import Call, Evaluate, EvaluationContext, Rows, Value, as_column, evaluator
from penstock.runtime.table.functions.registry import ANY, ScalarFunction, register, stored
from penstock.runtime.table.text import (
    parse_boolean,
    parse_date,
    parse_number,
    parse_time,
    parse_timestamp,
    text_of,
)
from penstock.runtime.table.zones import instant_to_local, local_to_instant

Convert = Callable[[Any, EvaluationContext], Any]
_UNLIMITED = 2**31 - 1


class CastError(ValueError):
    """A value cannot be converted to the type of a CAST."""


def _compile(*, or_null: bool) -> Callable[[Call], Evaluate]:
    def compile_call(call: Call) -> Evaluate:
        (operand,) = call.operands
        return cast_evaluator(evaluator(operand), operand.type, call.type, or_null=or_null)

    return compile_call


def cast_evaluator(evaluate: Evaluate, source: DataType, target: DataType, *, or_null: bool = False) -> Evaluate:
    """Evaluate an expression and convert its result."""
    if source.same_type(target):
        return evaluate
    whole = _column_cast(source, target)
    if whole is not None:
        return lambda rows: whole(evaluate(rows), rows.context)
    convert = converter(source, target)

    narrow = _narrowing(source, target)

    def evaluate_cast(rows: Rows) -> Value:
        value = evaluate(rows)
        if narrow is not None:
            with contextlib.suppress(pa.ArrowInvalid):  # a value does not fit: the rows below say which
                return narrow(value)
        if isinstance(value, pa.Scalar):
            return _convert_column(pa.array([value.as_py()], value.type), rows.context)[0]
        return _convert_column(as_column(value, len(rows)), rows.context)

    def _convert_column(column: pa.Array, context: EvaluationContext) -> pa.Array:
        converted = [
            None if value is None else _converted(convert, value, context, target, or_null=or_null)
            for value in python_values(column, source)
        ]
        return to_column(converted, target)

    return evaluate_cast


def _converted(convert: Convert, value: Any, context: EvaluationContext, target: DataType, *, or_null: bool) -> Any:
    try:
        return convert(value, context)
    except (ValueError, OverflowError, InvalidOperation, ArithmeticError) as error:
        if or_null:
            return None
        raise CastError(f"cannot cast {value!r} to {target.as_summary_string()}: {error}") from error


# -- whole columns ----------------------------------------------------------------------------------------------------


def _narrowing(source: DataType, target: DataType) -> Callable[[Value], Value] | None:
    """Return a cast to a decimal of fewer digits before the point, which raises ArrowInvalid if a value has more."""
    if isinstance(target, DecimalType) and (is_integer(source) or isinstance(source, DecimalType)):
        exact = as_decimal(source)
        if exact.scale <= target.scale:
            return lambda value: value.cast(stored(exact)).cast(stored(target))
    return None


def _column_cast(  # noqa: C901 - a case for each pair of types
    source: DataType, target: DataType
) -> Callable[[Value, EvaluationContext], Value] | None:
    type_ = stored(target)
    if isinstance(source, NullType):
        return lambda value, _: pa.scalar(None, type_)
    if is_integer(source) and (is_integer(target) or is_approximate(target)):
        return lambda value, _: value.cast(type_, safe=False)
    if is_approximate(source) and is_approximate(target):
        return lambda value, _: value.cast(type_)
    if is_approximate(source) and is_integer(target):
        return lambda value, _: _truncated(value, type_)
    if isinstance(source, BooleanType) and is_integer(target):
        return lambda value, _: value.cast(type_)
    if isinstance(target, DecimalType) and (is_integer(source) or isinstance(source, DecimalType)):
        exact = as_decimal(source)
        if exact.scale <= target.scale and exact.precision - exact.scale <= target.precision - target.scale:
            return lambda value, _: value.cast(stored(exact)).cast(type_)
    if isinstance(source, DecimalType) and is_approximate(target):
        return lambda value, _: value.cast(pa.float64()).cast(type_)
    if is_character(source) and isinstance(target, VarCharType):
        return lambda value, _: _cut(value, target.length)
    if is_binary(source) and isinstance(target, VarBinaryType) and target.length >= _UNLIMITED:
        return lambda value, _: value
    if isinstance(source, DateType) and isinstance(target, TimestampType):
        return lambda value, _: value.cast(type_)
    if isinstance(source, TimestampType) and isinstance(target, DateType):
        return lambda value, _: pc.floor_temporal(value, unit="day").cast(pa.date32())
    if isinstance(source, TimestampType) and isinstance(target, TimestampType):
        return lambda value, _: _floor_to(value, target.precision)
    if isinstance(source, LocalZonedTimestampType) and isinstance(target, LocalZonedTimestampType):
        return lambda value, _: _floor_to(value, target.precision)
    if isinstance(source, TimestampType) and isinstance(target, LocalZonedTimestampType):
        return lambda value, context: _floor_to(local_to_instant(value, context.time_zone), target.precision)
    if isinstance(source, LocalZonedTimestampType) and isinstance(target, TimestampType):
        return lambda value, context: _floor_to(instant_to_local(value, context.time_zone), target.precision)
    if isinstance(source, LocalZonedTimestampType) and isinstance(target, DateType):
        return lambda value, context: pc.floor_temporal(instant_to_local(value, context.time_zone), unit="day").cast(
            pa.date32()
        )
    return None


def _truncated(value: Value, type_: pa.DataType) -> Value:
    """Cast floating-point numbers as in Java: truncate, limit to the type's range, NaN becomes 0."""
    bits = type_.bit_width
    limit = 2 ** (bits - 1)
    whole = pc.trunc(value.cast(pa.float64()))
    whole = pc.if_else(pc.is_nan(whole), pa.scalar(0.0), whole)
    wide = max(bits, 32)  # narrow types go through INT and wrap
    limit = 2 ** (wide - 1)
    too_large = pc.greater_equal(whole, pa.scalar(float(limit)))
    too_small = pc.less(whole, pa.scalar(-float(limit)))
    safe = pc.if_else(pc.or_(too_large, too_small), pa.scalar(0.0), whole).cast(pa.int64())
    clipped = pc.if_else(too_large, pa.scalar(limit - 1), pc.if_else(too_small, pa.scalar(-limit), safe))
    return clipped.cast(type_, safe=False)


def _cut(value: Value, length: int) -> Value:
    return value if length >= _UNLIMITED else pc.utf8_slice_codeunits(value, 0, length)


def _floor_to(value: Value, precision: int) -> Value:
    if precision >= 6:
        return value
    unit = {0: ("second", 1), 1: ("millisecond", 100), 2: ("millisecond", 10), 3: ("millisecond", 1)}
    name, multiple = unit.get(precision, ("microsecond", 10 ** (6 - precision)))
    if isinstance(value, pa.Scalar) and not value.is_valid:
        return value
    return pc.floor_temporal(value, multiple=multiple, unit=name)


# -- single values ----------------------------------------------------------------------------------------------------


def converter(source: DataType, target: DataType) -> Convert:
    """Return the conversion of one Python value to another type."""
    if is_character(target):
        return _to_text(source, target)
    if is_character(source):
        return _from_text(target)
    if is_binary(source) and is_binary(target):
        return lambda value, _: _sized(value, target)
    if isinstance(target, DecimalType):
        precision, scale = target.precision, target.scale
        return lambda value, _: fit(Decimal(repr(value) if isinstance(value, float) else value), precision, scale)
    if isinstance(target, BooleanType):
        return lambda value, _: value != 0
    if is_integer(target) and is_numeric(source):
        bits = target.bits  # type: ignore[attr-defined]
        return lambda value, _: _wrap(int(Decimal(value).to_integral_value(ROUND_DOWN)), bits)
    if is_numeric(source) and is_approximate(target):
        return lambda value, _: float(value)
    if is_numeric(target) and isinstance(source, BooleanType):
        return lambda value, _: float(value)
    if is_interval(source) and is_integer(target):
        return lambda value, _: value if isinstance(value, int) else int(value.total_seconds() * 1000)
    if is_temporal(source) and is_temporal(target):
        return _between_times(source, target)
    return _collections(source, target)


def _wrap(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _sized(data: bytes, target: DataType) -> bytes:
    """Bytes cut to the length of a type; BINARY is filled up with zeros (T37)."""
    length: int = target.length  # type: ignore[attr-defined]
    return bytes(data[:length]) if isinstance(target, VarBinaryType) else bytes(data[:length]).ljust(length, b"\0")


def _to_text(source: DataType, target: DataType) -> Convert:
    length = target.length  # type: ignore[attr-defined]
    padded = isinstance(target, CharType)

    def convert(value: Any, context: EvaluationContext) -> str:
        text = text_of(value, source, context.time_zone)[:length]
        return text.ljust(length) if padded else text

    return convert


def _from_text(target: DataType) -> Convert:
    match target:
        case BooleanType():
            return lambda value, _: parse_boolean(value)
        case DateType():
            return lambda value, _: parse_date(value)
        case TimeType():
            return lambda value, _: parse_time(value, target.precision)
        case TimestampType():
            return lambda value, _: parse_timestamp(value, target.precision)
        case LocalZonedTimestampType():
            return lambda value, context: _local(parse_timestamp(value, target.precision), context)
        case _ if is_binary(target):
            return lambda value, _: _sized(value.encode(), target)
        case _ if is_numeric(target):
            return lambda value, _: parse_number(value, target)
    raise CastError(f"text cannot be cast to {target}")


def _local(value: Any, context: EvaluationContext) -> Any:
    return local_to_instant(pa.scalar(value, pa.timestamp("us")), context.time_zone).as_py()


def _between_times(source: DataType, target: DataType) -> Convert:
    def convert(value: Any, context: EvaluationContext) -> Any:
        if isinstance(source, LocalZonedTimestampType):
            value = instant_to_local(pa.scalar(value, pa.timestamp("us", "UTC")), context.time_zone).as_py()
        if isinstance(target, TimeType):
            clock = value if isinstance(value, dt.time) else value.time()
            unit: int = 10 ** max(6 - target.precision, 0)
            return clock.replace(microsecond=clock.microsecond // unit * unit)
        moment = dt.datetime.combine(dt.date(1970, 1, 1), value) if isinstance(value, dt.time) else value
        if not isinstance(moment, dt.datetime):
            moment = dt.datetime.combine(moment, dt.time())
        return _local(moment, context) if isinstance(target, LocalZonedTimestampType) else moment

    return convert


def _collections(source: DataType, target: DataType) -> Convert:
    match source, target:
        case ArrayType(), ArrayType():
            element = _inner(source.element_type, target.element_type)
            return lambda value, context: [element(one, context) for one in value]
        case MultisetType(), MultisetType():
            element = _inner(source.element_type, target.element_type)
            return lambda value, context: {element(one, context): count for one, count in value.items()}
        case MapType(), MapType():
            key, item = _inner(source.key_type, target.key_type), _inner(source.value_type, target.value_type)
            return lambda value, context: {key(k, context): item(v, context) for k, v in value.items()}
        case RowType(), RowType():
            pairs = zip(source.field_types(), target.field_types(), strict=True)
            fields = [_inner(one, other) for one, other in pairs]
            return lambda value, context: [convert(one, context) for convert, one in zip(fields, value, strict=True)]
    raise CastError(f"{source} cannot be cast to {target}")


def _inner(source: DataType, target: DataType) -> Convert:
    if source.same_type(target) or isinstance(source, NullType):
        return lambda value, _: value
    convert = converter(source, target)
    return lambda value, context: None if value is None else convert(value, context)


for _name, _or_null in (("CAST", False), ("TRY_CAST", True)):
    register(
        ScalarFunction(
            _name, pc.cast, [ANY], lambda types: types[0], compiler=_compile(or_null=_or_null), may_fail=not _or_null
        )
    )
