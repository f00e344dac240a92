"""Tumbling windows that fire at their end: the most common window operator."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.window import TimeWindow
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.state.key_slices import MISSING
from penstock.runtime.state.page_chunks import Growing, by_namespace
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.windows.contents import AggregateContents, ReduceContents
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.emission import append_results
from penstock.runtime.windows.functions import EmitCall
from penstock.runtime.windows.panes import PaneOperator


class TumblingWindowOperator(PaneOperator):
    """A pane is a window. It fires at its end and, if lateness is allowed, again for every late element."""

    contents_kind: str | None = None
    growing: Growing = staticmethod(by_namespace)

    def __init__(self, definition: WindowDefinition, size: int, offset: int) -> None:
        super().__init__(definition, size, size, offset)
        self._emits_results = isinstance(definition.function, EmitCall) and self.lateness == 0

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the panes."""
        super().setup(context, output)
        clock = "event" if self.event_time else "processing"
        kind = f"tumbling {clock}-time windows of {self.size} ms with offset {self.offset} ms"
        self.slot = self._register_windows(kind, self.contents_kind, self.growing)

    def _boundary(self) -> int:
        return self.timers.current_watermark - self.size + 1 if self.event_time else MIN_WATERMARK

    def _new_pane(self, key: Any, entry: Entry, start: int) -> None:
        self._schedule(key, entry, start + self.size - 1)

    def _add_late(self, value: Any, timestamp: int, key: Any, entry: Entry, start: int) -> None:
        """Fire the complete window again if it is still kept. Otherwise the element is late (rule 6.8)."""
        cleanup = start + self.size - 1 + self.lateness
        if cleanup <= self.timers.current_watermark:
            self._late(value, timestamp)
            return
        panes = entry[self.slot]
        if panes is None:
            panes = entry[self.slot] = {}
        contents = panes.get(start, MISSING)
        strategy = self.definition.contents
        panes[start] = strategy.first(value) if contents is MISSING else strategy.fold(contents, value)
        entry[0].dirty = True
        self._schedule(key, entry, cleanup)
        self._evaluate(key, entry, start, kept=True)

    def _on_timer(self, timestamp: int, key: Any, entry: Entry) -> None:
        """Fire the window that ends now and, with lateness, remove earlier ones."""
        panes = entry[self.slot]
        if panes is None:
            return
        start = timestamp - self.size + 1
        if start in panes:
            self._evaluate(key, entry, start, kept=self.lateness > 0)
        for complete in [pane for pane in panes if pane <= start]:
            cleanup = complete + self.size - 1 + self.lateness
            if cleanup > timestamp:
                self._schedule(key, entry, cleanup)
                continue
            del panes[complete]
            entry[0].dirty = True
            if self.clears:
                self._clear_function(TimeWindow(complete, complete + self.size))
        if not panes:
            entry[self.slot] = None

    def _evaluate(self, key: Any, entry: Entry, start: int, *, kept: bool) -> None:
        self.backend.key, self.backend.entry = key, entry
        elements = self.definition.contents.elements(entry[self.slot][start], kept=kept)
        self._emit(key, TimeWindow(start, start + self.size), elements)

    def _fire(self, timestamp: int, keys: list[Any]) -> None:
        contents = self.definition.contents
        if not self._emits_results or not isinstance(contents, (AggregateContents, ReduceContents)):
            super()._fire(timestamp, keys)
            return
        # Thousands of keys may be due at once: create no window object, call nothing but the user's function.
        backend, slot, start = self.backend, self.slot, timestamp - self.size + 1
        entries = backend.entries
        result_of = contents.function.get_result if isinstance(contents, AggregateContents) else None
        results = []
        for key in keys:
            entry = entries.get(key) or backend.activate(key)
            timers = entry[EVENT_TIMERS]
            if timers is None or timestamp not in timers:
                continue
            if len(timers) == 1:
                entry[EVENT_TIMERS] = None
            else:
                timers.discard(timestamp)
            entry[0].dirty = True
            panes = entry[slot]
            if panes is None or start not in panes:
                self._on_timer(timestamp, key, entry)  # registered while lateness was allowed
                continue
            value = panes.pop(start)
            if not panes:
                entry[slot] = None
            results.append(value if result_of is None else result_of(value))
        append_results(self.collector, results, timestamp)
