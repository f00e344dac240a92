"""The built-in triggers (rule 6.6)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, to_millis
from penstock.common.watermark import MAX_WATERMARK
from penstock.core.state import ReducingState, ReducingStateDescriptor, ValueStateDescriptor
from penstock.core.window.trigger import Trigger, TriggerResult
from penstock.core.window.windows import TimeWindow, Window

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
]


def _add(a: int, b: int) -> int:
    return a + b


class _QuietTrigger(Trigger[Any, Any]):
    """Ignores all events. Built-in triggers override what they need."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: there is no state."""


class NeverTrigger(_QuietTrigger):
    """Never fires; the default of :class:`GlobalWindows`."""

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Do nothing: there is no state to merge."""


class EndOfStreamTrigger(_QuietTrigger):
    """Fires once, when the input ends (at the final watermark)."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_event_time_timer(MAX_WATERMARK)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if time == MAX_WATERMARK else TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(MAX_WATERMARK)


class EventTimeTrigger(_QuietTrigger):
    """Fires when the watermark passes the end of the window; after that, once for each late element."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Create the default trigger of event-time windows."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        # A merged window that is already complete fires with the element that merged it, not with a timer.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_QuietTrigger):
    """Fires when processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Create the default trigger of processing-time windows."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class CountTrigger(_QuietTrigger):
    """Fires each time this many elements have arrived since it last fired.

    On a time window it replaces the default trigger, so the window does not fire at its end.
    """

    _count = ReducingStateDescriptor("count-trigger", _add)

    def __init__(self, window_size: int) -> None:
        if not is_int(window_size) or window_size <= 0:
            raise InvalidProgramError(f"the size of a CountTrigger must be a positive int, got {window_size!r}")
        self.window_size = window_size

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Fire every `window_size` elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        count: ReducingState[int] = ctx.get_partitioned_state(self._count)
        count.add(1)
        if (count.get() or 0) >= self.window_size:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


class PurgingTrigger(Trigger[Any, Any]):
    """Purges the window whenever the nested trigger fires."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise InvalidProgramError(f"PurgingTrigger needs a Trigger, got {nested_trigger!r}")
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Purge whenever `nested_trigger` fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


class _ContinuousTrigger(_QuietTrigger):
    """Fires at each full interval. The time of the next firing is trigger state; merged windows keep the earliest."""

    _next_fire: ReducingStateDescriptor[int] = ReducingStateDescriptor("continuous-trigger", min)

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise InvalidProgramError(f"{type(self).__name__} needs an interval of at least 1 ms, got {interval}")
        self.interval = interval

    @abstractmethod
    def _set_timer(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    @abstractmethod
    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Set the timer one interval after `time`, but not after the end of the window."""
        next_fire = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_fire)
        self._set_timer(next_fire, ctx)

    def _begin(self, now: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        """Set the timer for the end of the current interval. Called with the first element of a window."""
        fire_timestamp_state = ctx.get_partitioned_state(self._next_fire)
        if fire_timestamp_state.get() is None:
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, fire_timestamp_state)

    def _at(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and set the next timer unless this is the end of the window."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_timestamp_state = ctx.get_partitioned_state(self._next_fire)
        if fire_timestamp_state.get() == time:
            fire_timestamp_state.clear()
            self.register_next_fire_timestamp(time, window, ctx, fire_timestamp_state)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._next_fire)
        next_fire = ctx.get_partitioned_state(self._next_fire).get()
        if next_fire is not None:
            self._set_timer(next_fire, ctx)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        fire_timestamp_state = ctx.get_partitioned_state(self._next_fire)
        next_fire = fire_timestamp_state.get()
        if next_fire is not None:
            self._delete_timer(next_fire, ctx)
            fire_timestamp_state.clear()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires at each full interval of the watermark, and when the watermark passes the end of the window."""

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousEventTimeTrigger:
        """Fire every `interval` of event time."""
        return ContinuousEventTimeTrigger(to_millis(interval))

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        self._begin(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._at(time, window, ctx)

    def _set_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires at each full interval of processing time, and last when this clock passes the end of the window.

    If an event-time window is in the past of this clock, it fires once, with its first element.
    """

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousProcessingTimeTrigger:
        """Fire every `interval` of processing time."""
        return ContinuousProcessingTimeTrigger(to_millis(interval))

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        self._begin(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._at(time, window, ctx)

    def _set_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)


class DeltaTrigger(_QuietTrigger):
    """Fires when an element differs by more than a threshold from the one with which it last fired.

    >>> DeltaTrigger.of(50.0, lambda last, current: abs(current - last))
    DeltaTrigger(50.0)
    """

    _last = ValueStateDescriptor("delta-trigger")

    def __init__(self, threshold: float, delta_function: Callable[[Any, Any], float]) -> None:
        self.threshold = threshold
        self.delta_function = to_delta(delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float]) -> DeltaTrigger:
        """Fire when ``delta_function(last, current) > threshold``."""
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = ctx.get_partitioned_state(self._last)
        previous = last.value()
        if previous is None:
            last.update((element,))  # in a tuple, because an element may be None but state may not
            return TriggerResult.CONTINUE
        if self.delta_function(previous[0], element) > self.threshold:
            last.update((element,))
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold})"


def to_delta(function: Any) -> Callable[[Any, Any], float]:
    """Return a function of two elements, from a function or an object with `get_delta`."""
    delta = getattr(function, "get_delta", function)
    if not callable(delta):
        raise InvalidProgramError(f"a delta function must take two elements and return a number, got {function!r}")
    result: Callable[[Any, Any], float] = delta
    return result


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires whenever the nested trigger fires, and when a window has waited for that too long in processing time.

    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(100), "5 s")
    TimeoutTrigger(CountTrigger(100))
    """

    _deadline = ValueStateDescriptor("timeout")

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        *,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise InvalidProgramError(f"ProcessingTimeoutTrigger needs a Trigger, got {nested_trigger!r}")
        self.nested_trigger = nested_trigger
        self.interval = interval
        self.reset_timer_on_new_record = reset_timer_on_new_record
        self.should_clear_on_timeout = should_clear_on_timeout

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration | timedelta | str | int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Fire at the latest `timeout` after the first element, or after the last one if new ones reset the timer.

        :param should_clear_on_timeout: whether a timeout also clears the nested trigger, so that it starts again
        """
        return ProcessingTimeoutTrigger(
            nested_trigger,
            to_millis(timeout),
            reset_timer_on_new_record=reset_timer_on_new_record,
            should_clear_on_timeout=should_clear_on_timeout,
        )

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result in (TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE):
            self.clear(window, ctx)
            return result
        deadline = ctx.get_partitioned_state(self._deadline)
        before = deadline.value()
        if before is None or self.reset_timer_on_new_record:
            if before is not None:
                ctx.delete_processing_time_timer(before)
            deadline.update(ctx.get_current_processing_time() + self.interval)
            ctx.register_processing_time_timer(deadline.value())
        return result

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._at(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._at(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _at(self, result: TriggerResult, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at every timer, as in Flink: those of the nested trigger are set to fire, too."""
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        purge = result in (TriggerResult.PURGE, TriggerResult.FIRE_AND_PURGE)
        return TriggerResult.FIRE_AND_PURGE if purge else TriggerResult.FIRE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        deadline = ctx.get_partitioned_state(self._deadline)
        if deadline.value() is not None:
            ctx.delete_processing_time_timer(deadline.value())
            deadline.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"TimeoutTrigger({self.nested_trigger!r})"
