"""The global window, and count windows."""

from __future__ import annotations

from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.core.state import ValueStateDescriptor
from penstock.core.window.assigner import WindowAssigner
from penstock.core.window.serializers import CountWindowSerializer, GlobalWindowSerializer
from penstock.core.window.trigger import Trigger
from penstock.core.window.triggers import CountTrigger, EndOfStreamTrigger, NeverTrigger, PurgingTrigger
from penstock.core.window.windows import CountWindow, GlobalWindow

__all__ = ["CountSlidingWindowAssigner", "CountTumblingWindowAssigner", "GlobalWindows"]


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """All elements of a key in one window that never ends. Set a trigger, because the default one never fires.

    >>> GlobalWindows.create().assign_windows("a", 0, None)
    [GlobalWindow()]
    """

    def __init__(self, default_trigger: Trigger[Any, GlobalWindow] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """Create a global window whose default trigger never fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Create a global window that fires once, when the input ends."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, GlobalWindow]:
        return self._default_trigger

    def get_window_serializer(self) -> GlobalWindowSerializer:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


def _require_count(value: int, label: str) -> int:
    if not is_int(value) or value <= 0:
        raise InvalidProgramError(f"the {label} of a count window must be a positive int, got {value!r}")
    return value


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """Windows numbered by the count of earlier elements of the key."""

    _counter_name: str

    def __init__(self, window_size: int) -> None:
        self.window_size = _require_count(window_size, "size")

    def _next_position(self, context: WindowAssigner.WindowAssignerContext) -> int:
        counter = context.get_runtime_context().get_state(ValueStateDescriptor(self._counter_name))
        position: int = counter.value() or 0
        counter.update(position + 1)
        return position

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, CountWindow]:
        # A full window gets no more elements. Purge it so that state does not grow forever.
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Windows of n elements each, without overlap."""

    _counter_name = "tumbling-count-window-position"

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Create windows of this many elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        return [CountWindow(self._next_position(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """Windows of n elements. One begins every `slide` elements. Only full windows fire.

    ``count_window(size, slide)`` is different, as in Flink: every `slide` elements, the last `size` of them.
    """

    _counter_name = "sliding-count-window-position"

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        self.window_slide = _require_count(window_slide, "slide")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Create windows of this many elements, one beginning every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        position = self._next_position(context)
        last = position // self.window_slide
        first = max(0, (position - self.window_size) // self.window_slide + 1)
        return [CountWindow(number) for number in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"
