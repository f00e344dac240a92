"""Conversions between values and text for CAST (T33, T37)."""

from __future__ import annotations

import datetime as dt
import math
import re
from calendar import monthrange
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from penstock.core.table.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)
from penstock.runtime.table.decimals import fit

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})


def text_of(value: Any, data_type: DataType, time_zone: str = "UTC") -> str:  # noqa: C901 - a case for each type
    """Convert a value that is not NULL to text.

    >>> from penstock.core.table.types import DataTypes
    >>> text_of([1.0, None], DataTypes.ARRAY(DataTypes.DOUBLE()))
    '[1.0, NULL]'
    >>> text_of(dt.datetime(2024, 1, 2, 3, 4, 5), DataTypes.TIMESTAMP(3))
    '2024-01-02 03:04:05.000'
    """
    match data_type:
        case FloatType() | DoubleType():
            return _float_text(value, single=isinstance(data_type, FloatType))
        case DecimalType():
            return f"{value:f}"
        case TimestampType():
            return _timestamp_text(value, data_type.precision)
        case LocalZonedTimestampType():
            return _timestamp_text(value.astimezone(ZoneInfo(time_zone)).replace(tzinfo=None), data_type.precision)
        case TimeType():
            text = _fraction(value.strftime("%H:%M:%S"), value.microsecond, data_type.precision)
            return text.rstrip("0").rstrip(".") if "." in text else text
        case DayTimeIntervalType():
            return _interval_text(value)
        case YearMonthIntervalType():
            return f"{'-' if value < 0 else '+'}{abs(value) // 12}-{abs(value) % 12:02d}"
        case ArrayType():
            return f"[{', '.join(_element(one, data_type.element_type, time_zone) for one in value)}]"
        case MapType():
            pairs = [
                f"{_element(k, data_type.key_type, time_zone)}={_element(v, data_type.value_type, time_zone)}"
                for k, v in value.items()
            ]
            return f"{{{', '.join(pairs)}}}"
        case MultisetType():
            return f"{{{', '.join(f'{_element(k, data_type.element_type, time_zone)}={n}' for k, n in value.items())}}}"
        case RowType():
            parts = zip(value, data_type.field_types(), strict=True)
            return f"({', '.join(_element(one, kind, time_zone) for one, kind in parts)})"
    if value is True or value is False:
        return "TRUE" if value else "FALSE"
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    return str(value)


def _element(value: Any, data_type: DataType, time_zone: str) -> str:
    return "NULL" if value is None else text_of(value, data_type, time_zone)


def _float_text(value: float, *, single: bool) -> str:
    """Format like Java: at least one digit after the point, E notation from 10 million and below 0.001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits = _shortest_single(value) if single else repr(value)
    sign, figures, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, figures)).rstrip("0") or "0"
    exponent += len(figures) - len(text)
    point = len(text) + exponent  # number of digits before the decimal point
    minus = "-" if sign else ""
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        whole = text[:point].ljust(point, "0")
        return f"{minus}{whole}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _shortest_single(value: float) -> str:
    """Return the shortest text that represents the same 32-bit number."""
    import struct

    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", value):
            return text
    return repr(value)


def _timestamp_text(value: dt.datetime, precision: int) -> str:
    return _fraction(value.isoformat(" ", "seconds"), value.microsecond, precision)


def _fraction(text: str, microsecond: int, precision: int) -> str:
    return text if precision == 0 else f"{text}.{f'{microsecond:06d}'.ljust(9, '0')[:precision]}"


def _interval_text(value: dt.timedelta) -> str:
    micros = value // dt.timedelta(microseconds=1)
    sign = "-" if micros < 0 else "+"
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{sign}{days} {hour:02d}:{minute:02d}:{second:02d}.{fraction // 1000:03d}"


# -- parsing ----------------------------------------------------------------------------------------------------------


_INTEGER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_FLOAT = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)


def parse_boolean(text: str) -> bool:
    """Parse TRUE, FALSE and their short forms."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"{text!r} is not a BOOLEAN")


def parse_number(text: str, target: DataType) -> Any:
    """Parse a number of the target type. Text with too many digits for the type is an error, not NULL."""
    word = text.strip()
    if isinstance(target, IntegralType):
        if _INTEGER.fullmatch(word) is None:
            raise ValueError(f"{text!r} is not a number")
        number = int(Decimal(word))
        if not -(1 << (target.bits - 1)) <= number < 1 << (target.bits - 1):
            raise ValueError(f"{text!r} is out of range for {target.summary()}")
        return number
    if _FLOAT.fullmatch(word) is None:
        raise ValueError(f"{text!r} is not a number")
    if not isinstance(target, DecimalType):
        return float(word.rstrip("fFdD"))
    try:
        exact = fit(Decimal(word), target.precision, target.scale)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if exact is None:
        raise ValueError(f"{text!r} is out of range for {target.summary()}")
    return exact


_SHORT_DATE = re.compile(r"(\d{1,4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?: .*)?", re.DOTALL)
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_TIMESTAMP = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?")


def parse_date(text: str) -> dt.date:
    """Parse ``2024-01-31``. Month and day are optional, and a time after it is ignored."""
    found = _SHORT_DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a DATE")
    return dt.date(*(int(part or 1) for part in found.groups()))


def parse_time(text: str, precision: int = 6) -> dt.time:
    """Parse ``12:30:00.5``. A date in front of it is ignored."""
    found = _TIME.fullmatch(text.strip().rsplit(" ", 1)[-1])
    if found is None:
        raise ValueError(f"{text!r} is not a TIME")
    hour, minute, second, fraction = found.groups()
    return dt.time(int(hour), int(minute or 0), int(second or 0), _micros(fraction, precision))


def parse_timestamp(text: str, precision: int = 6) -> dt.datetime:
    """Parse ``2024-01-31 12:30:00.123``. The time is optional. Day 30 of February is its last day."""
    found = _TIMESTAMP.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a TIMESTAMP")
    *parts, fraction = found.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    if day <= 31:
        day = min(day, monthrange(year, month)[1])
    return dt.datetime(year, month, day, hour, minute, second, _micros(fraction, precision))  # noqa: DTZ001


def _micros(fraction: str | None, precision: int) -> int:
    """The digits of a fraction of a second, cut to the precision, as microseconds."""
    return int((fraction or "")[: min(precision, 6)].ljust(6, "0"))
