"""Functions of dates and times: extraction, rounding, formatting, clocks (T40 to T49)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.table.type_rules import is_character
from penstock.core.table.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)
from penstock.runtime.table.expressions import Call, Evaluate, EvaluationContext, Rows, Value, as_column, evaluator
from penstock.runtime.table.functions.registry import (
    ANY,
    BIGINT,
    CHARACTER,
    NUMERIC,
    STRING,
    TEMPORAL,
    TIME_POINT,
    TIMESTAMP_3,
    ScalarFunction,
    by_row,
    register,
    row_evaluator,
    scalar,
)
from penstock.runtime.table.patterns import format_java, parse_java, parse_timestamp_text, smallest_unit
from penstock.runtime.table.text import parse_date
from penstock.runtime.table.zones import instant_to_local, local_to_instant

_PARTS: dict[str, Callable[[Value], Value]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "ISOYEAR": pc.iso_year,
    "ISODOW": lambda value: pc.day_of_week(value, count_from_zero=False),
    "DOW": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7),
    "MILLISECOND": pc.millisecond,
    "MICROSECOND": lambda value: _fraction(value, 1),
    "NANOSECOND": lambda value: _fraction(value, 1000),
}
_YEARS = {"DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1000}


def _fraction(value: Value, factor: int) -> Value:
    """The fraction of the second, in microseconds times a factor."""
    micros = pc.add(pc.multiply(pc.millisecond(value), pa.scalar(1000, pa.int64())), pc.microsecond(value))
    return pc.multiply(micros, pa.scalar(factor, pa.int64()))


def _local(value: Value, type_: DataType, context: EvaluationContext) -> Value:
    return instant_to_local(value, context.time_zone) if isinstance(type_, LocalZonedTimestampType) else value


def _compile_extract(call: Call) -> Evaluate:
    (operand,) = call.operands
    evaluate, type_ = evaluator(operand), operand.type
    unit = call.options[0].upper()

    def extract(rows: Rows) -> Value:
        value = _local(evaluate(rows), type_, rows.context)
        if isinstance(type_, DayTimeIntervalType):
            return _interval_part(value, unit)
        if isinstance(type_, YearMonthIntervalType):
            years = pc.divide(value.cast(pa.int64()), pa.scalar(12, pa.int64()))
            whole = pc.multiply(years, pa.scalar(12, pa.int64()))
            return years if unit == "YEAR" else pc.subtract(value.cast(pa.int64()), whole)
        if unit == "EPOCH":
            return pc.divide(value.cast(pa.timestamp("us")).cast(pa.int64()), pa.scalar(1_000_000, pa.int64()))
        if unit in _YEARS:
            count = _YEARS[unit]
            shift = 0 if unit == "DECADE" else count - 1
            return pc.divide(pc.add(pc.year(value), pa.scalar(shift, pa.int64())), pa.scalar(count, pa.int64()))
        return _PARTS[unit](value).cast(pa.int64())

    return extract


def _interval_part(value: Value, unit: str) -> Value:
    micros = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}[unit]
    whole = pc.divide(value.cast(pa.int64()), pa.scalar(micros, pa.int64()))
    if unit == "DAY":
        return whole
    wrap = pa.scalar(24 if unit == "HOUR" else 60, pa.int64())
    return pc.subtract(whole, pc.multiply(pc.divide(whole, wrap), wrap))


register(ScalarFunction("EXTRACT", pc.year, [ANY], BIGINT, compiler=_compile_extract))


def _part(name: str, unit: str) -> None:
    """Register a function that is short for EXTRACT(unit FROM x)."""

    def compile_call(call: Call) -> Evaluate:
        return _compile_extract(Call(call.type, "EXTRACT", call.operands, (unit,)))

    register(ScalarFunction(name, pc.year, [TEMPORAL], BIGINT, compiler=compile_call))


for _unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND"):
    _part(_unit, _unit)
_part("DAYOFYEAR", "DOY")
_part("DAYOFMONTH", "DAY")
_part("DAYOFWEEK", "DOW")


# -- clocks -----------------------------------------------------------------------------------------------------------


def _clock(name: str, gives: DataType, read: Callable[[EvaluationContext], Any]) -> None:
    def compile_call(call: Call) -> Evaluate:
        type_ = pa.timestamp("us", "UTC") if isinstance(gives, LocalZonedTimestampType) else None

        def evaluate(rows: Rows) -> Value:
            return pa.scalar(read(rows.context), type_)

        return evaluate

    register(
        ScalarFunction(
            name, pc.year, [], gives.not_null(), compiler=compile_call, deterministic=False, null_if_null=False
        )
    )


def _now(context: EvaluationContext) -> dt.datetime:
    millis = context.query_start if context.batch_execution else context.now
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=millis)


def _local_now(context: EvaluationContext) -> dt.datetime:
    return _now(context).astimezone(ZoneInfo(context.time_zone)).replace(tzinfo=None)


_clock("CURRENT_TIMESTAMP", LocalZonedTimestampType(3), _now)
_clock("NOW", LocalZonedTimestampType(3), _now)
_clock("CURRENT_ROW_TIMESTAMP", LocalZonedTimestampType(3), _now)
_clock("PROCTIME", LocalZonedTimestampType(3), _now)
_clock("LOCALTIMESTAMP", TimestampType(3), _local_now)
_clock("CURRENT_DATE", DateType(), lambda context: _local_now(context).date())
_clock("CURRENT_TIME", TimeType(0), lambda context: _local_now(context).time().replace(microsecond=0))
_clock("LOCALTIME", TimeType(0), lambda context: _local_now(context).time().replace(microsecond=0))


def _compile_watermark(call: Call) -> Evaluate:
    type_ = pa.timestamp("us", "UTC") if isinstance(call.type, LocalZonedTimestampType) else pa.timestamp("us")

    def evaluate(rows: Rows) -> Value:
        millis = rows.context.watermark
        return pa.scalar(None if millis == MIN_WATERMARK else millis * 1000, pa.int64()).cast(type_)

    return evaluate


def _watermark_type(types: Sequence[DataType]) -> DataType | None:
    one = types[0]
    return type(one)(3) if isinstance(one, (TimestampType, LocalZonedTimestampType)) else None


register(
    ScalarFunction(
        "CURRENT_WATERMARK",
        pc.year,
        [TIME_POINT],
        _watermark_type,
        compiler=_compile_watermark,
        deterministic=False,
        null_if_null=False,
    )
)


# -- text -------------------------------------------------------------------------------------------------------------


def _compile_format(call: Call) -> Evaluate:
    value_of, pattern_of = (evaluator(operand) for operand in call.operands)
    type_ = call.operands[0].type
    if is_character(type_):
        return row_evaluator(call, _reformat, sees_null=False)

    def evaluate(rows: Rows) -> Value:
        value = as_column(_local(value_of(rows), type_, rows.context), len(rows))
        pattern = pattern_of(rows)
        if isinstance(pattern, pa.Scalar):
            return _formatted(value, pattern.as_py())
        pairs = zip(value.to_pylist(), pattern.to_pylist(), strict=True)
        return pa.array(
            [None if one is None or how is None else format_java(one, how) for one, how in pairs], pa.string()
        )

    return evaluate


def _formatted(times: pa.Array, pattern: str | None) -> pa.Array:
    """Format times with one pattern. Equal results are formatted once: a stream has few days, hours or minutes."""
    if pattern is None:
        return pa.nulls(len(times), pa.string())
    unit = smallest_unit(pattern)
    if pa.types.is_timestamp(times.type) and unit is not None:
        times = pc.floor_temporal(times, unit=unit)
    distinct = times.dictionary_encode()
    texts = [None if one is None else format_java(one, pattern) for one in distinct.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(distinct.indices)


def _reformat(text: str, pattern: str) -> str | None:
    moment = parse_java(text, "yyyy-MM-dd HH:mm:ss")
    return None if moment is None else format_java(moment, pattern)


def _time_or_text(one: DataType) -> bool:
    return TIME_POINT(one) or is_character(one)


register(ScalarFunction("DATE_FORMAT", pc.year, [_time_or_text, CHARACTER], STRING, compiler=_compile_format))


@by_row("TO_TIMESTAMP", takes=[CHARACTER, CHARACTER], gives=TIMESTAMP_3, optional=1)
def to_timestamp(text: str, pattern: str = "yyyy-MM-dd HH:mm:ss") -> dt.datetime | None:
    """Parse text as a TIMESTAMP(3); NULL if it neither fits the pattern nor is a date with an optional time."""
    found = parse_timestamp_text(text, pattern)
    return None if found is None else found.replace(microsecond=found.microsecond // 1000 * 1000)


@by_row("TO_DATE", takes=[CHARACTER, CHARACTER], gives=DateType(), optional=1)
def to_date(text: str, pattern: str | None = None) -> dt.date | None:
    """Parse text as a DATE; NULL if it does not fit the pattern."""
    if pattern is None:
        try:
            return parse_date(text)
        except ValueError:
            return None
    parsed = parse_java(text, pattern)
    return None if parsed is None else parsed.date()


@scalar("TO_TIMESTAMP_LTZ", takes=[NUMERIC, BIGINT], gives=LocalZonedTimestampType(3), optional=1)
def to_timestamp_ltz(context: EvaluationContext, number: Value, precision: Value | None = None) -> Value:
    """Convert seconds (0) or milliseconds (3) since the epoch to a point in time. Fractions are truncated."""
    known = set(precision.unique().to_pylist() if isinstance(precision, pa.Array) else [_py(precision)])
    if not known <= {0, 3, None}:
        raise ValueError(f"the precision of TO_TIMESTAMP_LTZ must be 0 or 3, got {max(known - {0, 3, None})}")
    factor = pa.scalar(1000, pa.int64())
    if precision is not None:
        seconds = pc.equal(precision, pa.scalar(0, pa.int64()))
        factor = pc.if_else(seconds, pa.scalar(1_000_000, pa.int64()), factor)
    whole = number.cast(pa.int64()) if pa.types.is_integer(number.type) else pc.trunc(number).cast(pa.int64())
    return pc.multiply(whole, factor).cast(pa.timestamp("us", "UTC"))


def _py(value: Any) -> Any:
    return 3 if value is None else value.as_py()


# -- rounding ---------------------------------------------------------------------------------------------------------


def _compile_round(*, up: bool) -> Callable[[Call], Evaluate]:
    def round_to(value: Value, unit: str) -> Value:
        if unit.upper() in _YEARS:
            return _round_years(value, unit.upper(), up=up)
        low = pc.floor_temporal(value, unit=unit, week_starts_monday=False)
        if not up:
            return low
        high = pc.ceil_temporal(value, unit=unit, week_starts_monday=False)
        return pc.if_else(pc.equal(low, value), value, high)

    def compile_call(call: Call) -> Evaluate:
        (operand,) = call.operands
        evaluate_operand, unit, type_ = evaluator(operand), call.options[0].lower(), operand.type

        def evaluate(rows: Rows) -> Value:
            value = evaluate_operand(rows)
            if isinstance(type_, DateType):
                return round_to(value.cast(pa.timestamp("us")), unit).cast(pa.date32())
            if isinstance(type_, TimeType):
                return round_to(value.cast(pa.int64()).cast(pa.timestamp("us")), unit).cast(pa.time64("us"))
            if isinstance(type_, LocalZonedTimestampType):
                local = round_to(instant_to_local(value, rows.context.time_zone), unit)
                return local_to_instant(local, rows.context.time_zone)
            return round_to(value, unit).cast(value.type)

        return evaluate

    return compile_call


def _round_years(value: Value, unit: str, *, up: bool) -> Value:
    """The beginning of a decade, century or millennium. Centuries begin with the year 1, decades with the year 0."""

    def rounded(one: dt.datetime) -> dt.datetime:
        count, shift = _YEARS[unit], 0 if unit == "DECADE" else 1
        begin = dt.datetime((one.year - shift) // count * count + shift, 1, 1)  # noqa: DTZ001
        return begin.replace(year=begin.year + count) if up and begin < one else begin

    if isinstance(value, pa.Scalar):
        return pa.scalar(None if not value.is_valid else rounded(value.as_py()), value.type)
    return pa.array([None if one is None else rounded(one) for one in value.to_pylist()], value.type)


for _name, _up in (("FLOOR TO", False), ("CEIL TO", True)):
    register(ScalarFunction(_name, pc.year, [TEMPORAL], lambda types: types[0], compiler=_compile_round(up=_up)))
