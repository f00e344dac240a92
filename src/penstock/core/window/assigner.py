"""The contracts of window assigners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.core.window.windows import Window

if TYPE_CHECKING:
    from penstock.common.serializer import TypeSerializer
    from penstock.core.functions import RuntimeContext
    from penstock.core.window.trigger import Trigger

__all__ = ["MergingWindowAssigner", "SessionWindowTimeGapExtractor", "WindowAssigner"]

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowAssigner(ABC, Generic[T, W]):
    """Decides to which windows an element belongs: none, one or several.

    >>> from penstock.core.window import EventTimeTrigger, TimeWindow, WindowAssigner
    >>> class ThirtySecondsWindows(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         start = timestamp - timestamp % 30_000
    ...         return [TimeWindow(start, start + 30_000)]
    ...
    ...     def get_default_trigger(self, env):
    ...         return EventTimeTrigger.create()
    ...
    ...     def is_event_time(self):
    ...         return True
    >>> ThirtySecondsWindows().assign_windows("a", -1, None)
    [TimeWindow(start=-30000, end=0)]
    """

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of an element. ``timestamp`` is the smallest 64-bit number if the element has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger to use if the program sets none."""

    def get_window_serializer(self) -> TypeSerializer[W]:
        """Return the serializer of the windows. Penstock pickles windows, so your own assigner needs none."""
        from penstock.core.window.serializers import PickledWindowSerializer

        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end in event time (True) or in processing time (False)."""

    class WindowAssignerContext(ABC):
        """The context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the runtime context of the window operator. Its state is that of the element's key."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Assigns each element its own window and then merges windows, as for sessions."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Report to the callback which windows to merge."""

    class MergeCallback(ABC, Generic[W2]):
        """Receives the groups of windows to merge."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Replace all windows of ``to_be_merged`` with ``merge_result``."""


class SessionWindowTimeGapExtractor(ABC):
    """Returns the session gap of each element, in milliseconds.

    >>> class ByUser(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 10_000 if element[0] == "robot" else 600_000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return how long this element keeps its session open."""


class CallableTimeGapExtractor(SessionWindowTimeGapExtractor):
    """Wraps a plain function as a gap extractor."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        self.function = function

    def extract(self, element: Any) -> int:
        return self.function(element)


def to_gap_extractor(extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> SessionWindowTimeGapExtractor:
    """Return the extractor itself, or wrap a function as one."""
    if isinstance(extractor, SessionWindowTimeGapExtractor):
        return extractor
    if callable(extractor):
        return CallableTimeGapExtractor(extractor)
    raise InvalidProgramError(
        f"a dynamic session gap needs a SessionWindowTimeGapExtractor or a function of the element, got {extractor!r}"
    )
