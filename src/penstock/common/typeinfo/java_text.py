"""Formats numbers and times like Java, since that is what Flink prints."""

from __future__ import annotations

import math
from datetime import date, datetime, time

from penstock.common.time import fraction_of_second
from penstock.common.typeinfo.single import single

__all__ = ["java_double", "java_float", "java_local_time", "java_timestamp", "shortest_double"]


def java_double(value: float) -> str:
    """Format a double like ``Double.toString``.

    >>> java_double(1.0), java_double(1e10), java_double(0.0001), java_double(float("inf"))
    ('1.0', '1.0E10', '1.0E-4', 'Infinity')
    """
    return _java_number(value, repr(value))


def java_float(value: float) -> str:
    """Format a number, reduced to 32 bits, like ``Float.toString``.

    >>> java_float(0.1), java_float(1 / 3), java_float(16777216)
    ('0.1', '0.33333334', '1.6777216E7')
    """
    rounded = single(value)
    return _java_number(rounded, repr(shortest_double(rounded)))


def shortest_double(value: float) -> float:
    """Return the double with the fewest digits that has the same 32 bits, which prints as Java prints a float.

    >>> shortest_double(0.10000000149011612), shortest_double(float("inf"))
    (0.1, inf)
    """
    if not math.isfinite(value):
        return value
    candidates = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next(candidate for candidate in candidates if single(candidate) == value)  # nine digits are always enough


def _java_number(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    magnitude = abs(value)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        return shortest if "." in shortest and "e" not in shortest else f"{value:.1f}"
    if len(shortest.partition("e")[0].strip("-0.")) == 1:
        # Java writes at least two digits, and the second one is the nearest: the smallest double is 4.9E-324.
        shortest = f"{value:.1e}"
    mantissa, _, exponent = shortest.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    # Normalise to one digit before the point: find the point, then strip the zeros around the digits.
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - 1 - (len(digits) - len(digits.lstrip("0")))
    digits = digits.strip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def java_timestamp(value: datetime) -> str:
    """Format a datetime like ``java.sql.Timestamp``.

    >>> java_timestamp(datetime(2020, 1, 2, 3, 4, 5)), java_timestamp(datetime(2020, 1, 2, 3, 4, 5, 120000))
    ('2020-01-02 03:04:05.0', '2020-01-02 03:04:05.12')
    """
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def java_local_time(value: date | time | datetime) -> str:
    """Format a local date, time or datetime like ``java.time``: seconds only if they are not zero.

    >>> java_local_time(time(9, 30)), java_local_time(time(9, 30, 1, 5000))
    ('09:30', '09:30:01.005')
    >>> java_local_time(datetime(2020, 1, 2, 3, 4))
    '2020-01-02T03:04'
    """
    if isinstance(value, datetime):
        return f"{value.date().isoformat()}T{java_local_time(value.time())}"
    if isinstance(value, date):
        return value.isoformat()
    text = f"{value:%H:%M}"
    if value.second or value.microsecond:
        text += f":{value.second:02d}{fraction_of_second(value.microsecond * 1_000)}"
    return text
