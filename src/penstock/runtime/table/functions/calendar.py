"""Differences and sums of times, times in zones, seconds since 1970."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from penstock.core.table.type_rules import is_interval, is_timestamp
from penstock.core.table.types import (
    BooleanType,
    DataType,
    DateType,
    IntType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
)
from penstock.runtime.table.expressions import Call, Evaluate, Rows
from penstock.runtime.table.functions.arithmetic import add_months
from penstock.runtime.table.functions.registry import (
    ANY,
    BIGINT,
    CHARACTER,
    INTEGER,
    STRING,
    TEMPORAL,
    Family,
    ScalarFunction,
    register,
    row_evaluator,
)
from penstock.runtime.table.patterns import format_java, parse_java, parse_timestamp_text
from penstock.runtime.table.zones import java_zone

_DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_MICROSECOND = dt.timedelta(microseconds=1)
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200}
_LENGTHS = {
    "MICROSECOND": dt.timedelta(microseconds=1),
    "FRAC_SECOND": dt.timedelta(milliseconds=1),
    "MILLISECOND": dt.timedelta(milliseconds=1),
    "SECOND": dt.timedelta(seconds=1),
    "MINUTE": dt.timedelta(minutes=1),
    "HOUR": dt.timedelta(hours=1),
    "DAY": dt.timedelta(days=1),
    "WEEK": dt.timedelta(weeks=1),
}


def _unit(call: Call) -> str:
    name = str(call.options[0]).upper().removeprefix("SQL_TSI_")
    if name not in _MONTHS and name not in _LENGTHS:
        raise ValueError(f"{name} is not a time unit: use SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR")
    return name


# -- TIMESTAMPADD, TIMESTAMPDIFF --------------------------------------------------------------------------------------


def _compile_add(call: Call) -> Evaluate:
    unit, result = _unit(call), call.type

    def add(amount: Any, moment: Any) -> Any:
        if unit in _MONTHS:
            return add_months(moment, _MONTHS[unit] * amount)
        if isinstance(result, DateType):
            return moment + int(amount) * _LENGTHS[unit]
        if isinstance(result, TimeType):
            return (_moment(moment, result) + int(amount) * _LENGTHS[unit]).time()
        whole = moment if isinstance(moment, dt.datetime) else dt.datetime.combine(moment, dt.time())
        return whole + int(amount) * _LENGTHS[unit]

    return row_evaluator(Call(result, call.function, call.operands), add, sees_null=False)


def sum_type(unit: str, moment: DataType) -> DataType:
    """Return the type of TIMESTAMPADD: a date plus hours is a timestamp."""
    if isinstance(moment, DateType) and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"):
        return TimestampType(6 if unit in ("HOUR", "MINUTE", "SECOND") else 3)
    return moment


register(ScalarFunction("TIMESTAMPADD", pa.scalar, [INTEGER, TEMPORAL], lambda types: types[1], compiler=_compile_add))


def _compile_difference(call: Call) -> Evaluate:
    unit = _unit(call)
    types = [operand.type for operand in call.operands]

    def difference(first: Any, second: Any) -> int:
        start, end = (_moment(one, type_) for one, type_ in zip((first, second), types, strict=True))
        if unit in _MONTHS:
            return _whole(_months_between(start, end), _MONTHS[unit])
        return _whole((end - start) // _MICROSECOND, _LENGTHS[unit] // _MICROSECOND)

    return row_evaluator(Call(call.type, call.function, call.operands), difference, sees_null=False)


def _moment(value: Any, type_: DataType) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date(1970, 1, 1), value)
    return dt.datetime.combine(value, dt.time())


def _whole(amount: int, unit: int) -> int:
    """Return whole units, truncated towards zero."""
    return amount // unit if amount >= 0 else -(-amount // unit)


def _months_between(start: dt.datetime, end: dt.datetime) -> int:
    """Return the number of complete months. If they are whole but for the time of the day, the earlier time counts."""
    months = _months_between_days(start.date(), end.date())
    same_day = bool(add_months(start.date(), months) == end.date())
    return months - 1 if same_day and end.time() < start.time() else months


def _months_between_days(start: dt.date, end: dt.date) -> int:
    """One that is not over does not count, except that the last day of a month ends it."""
    if end < start:
        return -_months_between_days(end, start)
    months = 12 * (end.year - start.year) + end.month - start.month
    return months if add_months(start, months) <= end else months - 1


register(
    ScalarFunction(
        "TIMESTAMPDIFF",
        pa.scalar,
        [TEMPORAL, TEMPORAL],
        lambda types: IntType(),
        compiler=_compile_difference,
    )
)


# -- OVERLAPS ---------------------------------------------------------------------------------------------------------


def _compile_overlaps(call: Call) -> Evaluate:
    types = [operand.type for operand in call.operands]

    def overlaps(first: Any, first_end: Any, second: Any, second_end: Any) -> bool:
        one = _period(first, first_end, types[0])
        other = _period(second, second_end, types[2])
        return one[1] >= other[0] and other[1] >= one[0]

    return row_evaluator(call, overlaps, sees_null=False)


def _period(start: Any, end: Any, type_: DataType) -> tuple[dt.datetime, dt.datetime]:
    begin = _moment(start, type_)
    if isinstance(end, dt.timedelta):
        finish = begin + end
    elif isinstance(end, int):
        finish = add_months(begin, end)
    else:
        finish = _moment(end, type_)
    return (begin, finish) if begin <= finish else (finish, begin)


def _overlap_types(types: Sequence[DataType]) -> DataType | None:
    starts, ends = types[::2], types[1::2]
    fits = all(is_timestamp(one) or isinstance(one, (DateType, TimeType)) for one in starts)
    fits &= all(is_interval(one) or is_timestamp(one) or isinstance(one, (DateType, TimeType)) for one in ends)
    return BooleanType() if fits else None


register(ScalarFunction("OVERLAPS", pa.scalar, [ANY] * 4, _overlap_types, compiler=_compile_overlaps))


# -- zones and seconds ------------------------------------------------------------------------------------------------


def _in_zone(body: Callable[..., Any]) -> Callable[[Call], Evaluate]:
    """Compile a function of single values that receives the session's time zone as its first argument."""

    def compile_call(call: Call) -> Evaluate:
        zone = "UTC"

        def apply(*values: Any) -> Any:
            return body(zone, *values)

        run = row_evaluator(call, apply, sees_null=False)

        def evaluate(rows: Rows) -> Any:
            nonlocal zone
            zone = rows.context.time_zone
            return run(rows)

        return evaluate

    return compile_call


def _convert_tz(_: str, text: str, source: str, target: str) -> str | None:
    moment = parse_java(text, _DEFAULT_PATTERN, rolls=True)
    if moment is None:
        return None
    there = moment.replace(tzinfo=java_zone(source)).astimezone(java_zone(target))
    return format_java(there.replace(tzinfo=None), _DEFAULT_PATTERN)


def _from_unixtime(zone: str, seconds: int, pattern: str = _DEFAULT_PATTERN) -> str:
    moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(seconds=seconds)
    return format_java(moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None), pattern)


def _unix_timestamp(zone: str, text: str, pattern: str = _DEFAULT_PATTERN) -> int:
    moment = parse_java(text, pattern, rolls=True)
    if moment is None:
        return -(2**63)  # Flink's result for text that is not a time
    return int(moment.replace(tzinfo=ZoneInfo(zone)).timestamp() // 1)


def _instant_of_text(zone: str, text: str, pattern: str = _DEFAULT_PATTERN, named: str = "UTC") -> dt.datetime | None:
    moment = parse_timestamp_text(text, pattern)
    if moment is None:
        if pattern == _DEFAULT_PATTERN:
            raise ValueError(f"{text!r} is not a TIMESTAMP_LTZ")
        return None
    return moment.replace(tzinfo=ZoneInfo(named)).astimezone(dt.UTC)


def _compile_unix_timestamp(call: Call) -> Evaluate:
    if not call.operands:
        return lambda rows: pa.scalar(rows.context.now // 1000, pa.int64())
    return _in_zone(_unix_timestamp)(call)


_ZONED: list[tuple[str, list[Family | DataType], DataType, int, Callable[[Call], Evaluate]]] = [
    ("CONVERT_TZ", [CHARACTER, CHARACTER, CHARACTER], STRING, 0, _in_zone(_convert_tz)),
    ("FROM_UNIXTIME", [BIGINT, CHARACTER], STRING, 1, _in_zone(_from_unixtime)),
    ("UNIX_TIMESTAMP", [CHARACTER, CHARACTER], BIGINT, 2, _compile_unix_timestamp),
    ("$INSTANT OF TEXT", [CHARACTER, CHARACTER, CHARACTER], LocalZonedTimestampType(3), 2, _in_zone(_instant_of_text)),
]
for _name, _takes, _gives, _optional, _compiler in _ZONED:
    register(
        ScalarFunction(
            _name,
            pa.scalar,
            _takes,
            _gives,
            _optional,
            compiler=_compiler,
            null_if_null=False,
            deterministic=_name != "UNIX_TIMESTAMP",
        )
    )
