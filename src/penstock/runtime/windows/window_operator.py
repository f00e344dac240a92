"""The general window operator: any assigner, any trigger, with or without evictor (rules 6.4 to 6.8).

The windows of a key are a dict from window to contents. Trigger timers and the cleanup timer have the window as
namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from penstock.common.errors import TypeMismatchError, shorten
from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.core.window import TaggedUnion, TriggerResult, Window
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.isolation import copied
from penstock.runtime.state.key_slices import MISSING
from penstock.runtime.windows.base import WindowedOperator
from penstock.runtime.windows.contents import ReduceContents
from penstock.runtime.windows.trigger_context import AssignerContext, WindowTriggerContext

Windows = dict[Any, Any]


class WindowOperator(WindowedOperator):
    """Windows that do not merge."""

    kind = "windows"
    contents_kind: str | None = None
    slot: int

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create the contexts of trigger and assigner, and register the windows."""
        super().setup(context, output)
        self.slot = self._register_windows(self.kind, self.contents_kind)
        self.trigger = self.definition.trigger
        self.assigner = self.definition.assigner
        self.trigger_context = WindowTriggerContext(context, self.timers, self.states)
        self.assigner_context = AssignerContext(context)

    # -- elements -----------------------------------------------------------------------------------------------

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        timers, set_key, add = self.timers, self.backend.set_current_key, self._add
        times = timestamps if timestamps is not None else [None] * len(values)
        for value, timestamp in zip(values, times, strict=True):
            set_key(select(value))
            add(value, timestamp)
            if timers.due:
                # Timers registered for the past fire right after the method that registered them (rule 6.3).
                timers.advance_processing_time(self.context.clock.now - 1)

    def _add(self, value: Any, timestamp: int | None) -> None:
        """Add an element of the current key."""
        time = MIN_WATERMARK if timestamp is None else timestamp
        windows = self._assigned(value, time)
        over_at = self.timers.current_watermark if self.event_time else MIN_WATERMARK
        shared = len(windows) > 1
        accepted = False
        for window in windows:
            cleanup = self._cleanup_time(window)
            if cleanup > over_at:
                accepted = True
                self._put(window, value, timestamp, shared=shared)
                self._after_element(window, value, time, cleanup)
        if not accepted:
            self._skipped(value, timestamp)

    def _assigned(self, value: Any, time: int) -> Collection[Any]:
        windows: Any = self.assigner.assign_windows(value, time, self.assigner_context)
        if type(windows) is list or (isinstance(windows, Collection) and not isinstance(windows, Window)):
            found: Collection[Any] = windows
            return found
        raise TypeMismatchError(
            f"assign_windows() of {self.assigner!r} returned {shorten(windows)}: return a list of windows",
            operator_name=self.context.operator_name,
            record=value.value if type(value) is TaggedUnion else value,
        )

    def _put(self, window: Any, value: Any, timestamp: int | None, *, shared: bool) -> None:
        """Add an element to the contents of a window."""
        contents = self.definition.contents
        windows = self._windows()
        known = windows.get(window, MISSING)
        if shared and isinstance(contents, ReduceContents):
            value = copied(value)  # several windows receive it, and reduce may change or keep its arguments
        windows[window] = contents.first(value) if known is MISSING else contents.fold(known, value)

    def _after_element(self, window: Any, value: Any, time: int, cleanup: int) -> None:
        """Call the trigger and register the cleanup timer."""
        ctx = self.trigger_context
        ctx.window = window
        result = self.trigger.on_element(value, time, window, ctx)
        if result is not TriggerResult.CONTINUE:
            self._act(self._checked_result(result, "on_element", value), window)
        if cleanup < MAX_WATERMARK:
            if self.event_time:
                self.timers.register_event_time_timer(cleanup, window)
            else:
                self.timers.register_processing_time_timer(cleanup, window)

    def _skipped(self, value: Any, timestamp: int | None) -> None:
        """Handle an element that no window accepted. It is late only if it is behind the watermark (rule 6.8)."""
        if not self.event_time:
            return
        time = MIN_WATERMARK if timestamp is None else timestamp
        if time + self.lateness <= self.timers.current_watermark:
            self._late(value, timestamp)

    def _windows(self) -> Windows:
        """Return the windows of the current key, marked as changed."""
        entry = self.backend.entry
        entry[0].dirty = True
        windows: Windows | None = entry[self.slot]
        if windows is None:
            windows = entry[self.slot] = {}
        return windows

    # -- time ---------------------------------------------------------------------------------------------------

    def _on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_time(self.trigger.on_event_time, timestamp, namespace, event_time=True)

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_time(self.trigger.on_processing_time, timestamp, namespace, event_time=False)

    def _on_time(self, call: Callable[..., TriggerResult], timestamp: int, window: Any, *, event_time: bool) -> None:
        """Fire a timer of the current key: call the trigger, then remove the window if it has expired (rule 6.6)."""
        ctx = self.trigger_context
        ctx.window = window
        try:
            result = call(timestamp, window, ctx)
            if result is not TriggerResult.CONTINUE:
                self._act(self._checked_result(result, call.__name__), window)
            if event_time == self.event_time and timestamp == self._cleanup_time(window):
                self._remove(window)
        except Exception as error:
            raise self._error(error) from None

    def _cleanup_time(self, window: Any) -> int:
        last: int = window.max_timestamp()
        return min(last + self.lateness, MAX_WATERMARK)

    def _delete_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if self.event_time:
            self.timers.delete_event_time_timer(time, window)
        else:
            self.timers.delete_processing_time_timer(time, window)

    # -- firing -------------------------------------------------------------------------------------------------

    def _checked_result(self, result: Any, method: str, value: Any = None) -> TriggerResult:
        if isinstance(result, TriggerResult):
            return result
        raise TypeMismatchError(
            f"{method}() of the trigger {self.trigger!r} returned {shorten(result)}: return a TriggerResult, "
            "such as TriggerResult.CONTINUE",
            operator_name=self.context.operator_name,
            record=value.value if type(value) is TaggedUnion else value,
        )

    def _act(self, result: TriggerResult, window: Any) -> None:
        """FIRE evaluates the contents, PURGE drops them. Trigger state and timers stay (rule 6.6)."""
        windows = self.backend.entry[self.slot]
        contents = MISSING if windows is None else windows.get(window, MISSING)
        if contents is MISSING:
            return  # purged earlier: the window is empty
        if result is not TriggerResult.PURGE:
            self._fire(window, contents, kept=result is TriggerResult.FIRE)
        if result is not TriggerResult.FIRE:
            self._drop(window)

    def _fire(self, window: Any, contents: Any, *, kept: bool) -> None:
        self._emit(self.backend.key, window, self.definition.contents.elements(contents, kept=kept))

    def _drop(self, window: Any) -> None:
        entry = self.backend.entry
        windows = entry[self.slot]
        if windows is not None and windows.pop(window, MISSING) is not MISSING:
            if not windows:
                entry[self.slot] = None
            entry[0].dirty = True

    def _remove(self, window: Any) -> None:
        """Remove the window: contents, trigger state and the function's own state."""
        self._drop(window)
        self.trigger_context.window = window
        self.trigger.clear(window, self.trigger_context)
        if self.clears:
            self._clear_function(window)
