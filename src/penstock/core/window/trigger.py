"""The contract of triggers: they decide when a window fires and when it is purged (rule 6.6)."""

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
    """What to do with a window. The value is (fire, purge).

    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    """Do nothing."""
    FIRE_AND_PURGE = (True, True)
    """Compute the window and emit the results, then discard the contents."""
    FIRE = (True, False)
    """Compute the window and emit the results; keep the contents for the next firing."""
    PURGE = (False, True)
    """Discard the contents without computing the window."""

    def is_fire(self) -> bool:
        """Whether to compute the window."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether to discard the contents."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window fires. A trigger set by the program replaces the assigner's default trigger.

    One trigger object serves all windows of a subtask. Keep data about a window in ``ctx.get_partitioned_state``, which
    is per key and window. Timers are per key and window, too.
    """

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called for each element after it is added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when a processing-time timer of this window fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when an event-time timer of this window fires."""

    def can_merge(self) -> bool:
        """Whether the trigger supports merging windows (sessions). If so, it must define ``on_merge``."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Called after windows merge into ``window``. Merge the trigger's state and set the timers again."""
        raise UnsupportedFeatureError(f"the trigger {self!r} does not support merging windows")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Called when the window is removed. Delete all state and timers of the trigger for it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    class TriggerContext(ABC):
        """The clocks, timers and state of the current window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the group in which a trigger registers metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the operator's current watermark in ms."""

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
            """Return state of the current key and window."""

    class OnMergeContext(TriggerContext):
        """The context of ``on_merge``."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Move the state of the merged windows to the result. Only for list, reducing and aggregating state."""
