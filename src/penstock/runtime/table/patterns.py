"""Date patterns of Java (``yyyy-MM-dd HH:mm:ss.SSS``) for formatting and parsing."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache

_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|(.)", re.DOTALL)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@cache
def _tokens(pattern: str) -> list[tuple[str, int, str]]:
    """Return (letter, repetitions, literal text) tuples."""
    found = []
    for match in _TOKEN.finditer(pattern):
        quoted, letter, other = match.groups()
        if letter:
            found.append((letter, len(match.group()), ""))
        else:
            found.append(("", 0, other if quoted is None else (quoted or "'")))
    return found


_UNITS = (  # letters of a pattern, by the smallest unit of time that they show
    ("S", None),
    ("s", "second"),
    ("m", "minute"),
    ("HhkKa", "hour"),
    ("dDEuwWF", "day"),
    ("MLQq", "month"),
    ("yG", "year"),
)


@cache
def smallest_unit(pattern: str) -> str | None:
    """Return the longest time unit within which the formatted text is constant, or None if that is too short.

    >>> smallest_unit("yyyy-MM-dd"), smallest_unit("HH:mm"), smallest_unit("HH:mm:ss.SSS")
    ('day', 'minute', None)
    """
    letters = {letter for letter, _, _ in _tokens(pattern) if letter}
    return next((unit for known, unit in _UNITS if letters & set(known)), None)


def format_java(value: dt.date | dt.datetime, pattern: str) -> str:
    """Format a date or time with a pattern.

    >>> format_java(dt.datetime(2024, 1, 2, 3, 4, 5, 678000), "yyyy-MM-dd'T'HH:mm:ss.SSS")
    '2024-01-02T03:04:05.678'
    """
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    return "".join(
        literal if not letter else _part(moment, letter, count) for letter, count, literal in _tokens(pattern)
    )


def _part(moment: dt.datetime, letter: str, count: int) -> str:
    if letter in "yu":
        return f"{moment.year % 100:02d}" if count == 2 else str(moment.year).zfill(count)
    if letter in "ML" and count >= 3:
        return _MONTHS[moment.month - 1][: 3 if count == 3 else None]
    if letter == "E":
        return _DAYS[moment.weekday()][: 3 if count <= 3 else None]
    if letter == "a":
        return "AM" if moment.hour < 12 else "PM"
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(9, "0")[:count]
    numbers = {
        "M": moment.month,
        "L": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "h": moment.hour % 12 or 12,
        "k": moment.hour or 24,
        "K": moment.hour % 12,
        "m": moment.minute,
        "s": moment.second,
        "D": moment.timetuple().tm_yday,
        "w": moment.isocalendar()[1],
        "u": moment.isoweekday(),
    }
    if letter not in numbers:
        raise ValueError(f"the date pattern letter {letter!r} is not supported")
    return str(numbers[letter]).zfill(count)


@cache
def _regex(pattern: str) -> tuple[re.Pattern[str], list[str]]:
    parts, letters = [], []
    for letter, count, literal in _tokens(pattern):
        if not letter:
            parts.append(re.escape(literal))
            continue
        letters.append(letter)
        if letter in "ML" and count >= 3:
            parts.append("([A-Za-z]+)")
        elif letter == "a":
            parts.append("([AaPp][Mm])")
        elif letter == "E":
            parts.append("([A-Za-z]+)")
        elif letter == "S":
            parts.append(rf"(\d{{1,{max(count, 9)}}})")
        else:
            parts.append(rf"(\d{{1,{max(count, 2)}}})" if letter not in "yu" else rf"(\d{{{count},}})")
    return re.compile("".join(parts)), letters


def parse_java(text: str, pattern: str) -> dt.datetime | None:
    """Parse text with a pattern. Return None if it does not fit.

    >>> parse_java("2024-01-02 03:04:05", "yyyy-MM-dd HH:mm:ss")
    datetime.datetime(2024, 1, 2, 3, 4, 5)
    """
    regex, letters = _regex(pattern)
    found = regex.match(text)
    if found is None:
        return None
    values = dict(zip(letters, found.groups(), strict=True))
    month = values.get("M") or values.get("L") or "1"
    if not month.isdigit():
        names = [name[:3].lower() for name in _MONTHS]
        month = str(names.index(month[:3].lower()) + 1) if month[:3].lower() in names else "0"
    hour = int(values.get("H") or values.get("k") or values.get("h") or values.get("K") or 0)
    if values.get("a", "").lower() == "pm" and hour < 12:
        hour += 12
    year = values.get("y") or values.get("u") or "1970"
    fraction = (values.get("S") or "").ljust(6, "0")[:6]
    try:
        return dt.datetime(  # noqa: DTZ001 - a TIMESTAMP has no zone
            int(year) + (2000 if len(year) == 2 else 0),
            int(month),
            int(values.get("d") or 1),
            hour % 24,
            int(values.get("m") or 0),
            int(values.get("s") or 0),
            int(fraction),
        )
    except ValueError:
        return None
