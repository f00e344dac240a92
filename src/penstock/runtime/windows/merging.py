"""The general window operator for windows that merge (rules 6.4, 6.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.watermark import MIN_WATERMARK
from penstock.core.window import MergingWindowAssigner, TriggerResult
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.state.key_slices import MISSING
from penstock.runtime.windows.window_operator import WindowOperator


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Records the merges that the assigner requests."""

    def __init__(self) -> None:
        self.found: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """Record a group."""
        self.found.append((list(to_be_merged), merge_result))


class MergingWindowOperator(WindowOperator):
    """Every element starts in its own window, which is then merged with the windows it overlaps.

    Besides the contents, a key has a list of its live windows: a purged window has no contents, but other windows can
    still merge with it.
    """

    kind = "merging windows"
    assigner: MergingWindowAssigner[Any, Any]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the live windows."""
        super().setup(context, output)
        self._live_slot = self.backend.register("merging-window-set", "live windows")

    def _live(self) -> list[Any]:
        """The live windows of the current key."""
        live: list[Any] | None = self.backend.entry[self._live_slot]
        return [] if live is None else live

    def _set_live(self, windows: list[Any]) -> None:
        entry = self.backend.entry
        entry[self._live_slot] = windows or None
        entry[0].dirty = True

    # -- elements -----------------------------------------------------------------------------------------------

    def _add(self, value: Any, timestamp: int | None) -> None:
        time = MIN_WATERMARK if timestamp is None else timestamp
        accepted = False
        for window in self._assigned(value, time):
            actual = self._add_and_merge(window)
            cleanup = self._cleanup_time(actual)
            if self.event_time and cleanup <= self.timers.current_watermark:
                self._retire(actual)  # checked after merging: a late element may join an open session
                continue
            accepted = True
            self._put(actual, value, timestamp, shared=False)
            self._after_element(actual, value, time, cleanup)
        if not accepted:
            self._skipped(value, timestamp)

    def _add_and_merge(self, window: Any) -> Any:
        """Add a window to the live ones, do the merges it causes, and return the live window that now contains it."""
        live = self._live()
        if window in live:
            return window
        merges = _Merges()
        self.assigner.merge_windows([*live, window], merges)
        actual = window
        for group, result in merges.found:
            if window in group:
                actual = result
            members = [member for member in group if member in live]
            if members and members != [result]:
                self._merge(members, result)
        live = self._live()
        if actual not in live:
            self._set_live([*live, actual])
        return actual

    def _merge(self, members: list[Any], result: Any) -> None:
        """Merge live windows into one: trigger first, then timers and contents (rule 6.6)."""
        self._check_end(result)
        ctx, windows = self.trigger_context, self._windows()
        gone = [window for window in members if window != result]
        ctx.window, ctx.merged = result, gone
        self.trigger.on_merge(result, ctx)
        merged = windows.pop(result, MISSING)
        for window in gone:
            ctx.window = window
            self.trigger.clear(window, ctx)
            self._delete_cleanup(window)
            contents = windows.pop(window, MISSING)
            if merged is MISSING:
                merged = contents
            elif contents is not MISSING:
                merged = self._merge_contents(merged, contents)
        if merged is not MISSING:
            windows[result] = merged
        elif not windows:
            self.backend.entry[self.slot] = None
        self._set_live([*(window for window in self._live() if window not in members), result])

    def _merge_contents(self, contents: Any, other: Any) -> Any:
        return self.definition.contents.merge(contents, other)

    def _check_end(self, result: Any) -> None:
        """Reject a merge into a window that has already ended: time does not run backwards."""
        now = self.timers.current_watermark if self.event_time else self.context.clock.now
        if self._cleanup_time(result) <= now:
            raise InvalidProgramError(
                f"{self.assigner!r} merged windows into {result!r}, which has already ended at {now}: "
                "the end of a merged window must not be earlier than the ends of its parts"
            )

    # -- time ---------------------------------------------------------------------------------------------------

    def _on_time(self, call: Callable[..., TriggerResult], timestamp: int, window: Any, *, event_time: bool) -> None:
        """Ignore timers of windows that were merged into others (rule 6.6)."""
        if window in self._live():
            super()._on_time(call, timestamp, window, event_time=event_time)

    def _remove(self, window: Any) -> None:
        super()._remove(window)
        self._retire(window)

    def _retire(self, window: Any) -> None:
        self._set_live([other for other in self._live() if other != window])
