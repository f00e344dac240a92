"""The contexts of triggers and evictors."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.core.state import StateDescriptor
from penstock.core.window import Evictor, Trigger, WindowAssigner
from penstock.metrics import MetricGroup
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.timers.internal_timer_service import InternalTimerService
from penstock.runtime.timers.timer_service import timer_timestamp
from penstock.runtime.windows.states import WindowStates


class WindowTriggerContext(Trigger.OnMergeContext):
    """The `ctx` of all trigger methods: clocks, and timers and state of the current window."""

    __slots__ = ("_context", "_states", "_timers", "merged", "window")

    def __init__(self, context: OperatorContext, timers: InternalTimerService, states: WindowStates) -> None:
        self._context = context
        self._timers = timers
        self._states = states
        self.window: Any = None
        self.merged: list[Any] = []

    def get_current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._context.clock.now

    def get_current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._timers.current_watermark

    def get_metric_group(self) -> MetricGroup:
        """The operator's metrics."""
        return self._context.metrics

    def register_processing_time_timer(self, time: int) -> None:
        """Register a timer for the current key and window."""
        self._timers.register_processing_time_timer(timer_timestamp(time), self.window)

    def register_event_time_timer(self, time: int) -> None:
        """Register a timer for the current key and window."""
        # In batch execution, a timer beyond the time range fires at the end of its key.
        if time <= MAX_WATERMARK or not self._context.batch_execution:
            time = timer_timestamp(time)
        self._timers.register_event_time_timer(time, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        """Delete a timer of the current key and window, if it exists."""
        self._timers.delete_processing_time_timer(time, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        """Delete a timer of the current key and window, if it exists."""
        self._timers.delete_event_time_timer(time, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        """Return the state of the current key and window."""
        return self._states.of_window(state_descriptor, self.window)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Move the state of the merged windows to the current one."""
        self._states.merge(state_descriptor, self.window, self.merged)


class WindowEvictorContext(Evictor.EvictorContext):
    """The `ctx` of evictors."""

    def __init__(self, context: OperatorContext, timers: InternalTimerService) -> None:
        self._context = context
        self._timers = timers

    def get_current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._context.clock.now

    def get_current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._timers.current_watermark

    def get_metric_group(self) -> MetricGroup:
        """The operator's metrics."""
        return self._context.metrics


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The `ctx` of assigners."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._context.clock.now

    def get_runtime_context(self) -> Any:
        """The operator's runtime context."""
        return self._context.runtime_context
