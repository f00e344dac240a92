"""Interval literals: ``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""

from __future__ import annotations

import datetime as dt
import re

from penstock.util.exceptions import SqlParserException

_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_MICROS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
}


def day_time_interval(text: str, units: list[str]) -> dt.timedelta:
    """Parse an interval from days to fractions of seconds.

    >>> day_time_interval("1 02:03", ["DAY", "MINUTE"])
    datetime.timedelta(days=1, seconds=7380)
    """
    sign, digits = _signed(text)
    if len(units) == 1:
        number = re.fullmatch(r"\d+(\.\d+)?", digits)
        if number is None or units[0] not in _MICROS:
            raise _illegal(text, units)
        return sign * dt.timedelta(microseconds=round(float(digits) * _MICROS[units[0]]))
    if units[0] not in _UNITS or units[1] not in _UNITS:
        raise _illegal(text, units)
    wanted = _UNITS[_UNITS.index(units[0]) : _UNITS.index(units[1]) + 1]
    parts = [part for part in re.split(r"[ :]+", digits) if part]
    if len(parts) != len(wanted):
        raise _illegal(text, units)
    micros = sum(round(float(part) * _MICROS[unit]) for part, unit in zip(parts, wanted, strict=True))
    return sign * dt.timedelta(microseconds=micros)


def year_month_interval(text: str, units: list[str]) -> int:
    """Parse an interval of years and months. Return the number of months.

    >>> year_month_interval("1-2", ["YEAR", "MONTH"])
    14
    """
    sign, digits = _signed(text)
    parts = digits.split("-")
    if not all(part.strip().isdigit() for part in parts) or len(parts) != len(units):
        raise _illegal(text, units)
    if len(units) == 2:
        return sign * (12 * int(parts[0]) + int(parts[1]))
    return sign * int(parts[0]) * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[units[0]]


def _signed(text: str) -> tuple[int, str]:
    word = text.strip()
    return (-1, word[1:].strip()) if word.startswith("-") else (1, word.removeprefix("+").strip())


def _illegal(text: str, units: list[str]) -> SqlParserException:
    return SqlParserException(f"SQL parse failed. Illegal interval literal '{text}' for INTERVAL {' TO '.join(units)}")
