"""Conversions between wall-clock time and instants (T40)."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.expressions import Value

_LOCAL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")


def instant_to_local(value: Value, zone: str) -> Value:
    """Convert an instant to the local time of a zone."""
    if zone == "UTC":
        return value.cast(_LOCAL)
    return pc.local_timestamp(value.cast(pa.timestamp("us", zone)))


def local_to_instant(value: Value, zone: str) -> Value:
    """Convert a local time. A skipped time moves forward by the gap. Of two possible instants, the earlier is used.

    >>> skipped = pa.scalar(dt.datetime(2024, 3, 10, 2, 30), _LOCAL)
    >>> instant_to_local(local_to_instant(skipped, "America/New_York"), "America/New_York").as_py()
    datetime.datetime(2024, 3, 10, 3, 30)
    """
    if zone == "UTC":
        return value.cast(_INSTANT)
    try:
        return pc.assume_timezone(value, zone, ambiguous="earliest", nonexistent="raise").cast(_INSTANT)
    except pa.ArrowInvalid:
        if isinstance(value, pa.Scalar):
            return pa.scalar(_resolve(value.as_py(), zone), _INSTANT)
        return pa.array([_resolve(one, zone) for one in value.to_pylist()], _INSTANT)


def _resolve(value: dt.datetime | None, zone: str) -> dt.datetime | None:
    """Convert with fold=0, which uses the offset before a gap: the time moves forward by the gap."""
    return None if value is None else value.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)


_SHORT_NAMES = {"CST": "America/Chicago", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "PST": "America/Los_Angeles"}
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?")


@cache
def java_zone(name: str) -> dt.tzinfo:
    """The zone of a name as Java reads it: an offset such as ``GMT+05:30`` is a name, and an unknown one means UTC.

    >>> java_zone("GMT+05:30").utcoffset(None)
    datetime.timedelta(seconds=19800)
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        length = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
        return dt.timezone(length if sign == "+" else -length)
    try:
        return ZoneInfo(_SHORT_NAMES.get(name, name))
    except (ZoneInfoNotFoundError, ValueError):
        return dt.UTC
