"""The TimerService for user code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.core.timerservice import TimerService
from penstock.runtime.timers.internal_timer_service import InternalTimerService


def timer_timestamp(timestamp: Any) -> int:
    """Check a timer's timestamp from user code. An error here names the operator, the record and the user's line."""
    if type(timestamp) is not int:
        try:
            timestamp = (
                int(timestamp) if isinstance(timestamp, float) and timestamp.is_integer() else operator.index(timestamp)
            )
        except TypeError:
            message = f"a timer needs a timestamp in milliseconds (an int), got {shorten(timestamp)}"
            raise TypeError(message) from None
    if not MIN_WATERMARK <= timestamp <= MAX_WATERMARK:
        raise ValueError(
            f"a timer needs a timestamp that fits into 64 bits and that event time can reach, got {shorten(timestamp)}"
        )
    return timestamp  # type: ignore[no-any-return]


class KeyedTimerService(TimerService):
    """Timers of the current key."""

    __slots__ = ("_now", "_timers")

    def __init__(self, timers: InternalTimerService, now: Callable[[], int]) -> None:
        self._timers = timers
        self._now = now

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._now()

    def current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._timers.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Fire when processing time reaches the timestamp."""
        self._timers.register_processing_time_timer(timer_timestamp(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        """Fire when the watermark reaches the timestamp."""
        self._timers.register_event_time_timer(timer_timestamp(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if it exists."""
        self._timers.delete_processing_time_timer(timer_timestamp(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if it exists."""
        self._timers.delete_event_time_timer(timer_timestamp(timestamp))


class UnkeyedTimerService(TimerService):
    """Streams without keys can read time, but timers need a key (rule 6.3)."""

    def __init__(self, now: Callable[[], int], operator_name: str) -> None:
        self._now = now
        self._operator_name = operator_name
        self.watermark = -(2**63)

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._now()

    def current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self.watermark

    def _refuse(self, timestamp: int) -> None:
        raise InvalidProgramError(
            f"operator '{self._operator_name}' set a timer on a stream without keys: call key_by() first "
            "(a constant key works, but limits the parallelism to 1)"
        )

    register_processing_time_timer = _refuse
    register_event_time_timer = _refuse
    delete_processing_time_timer = _refuse
    delete_event_time_timer = _refuse
