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
    """Decides to which windows an element belongs, none, one or several.

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
        """The windows of an element. ``timestamp`` is the smallest 64-bit number if the element has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger when the program sets none."""

    def get_window_serializer(self) -> TypeSerializer[W]:
        """The serializer of the windows. Penstock pickles windows, so an assigner of your own needs none."""
        from penstock.core.window.serializers import PickledWindowSerializer

        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by watermarks (true) or by processing time (false)."""

    class WindowAssignerContext(ABC):
        """The context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The processing time in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The runtime context of the window operator; its state is that of the element's key."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Assigns each element its own window and then merges windows, as sessions do."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Report to the callback which of the windows become one."""

    class MergeCallback(ABC, Generic[W2]):
        """Takes the groups of windows to be merged."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """All windows of ``to_be_merged`` are replaced by ``merge_result``."""


class SessionWindowTimeGapExtractor(ABC):
    """Gives the session gap of each element, in milliseconds.

    >>> class ByUser(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 10_000 if element[0] == "robot" else 600_000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return how long this element keeps its session open."""


class CallableTimeGapExtractor(SessionWindowTimeGapExtractor):
    """A plain function as gap extractor."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        self.function = function

    def extract(self, element: Any) -> int:
        return self.function(element)


def to_gap_extractor(extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> SessionWindowTimeGapExtractor:
    """The extractor itself, or a function wrapped as one."""
    if isinstance(extractor, SessionWindowTimeGapExtractor):
        return extractor
    if callable(extractor):
        return CallableTimeGapExtractor(extractor)
    raise InvalidProgramError(
        f"a dynamic session gap needs a SessionWindowTimeGapExtractor or a function of the element, got {extractor!r}"
    )
