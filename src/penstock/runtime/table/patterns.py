"""Date patterns of Java (``yyyy-MM-dd HH:mm:ss.SSS``) for formatting and parsing."""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange
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
        return _DAYS[moment.weekday()][: {4: None, 5: 1}.get(count, 3)]
    if letter in "Qq" and count >= 3:
        return f"Q{(moment.month + 2) // 3}"
    if letter == "G":
        return "AD"
    if letter == "Y":
        year = _week_year(moment)
        return f"{year % 100:02d}" if count == 2 else str(year).zfill(count)
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
        "w": _week_of_year(moment),
        "W": (moment.day - 1 + _weekday(moment.replace(day=1))) // 7 + 1,
        "e": _weekday(moment) + 1,
        "c": _weekday(moment) + 1,
        "Q": (moment.month + 2) // 3,
        "q": (moment.month + 2) // 3,
        "n": moment.microsecond * 1000,
        "N": _millis_of_day(moment) * 1_000_000 + moment.microsecond % 1000 * 1000,
        "A": _millis_of_day(moment),
    }
    if letter not in numbers:
        raise ValueError(f"the date pattern letter {letter!r} is not supported")
    return str(numbers[letter]).zfill(count)


def _weekday(moment: dt.datetime) -> int:
    """Days since Sunday."""
    return moment.isoweekday() % 7


def _week_year(moment: dt.datetime) -> int:
    """The year of a week, which begins on Sunday: the first week is the one with the first of January."""
    saturday = moment + dt.timedelta(days=6 - _weekday(moment))
    return saturday.year


def _week_of_year(moment: dt.datetime) -> int:
    first = dt.datetime(_week_year(moment), 1, 1)  # noqa: DTZ001
    return 1 if first > moment else (moment.timetuple().tm_yday - 1 + _weekday(first)) // 7 + 1


def _millis_of_day(moment: dt.datetime) -> int:
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return seconds * 1000 + moment.microsecond // 1000


_NUMERIC = "yuMLdHhkKmsSDwe"


@cache
def _regex(pattern: str, *, strict: bool) -> tuple[re.Pattern[str], list[str]]:
    parts, letters = [], []
    tokens = _tokens(pattern)
    followers = [*tokens[1:], ("", 0, "")]
    for (letter, count, literal), (following, following_count, _) in zip(tokens, followers, strict=True):
        if not letter:
            parts.append(re.escape(literal))
            continue
        letters.append(letter)
        adjacent = following != "" and following in _NUMERIC and (following not in "ML" or following_count < 3)
        if letter in "Xx":
            parts.append(r"(Z|[+-]\d{2}:?\d{2}|[+-]\d{2})")
        elif letter == "a":
            parts.append("(AM|PM)" if strict else "([AaPp][Mm])")
        elif letter == "E" or (letter in "ML" and count >= 3):
            parts.append("([A-Za-z]+)")
        elif strict:
            parts.append(rf"(\d{{{count}}})" if count > 1 or letter == "S" else r"(\d+?)")
        elif adjacent:
            parts.append(rf"(\d{{{count}}})")
        elif letter == "S":
            parts.append(rf"(\d{{1,{max(count, 9)}}})")
        else:
            parts.append(rf"(\d{{1,{max(count, 2)}}})" if letter not in "yu" else rf"(\d{{{count},}})")
    return re.compile("".join(parts)), letters


def parse_java(text: str, pattern: str, *, strict: bool = False, rolls: bool = False) -> dt.datetime | None:
    """Parse text with a pattern. Return None if it does not fit.

    Java has two ways to read a pattern. The strict one wants as many digits as there are letters, and nothing after.
    With ``rolls``, the hour 25 is the first one of the next day.

    >>> parse_java("2024-1-2 03:04:05", "yyyy-MM-dd HH:mm:ss")
    datetime.datetime(2024, 1, 2, 3, 4, 5)
    >>> parse_java("2024-1-2 03:04:05", "yyyy-MM-dd HH:mm:ss", strict=True)
    """
    regex, letters = _regex(pattern, strict=strict)
    found = regex.fullmatch(text) if strict else regex.match(text)
    if found is None:
        return None
    values = dict(zip(letters, found.groups(), strict=True))
    month = values.get("M") or values.get("L") or "1"
    if not month.isdigit():
        names = [name[:3].lower() for name in _MONTHS]
        month = str(names.index(month[:3].lower()) + 1) if month[:3].lower() in names else "0"
    year = values.get("y") or values.get("u") or "1970"
    fraction = (values.get("S") or "").ljust(6, "0")[:6]
    parts = [int(year) + (2000 if len(year) == 2 else 0), int(month), int(values.get("d") or 1)]
    parts += [_hour(values), int(values.get("m") or 0), int(values.get("s") or 0), int(fraction)]
    return _rolled(*parts) if rolls else _moment(*parts)


def _moment(year: int, month: int, day: int, hour: int, minute: int, second: int, micros: int) -> dt.datetime | None:
    """The last day of a month stands for the days until 31 that it does not have."""
    if not 1 <= year <= 9999 or not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    try:
        last = monthrange(year, month)[1]
        return dt.datetime(year, month, min(day, last), hour, minute, second, micros)  # noqa: DTZ001
    except ValueError:
        return None


def _rolled(year: int, month: int, day: int, *clock: int) -> dt.datetime | None:
    years, month = divmod(month - 1, 12)
    try:
        first = dt.datetime(year + years, month + 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
        hours, minutes, seconds, micros = clock
        return first + dt.timedelta(days=day - 1, hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    except (ValueError, OverflowError):
        return None


def _hour(values: dict[str, str]) -> int:
    if "H" in values:
        return int(values["H"])
    if "k" in values:
        return int(values["k"]) % 24
    hour = int(values.get("h") or values.get("K") or 0) % 12
    return hour + 12 if values.get("a", "").lower() == "pm" else hour


_TIMESTAMP = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?")


def parse_timestamp_text(text: str, pattern: str) -> dt.datetime | None:
    """Text in a pattern, or else a date with or without a time in SQL's own form; None if it is neither.

    >>> parse_timestamp_text("2024-1-2", "yyyy/MM/dd")
    datetime.datetime(2024, 1, 2, 0, 0)
    """
    found = parse_java(text, pattern, strict=True)
    if found is not None:
        return found
    plain = _TIMESTAMP.fullmatch(text)
    if plain is None:
        return None
    *parts, fraction = plain.groups()
    numbers = [int(part or 0) for part in parts]
    return _moment(*[*numbers, int((fraction or "").ljust(6, "0")[:6])])
