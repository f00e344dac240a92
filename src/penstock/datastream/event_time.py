"""The short form for event time: ``stream.with_event_time("at", max_delay="5 s")``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Duration, Instant, Time, to_millis
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.runtime.operators.fields import FieldPath

__all__ = ["FieldTime", "Length", "event_time_strategy"]

Length = Time | Duration | timedelta | int | str


class FieldTime(TimestampAssigner):
    """Extracts the timestamp from a field: ms since the epoch, a datetime or an Instant.

    >>> FieldTime("at").extract_timestamp({"at": datetime(1970, 1, 1, 0, 0, 1)}, 0)
    1000
    """

    def __init__(self, field: str | int | Callable[[Any], Any]) -> None:
        self._read = field if callable(field) else FieldPath(field).get

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time = self._read(value)
        if type(time) is int:
            return time
        if isinstance(time, datetime):
            return Instant.from_datetime(time).to_epoch_milli()
        if isinstance(time, Instant):
            return time.to_epoch_milli()
        raise InvalidProgramError(
            f"the event time of the record {shorten(value)} is {shorten(time)}: give milliseconds since the epoch "
            "as int, a datetime or an Instant"
        )


def event_time_strategy(
    field: str | int | Callable[[Any], Any], max_delay: Length, idle_after: Length | None
) -> WatermarkStrategy:
    """Return a strategy with timestamps from a field, and watermarks that trail the largest one by the delay."""
    if to_millis(max_delay):
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(to_millis(max_delay)))
    else:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy = strategy.with_timestamp_assigner(FieldTime(field))
    return strategy if idle_after is None else strategy.with_idleness(Duration.of_millis(to_millis(idle_after)))
