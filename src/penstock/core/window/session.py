"""Session windows: periods of activity separated by gaps (rule 6.4).

Each element starts as its own window, [t, t + gap). Windows that overlap or touch are merged, so a late element can
merge two sessions into one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.time import to_millis
from penstock.core.return_values import milliseconds
from penstock.core.window.assigner import (
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    WindowAssigner,
    to_gap_extractor,
)
from penstock.core.window.serializers import TimeWindowSerializer
from penstock.core.window.time_windows import Length
from penstock.core.window.trigger import Trigger
from penstock.core.window.triggers import EventTimeTrigger, ProcessingTimeTrigger
from penstock.core.window.windows import TimeWindow

__all__ = [
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "ProcessingTimeSessionWindows",
]

Extractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class SessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    """Base class of all session windows. A subclass defines the gap of an element and the clock."""

    def gap_of(self, element: Any) -> int:
        """Return the gap after this element in ms."""
        raise NotImplementedError

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the element's own window, which is merged later."""
        start = timestamp if self.is_event_time() else context.get_current_processing_time()
        return [TimeWindow(start, start + self.gap_of(element))]

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Merge windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger.create() if self.is_event_time() else ProcessingTimeTrigger.create()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class _FixedGap(SessionWindows):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise InvalidProgramError(f"{type(self).__name__}: the gap must be at least 1 ms, got {session_gap} ms")
        self.session_gap = session_gap

    def gap_of(self, element: Any) -> int:
        return self.session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGap(SessionWindows):
    def __init__(self, session_window_time_gap_extractor: Extractor) -> None:
        self.extractor = to_gap_extractor(session_window_time_gap_extractor)

    def gap_of(self, element: Any) -> int:
        gap = self.extractor.extract(element)
        if type(gap) is not int or gap <= 0:
            gap = milliseconds(gap, self.extractor, "extract", positive=True)
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeSessionWindows(_FixedGap):
    """Sessions in event time with a fixed gap.

    >>> sessions = EventTimeSessionWindows.with_gap(10)
    >>> sessions.assign_windows("a", 5, None)
    [TimeWindow(start=5, end=15)]
    """

    @staticmethod
    def with_gap(size: Length) -> EventTimeSessionWindows:
        """End a session when no element arrives for this long."""
        return EventTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Use the gap that the extractor returns for each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeSessionWindows(_FixedGap):
    """Sessions in processing time with a fixed gap."""

    @staticmethod
    def with_gap(size: Length) -> ProcessingTimeSessionWindows:
        """End a session when no element arrives for this long."""
        return ProcessingTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Use the gap that the extractor returns for each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return False


class DynamicEventTimeSessionWindows(_DynamicGap):
    """Sessions in event time, with a gap for each element."""

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Use the gap that the extractor returns for each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return True


class DynamicProcessingTimeSessionWindows(_DynamicGap):
    """Sessions in processing time, with a gap for each element."""

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Use the gap that the extractor returns for each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return False
