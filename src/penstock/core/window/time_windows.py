"""Tumbling and sliding windows of fixed size, aligned to the epoch (rule 6.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from penstock.common.errors import InvalidProgramError, MissingTimestampError
from penstock.common.time import Duration, Time, to_millis
from penstock.common.watermark import MIN_WATERMARK
from penstock.core.window.assigner import WindowAssigner
from penstock.core.window.serializers import TimeWindowSerializer
from penstock.core.window.trigger import Trigger
from penstock.core.window.triggers import EventTimeTrigger, ProcessingTimeTrigger
from penstock.core.window.windows import TimeWindow

__all__ = [
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
]

Length = Time | Duration | timedelta | int
"""A length of time in a program; a plain int is milliseconds."""


_MAX_WINDOWS = 10_000_000


def require_timestamp(element: Any, timestamp: int, assigner: WindowAssigner[Any, Any]) -> None:
    """Reject an element without a timestamp, which event-time windows cannot assign."""
    if timestamp <= MIN_WATERMARK:
        raise MissingTimestampError(
            f"{assigner!r} got a record without a timestamp: "
            "call with_event_time() or assign_timestamps_and_watermarks() before the window, or use processing-time "
            "windows",
            record=element,
        )


class _FixedWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of a fixed size. One begins every `slide` milliseconds."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        name = type(self).__name__
        if size <= 0 or slide <= 0:
            raise InvalidProgramError(f"{name}: size and slide must be at least 1 ms, got {size} and {slide}")
        if abs(offset) >= slide:
            raise InvalidProgramError(
                f"{name}: the offset must be shorter than the {'size' if size == slide else 'slide'} ({slide} ms), "
                f"got {offset} ms"
            )
        if size // slide > _MAX_WINDOWS:
            raise InvalidProgramError(
                f"{name}: an element would be in {size // slide:,} windows, and {_MAX_WINDOWS:,} is the limit: "
                f"make the slide ({slide} ms) longer or the size ({size} ms) shorter"
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    def _windows_of(self, timestamp: int) -> list[TimeWindow]:
        last_start = timestamp - (timestamp - self.offset) % self.slide
        size = self.size
        return [TimeWindow(start, start + size) for start in range(last_start, timestamp - size, -self.slide)]

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class _EventTime(_FixedWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows that contain the element's timestamp, latest first."""
        require_timestamp(element, timestamp, self)
        return self._windows_of(timestamp)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


class _ProcessingTime(_FixedWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows that contain the current processing time, latest first."""
        return self._windows_of(context.get_current_processing_time())

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger.create()

    def is_event_time(self) -> bool:
        return False


class _Tumbling(_FixedWindows):
    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"


class _Sliding(_FixedWindows):
    def __init__(self, size: int, slide: int, offset: int = 0) -> None:
        super().__init__(size, slide, offset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide})"


class TumblingEventTimeWindows(_Tumbling, _EventTime):
    """Windows of a fixed size, without overlap or gaps, in event time.

    They are aligned to the epoch, not to the first element. The offset shifts them: windows of one hour with an offset
    of 15 minutes begin at a quarter past.

    >>> TumblingEventTimeWindows.of(Time.seconds(5)).assign_windows("a", 4999, None)
    [TimeWindow(start=0, end=5000)]
    """

    @staticmethod
    def of(size: Length, offset: Length | None = None) -> TumblingEventTimeWindows:
        """Create windows of this size, shifted by the offset."""
        return TumblingEventTimeWindows(to_millis(size), 0 if offset is None else to_millis(offset))


class TumblingProcessingTimeWindows(_Tumbling, _ProcessingTime):
    """Windows of a fixed size, without overlap or gaps, in processing time."""

    @staticmethod
    def of(size: Length, offset: Length | None = None) -> TumblingProcessingTimeWindows:
        """Create windows of this size, shifted by the offset."""
        return TumblingProcessingTimeWindows(to_millis(size), 0 if offset is None else to_millis(offset))


class SlidingEventTimeWindows(_Sliding, _EventTime):
    """Windows of a fixed size that begin every ``slide``, in event time. An element is in size / slide windows.

    If the slide is longer than the size, elements in the gaps belong to no window.

    >>> SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)).assign_windows("a", 7000, None)
    [TimeWindow(start=5000, end=15000), TimeWindow(start=0, end=10000)]
    """

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingEventTimeWindows:
        """Create windows of this size that begin every slide, shifted by the offset."""
        return SlidingEventTimeWindows(to_millis(size), to_millis(slide), 0 if offset is None else to_millis(offset))


class SlidingProcessingTimeWindows(_Sliding, _ProcessingTime):
    """Windows of a fixed size that begin every ``slide``, in processing time."""

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingProcessingTimeWindows:
        """Create windows of this size that begin every slide, shifted by the offset."""
        return SlidingProcessingTimeWindows(
            to_millis(size), to_millis(slide), 0 if offset is None else to_millis(offset)
        )
