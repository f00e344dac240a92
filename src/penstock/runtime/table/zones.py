"""Conversions between wall-clock time and instants (T40)."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

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
