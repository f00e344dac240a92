"""Sliding windows that fire at their end, with slices that the windows share.

An element is added to one slice, however many windows contain it. A window that fires is combined from its slices (see
`slices`). A key has a timer for the next window that has elements. Each window that fires registers the next timer.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.window import TimeWindow
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Values
from penstock.runtime.records.isolation import copied
from penstock.runtime.state.key_slices import MISSING, KeySlices
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.windows.contents import ListContents
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.emission import append_results
from penstock.runtime.windows.functions import EmitCall
from penstock.runtime.windows.panes import PaneOperator
from penstock.runtime.windows.slices import FoldedSlices, NumberedSlices, SliceGrid, Slices


class SlidingWindowOperator(PaneOperator):
    """Windows of `size`, one per `slide`. The slide is shorter than the size."""

    _slices: Slices

    def __init__(self, definition: WindowDefinition, size: int, slide: int, offset: int) -> None:
        super().__init__(definition, size, slide, offset, split=size % slide)
        self.slide = slide
        self._shortest = min(self.split, slide - self.split) if self.split else slide
        self._emits_results = isinstance(definition.function, EmitCall)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the slices."""
        super().setup(context, output)
        clock = "event" if self.event_time else "processing"
        kind = f"sliding {clock}-time windows of {self.size}/{self.slide} ms with offset {self.offset} ms"
        self.slot = self._register_windows(kind)
        contents = self.definition.contents
        if isinstance(contents, ListContents):
            self._slices = NumberedSlices()
        else:
            self._slices = FoldedSlices(contents, SliceGrid(self.size, self.slide, self.offset))
        self._fired_until = MIN_WATERMARK  # processing time: windows up to this time have fired in this task

    def _complete_until(self) -> int:
        """Return the time up to which windows have fired, by their last millisecond."""
        return self.timers.current_watermark if self.event_time else self._fired_until

    # -- elements -----------------------------------------------------------------------------------------------

    def _boundary(self) -> int:
        return self._complete_until() - self._shortest + 1

    def _new_panes(self) -> KeySlices:
        return self._slices.create()

    def _new_pane(self, key: Any, entry: Entry, start: int) -> None:
        first_end = start + self.slide - (start - self.offset - self.size) % self.slide
        self._schedule(key, entry, first_end - 1)

    def _append(self, values: Values, timestamps: list[Any], select: KeySelect, boundary: int) -> None:
        """The loop for lists with numbered elements: windows share slices, but need elements in arrival order."""
        backend, slot, add = self.backend, self.slot, self._slices.add
        period, offset, split = self.period, self.offset, self.split
        for value, timestamp in zip(values, timestamps, strict=True):
            key = select(value)
            entry = backend.entries.get(key) or backend.activate(key)
            position = (timestamp - offset) % period
            start = timestamp - position + (split if split and position >= split else 0)
            if start <= boundary:
                self._add_late(value, timestamp, key, entry, start)
                continue
            panes = entry[slot]
            if panes is None:
                panes = entry[slot] = self._new_panes()
            if start not in panes:
                self._new_pane(key, entry, start)
            add(panes, start, value)
            entry[0].dirty = True

    def _add_late(self, value: Any, timestamp: int, key: Any, entry: Entry, start: int) -> None:
        """Add an element that may be late for some of its windows and in time for others (rule 6.8)."""
        complete, lateness = self._complete_until(), self.lateness
        last_end = timestamp - (timestamp - self.offset) % self.slide + self.size
        if last_end - 1 + lateness <= complete and self.event_time:
            self._late(value, timestamp)
            return
        slices = entry[self.slot]
        if slices is None:
            slices = entry[self.slot] = self._new_panes()
        self._slices.add(slices, start, value)
        slices.forget()
        entry[0].dirty = True
        ends = range(last_end, timestamp, -self.slide)
        still_open = [end for end in ends if end - 1 > complete]
        if still_open:
            self._schedule(key, entry, still_open[-1] - 1)
        for end in ends[len(still_open) :]:  # the complete windows, latest first
            if not self.event_time:
                # The window fired in this millisecond and was removed: it fires again with this element alone.
                contents = self.definition.contents
                elements = contents.elements(contents.first(copied(value)), kept=False)
                self._emit_window(key, entry, end, elements)
            elif complete < end - 1 + lateness:
                self._schedule(key, entry, end - 1 + lateness)
                self._evaluate(key, entry, end)

    # -- windows ------------------------------------------------------------------------------------------------

    def _fire(self, timestamp: int, keys: list[Any]) -> None:
        slices = self._slices
        usual = self._emits_results and not self.lateness and self._is_end(timestamp + 1)
        if usual and isinstance(slices, FoldedSlices):
            self._fire_folded(timestamp, keys, slices)
        else:
            super()._fire(timestamp, keys)

    def _fire_folded(self, timestamp: int, keys: list[Any], folded: FoldedSlices) -> None:
        """Do what `_on_timer` does, for all keys with this timer. Compute once what depends only on the timestamp."""
        backend, entries, slot, split = self.backend, self.backend.entries, self.slot, self.split
        end = timestamp + 1
        start, next_start, next_end = end - self.size, end - self.size + self.slide, end + self.slide
        tail_block, head_block = folded.blocks(start)
        combine, elements_of = folded.combine, self.definition.contents.elements
        results: list[Any] = []
        again: list[Any] = []
        for key in keys:
            entry = entries.get(key) or backend.activate(key)
            timers = entry[EVENT_TIMERS]
            if timers is None or timestamp not in timers:
                continue
            timers.discard(timestamp)
            entry[0].dirty = True
            slices = entry[slot]
            if slices is not None:
                value, kept = combine(slices, tail_block, start, head_block, end)
                if value is not MISSING:
                    results += elements_of(value, kept=kept)
                slices.pop(start, None)
                if split:
                    slices.pop(start + split, None)
                if not slices:
                    entry[slot] = None
                elif next_end - 1 not in timers and slices.any_between(next_start, next_end):
                    timers.add(next_end - 1)
                    again.append(key)
            if not timers:
                entry[EVENT_TIMERS] = None
        self.timers.index.add_all(next_end - 1, again)
        append_results(self.collector, results, timestamp)

    def _on_timer(self, timestamp: int, key: Any, entry: Entry) -> None:
        """Fire the window that ends now and, with lateness, remove an earlier one."""
        self._fired_until = max(self._fired_until, timestamp)
        end, gone = timestamp + 1, timestamp + 1 - self.lateness
        if self._is_end(end) and self._evaluate(key, entry, end):
            if self.lateness:
                self._schedule(key, entry, timestamp + self.lateness)
            next_end = end + self.slide
            if entry[self.slot].any_between(next_end - self.size, next_end):
                self._schedule(key, entry, next_end - 1)
        if self._is_end(gone):
            self._forget_window(key, entry, gone)

    def _is_end(self, timestamp: int) -> bool:
        return (timestamp - self.size - self.offset) % self.slide == 0

    def _evaluate(self, key: Any, entry: Entry, end: int) -> bool:
        """Fire the window with this end, unless it is empty."""
        slices = entry[self.slot]
        elements = None if slices is None else self._slices.elements(slices, end - self.size, end)
        if elements is None:
            return False
        self._emit_window(key, entry, end, elements)
        return True

    def _emit_window(self, key: Any, entry: Entry, end: int, elements: list[Any]) -> None:
        if self._emits_results:
            append_results(self.collector, elements, end - 1)
        else:
            self.backend.key, self.backend.entry = key, entry
            self._emit(key, TimeWindow(end - self.size, end), elements)

    def _forget_window(self, key: Any, entry: Entry, end: int) -> None:
        """Remove a window and the slices that no later window needs."""
        slices = entry[self.slot]
        start = end - self.size
        if slices is None or (self.clears and not slices.any_between(start, end)):
            return
        slices.pop(start, None)
        if self.split:
            slices.pop(start + self.split, None)
        if not slices:
            entry[self.slot] = None
        entry[0].dirty = True
        if self.clears:
            self.backend.key, self.backend.entry = key, entry
            self._clear_function(TimeWindow(start, end))
