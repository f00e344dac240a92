"""The contract of triggers: when a window is computed, and when its contents are thrown away (rule 6.6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.errors import UnsupportedFeatureError
from penstock.core.window.windows import Window

if TYPE_CHECKING:
    from penstock.core.state import StateDescriptor
    from penstock.metrics import MetricGroup

__all__ = ["Trigger", "TriggerResult"]

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TriggerResult(Enum):
    """The action for a window. The value is (fire, purge).

    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    """Nothing."""
    FIRE_AND_PURGE = (True, True)
    """Compute the window and emit the results, then throw the contents away."""
    FIRE = (True, False)
    """Compute the window and emit the results; the contents stay, so the next firing sees them again."""
    PURGE = (False, True)
    """Throw the contents away without computing anything."""

    def is_fire(self) -> bool:
        """Whether the window is computed."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the contents are thrown away."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is computed. A trigger set by the program replaces the assigner's default trigger.

    One trigger object serves all windows of a subtask: whatever it remembers about a window belongs into
    ``ctx.get_partitioned_state``, which is kept per key and window. Timers are per key and window too.
    """

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called for every element, after it was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A processing-time timer of this window fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of this window fires."""

    def can_merge(self) -> bool:
        """Whether the trigger works on windows that merge (sessions); if so, it must have ``on_merge``."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Windows were merged into ``window``: merge the trigger's states and set the timers again."""
        raise UnsupportedFeatureError(f"the trigger {self!r} does not support merging windows")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is gone: free all state and timers the trigger holds for it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    class TriggerContext(ABC):
        """Clocks, timers and state, all of the window at hand."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The processing time in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where a trigger registers metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The operator's event time in milliseconds."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call ``on_processing_time`` when processing time reaches ``time``."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call ``on_event_time`` when the watermark reaches ``time``."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Remove the timer, if there is one."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Remove the timer, if there is one."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """State of the current key and window."""

    class OnMergeContext(TriggerContext):
        """The context of ``on_merge``."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Move the state of the merged windows to the resulting one. List, reducing and aggregating state only."""
