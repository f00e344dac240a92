"""Durations and points in time: :class:`Time`, :class:`Duration`, :class:`Instant`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError

__all__ = ["Duration", "Instant", "Time", "parse_duration", "to_millis"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole(amount: float, factor: int, unit: str) -> int:
    """``amount * factor`` as an int. Fractions are allowed (``Time.seconds(0.5)``) if the result is exact."""
    if not (is_int(amount) or isinstance(amount, float)):
        raise InvalidProgramError(f"a length of time in {unit} must be a number, got {amount!r}")
    product = amount * factor
    if isinstance(product, float):
        if not product.is_integer():
            raise InvalidProgramError(f"{amount!r} {unit} is not a whole number of the smallest unit")
        product = int(product)
    return product


@total_ordering
class Time:
    """A length of time in milliseconds, for the window API.

    >>> Time.seconds(5).to_milliseconds()
    5000
    >>> Time.minutes(1) + Time.seconds(30)
    Time.milliseconds(90000)
    >>> Time.hours(-1) < Time.milliseconds(0)
    True
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole(milliseconds, 1, "milliseconds")

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: float) -> Time:
        return Time(_whole(seconds, 1_000, "seconds"))

    @staticmethod
    def minutes(minutes: float) -> Time:
        return Time(_whole(minutes, 60_000, "minutes"))

    @staticmethod
    def hours(hours: float) -> Time:
        return Time(_whole(hours, 3_600_000, "hours"))

    @staticmethod
    def days(days: float) -> Time:
        return Time(_whole(days, 86_400_000, "days"))

    def to_milliseconds(self) -> int:
        return self._milliseconds

    def __add__(self, other: object) -> Time:
        return Time(self._milliseconds + other._milliseconds) if isinstance(other, Time) else NotImplemented

    def __sub__(self, other: object) -> Time:
        return Time(self._milliseconds - other._milliseconds) if isinstance(other, Time) else NotImplemented

    def __mul__(self, factor: int) -> Time:
        return Time(self._milliseconds * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Time:
        return Time(-self._milliseconds)

    def __eq__(self, other: object) -> bool:
        return self._milliseconds == other._milliseconds if isinstance(other, Time) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._milliseconds < other._milliseconds if isinstance(other, Time) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


@total_ordering
class Duration:
    """A length of time with nanosecond precision, for watermark strategies and configuration.

    >>> Duration.of_seconds(20).to_milliseconds()
    20000
    >>> Duration.of_millis(1) + Duration.of_nanos(5)
    Duration.of_nanos(1000005)
    """

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = _whole(nanos, 1, "nanoseconds")

    @staticmethod
    def of_days(days: float) -> Duration:
        return Duration(_whole(days, 86_400 * _NANOS_PER_SECOND, "days"))

    @staticmethod
    def of_hours(hours: float) -> Duration:
        return Duration(_whole(hours, 3_600 * _NANOS_PER_SECOND, "hours"))

    @staticmethod
    def of_minutes(minutes: float) -> Duration:
        return Duration(_whole(minutes, 60 * _NANOS_PER_SECOND, "minutes"))

    @staticmethod
    def of_seconds(seconds: float) -> Duration:
        return Duration(_whole(seconds, _NANOS_PER_SECOND, "seconds"))

    @staticmethod
    def of_millis(millis: float) -> Duration:
        return Duration(_whole(millis, _NANOS_PER_MILLI, "milliseconds"))

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    def to_nanos(self) -> int:
        return self._nanos

    def to_milliseconds(self) -> int:
        """Return whole milliseconds, rounded down."""
        return self._nanos // _NANOS_PER_MILLI

    to_millis = to_milliseconds

    def __add__(self, other: object) -> Duration:
        return Duration(self._nanos + other._nanos) if isinstance(other, Duration) else NotImplemented

    def __sub__(self, other: object) -> Duration:
        return Duration(self._nanos - other._nanos) if isinstance(other, Duration) else NotImplemented

    def __mul__(self, factor: int) -> Duration:
        return Duration(self._nanos * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Duration:
        return Duration(-self._nanos)

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._nanos < other._nanos if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __repr__(self) -> str:
        if self._nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self._nanos})"
        return f"Duration.of_millis({self._nanos // _NANOS_PER_MILLI})"


@total_ordering
class Instant:
    """A point in time, in UTC, with nanosecond precision.

    >>> Instant.of_epoch_milli(1_500)
    Instant<1, 500000000>
    >>> str(Instant.of_epoch_milli(0))
    '1970-01-01T00:00:00Z'
    """

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int = 0) -> None:
        carry, self.nanos = divmod(nanos, _NANOS_PER_SECOND)
        self.seconds = seconds + carry

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1_000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    @staticmethod
    def from_datetime(moment: datetime) -> Instant:
        """Convert a datetime. One without a time zone is taken as UTC."""
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        micros = (moment - _EPOCH) // timedelta(microseconds=1)
        return Instant(micros // 1_000_000, micros % 1_000_000 * 1_000)

    def to_epoch_milli(self) -> int:
        return self.seconds * 1_000 + self.nanos // _NANOS_PER_MILLI

    def to_datetime(self) -> datetime:
        """Return a UTC datetime, truncated to microseconds."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanos // 1_000)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return self.seconds == other.seconds and self.nanos == other.nanos

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __reduce__(self) -> tuple[Any, ...]:
        return Instant, (self.seconds, self.nanos)

    def __str__(self) -> str:
        whole = (_EPOCH + timedelta(seconds=self.seconds)).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{whole}{fraction_of_second(self.nanos)}Z"

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


def fraction_of_second(nanos: int) -> str:
    """Format a fraction of a second in groups of three digits, or as nothing if it is zero (as in Java)."""
    if nanos == 0:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


def to_millis(length: Time | Duration | timedelta | int | str) -> int:
    """Convert a length of time to whole milliseconds. A plain int is milliseconds.

    >>> to_millis(Time.seconds(1)), to_millis(timedelta(minutes=1)), to_millis("5 min"), to_millis(250)
    (1000, 60000, 300000, 250)
    """
    if isinstance(length, (Time, Duration)):
        return length.to_milliseconds()
    if isinstance(length, timedelta):
        return length // timedelta(milliseconds=1)
    if isinstance(length, str):
        return parse_duration(length).to_milliseconds()
    if is_int(length):
        return length
    raise InvalidProgramError(
        f"expected a Time, Duration, timedelta, a text such as '5 min', or milliseconds as int, got {length!r}"
    )


_DURATION_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)
_UNIT_NANOS = {
    unit: nanos
    for nanos, units in [
        (86_400 * _NANOS_PER_SECOND, "d day days"),
        (3_600 * _NANOS_PER_SECOND, "h hour hours"),
        (60 * _NANOS_PER_SECOND, "m min mins minute minutes"),
        (_NANOS_PER_SECOND, "s sec secs second seconds"),
        (_NANOS_PER_MILLI, "ms milli millis millisecond milliseconds"),
        (1_000, "us µs micro micros microsecond microseconds"),
        (1, "ns nano nanos nanosecond nanoseconds"),
    ]
    for unit in units.split()
}


def parse_duration(text: str) -> Duration:
    """Parse a duration as written in configuration files. Without a unit it is milliseconds.

    >>> parse_duration("10 s"), parse_duration("200ms"), parse_duration("1 h") == Duration.of_hours(1)
    (Duration.of_millis(10000), Duration.of_millis(200), True)
    """
    match = _DURATION_TEXT.fullmatch(text)
    nanos = _UNIT_NANOS.get(match[2].lower() or "ms") if match else None
    if match is None or nanos is None:
        raise InvalidProgramError(f"{text!r} is not a duration: write, for example, '10 s', '200 ms' or '1 h'")
    amount = match[1]
    return Duration(int(amount) * nanos if amount.isdigit() else round(float(amount) * nanos))
