"""Window join and co-group on tumbling windows that fire at their end.

Elements of the two inputs are stored in two lists from the start, so they need not be wrapped and separated later.
"""

from __future__ import annotations

from typing import Any

from penstock.core.window import TimeWindow
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.state.page_chunks import Path
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.windows.emission import collect_list
from penstock.runtime.windows.functions import JoinCall
from penstock.runtime.windows.tumbling import TumblingWindowOperator


def _both_sides(panes: dict[int, Any]) -> list[Path]:
    return [(start, side) for start in panes for side in (0, 1)]


class TumblingJoinOperator(TumblingWindowOperator):
    """The contents of a pane are (elements of the first input, elements of the second input)."""

    contents_kind = "elements of two inputs"
    growing = staticmethod(_both_sides)

    def _process(self, values: Values, timestamps: Timestamps, side: int) -> None:
        select = self.key_selector if side == 1 else self.key_selector2
        times = self._timestamps(values, timestamps)
        boundary = self._boundary()
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        period, offset, side = self.period, self.offset, side - 1
        try:
            for value, timestamp in zip(values, times, strict=True):
                key = select(value)
                entry = entries.get(key)
                if entry is None:
                    entry = backend.activate(key)
                start = timestamp - (timestamp - offset) % period
                if start <= boundary:
                    self._add_late_on_side(side, value, timestamp, key, entry, start)
                    continue
                panes = entry[slot]
                if panes is None:
                    panes = entry[slot] = {}
                pair = panes.get(start)
                if pair is None:
                    pair = panes[start] = ([], [])
                    self._new_pane(key, entry, start)
                pair[side].append(value)
                entry[0].dirty = True
        except Exception as error:
            if isinstance(error, TypeError):
                self._check_timestamps(values, times)
            raise self._error(error, select) from None
        backend.clear_current_key()
        self.collector.flush()

    def _add_late_on_side(self, side: int, value: Any, timestamp: int, key: Any, entry: Entry, start: int) -> None:
        """Fire the window again or report the element as late, as in the base class."""
        cleanup = start + self.size - 1 + self.lateness
        if cleanup <= self.timers.current_watermark:
            self._late(value, timestamp)
            return
        panes = entry[self.slot]
        if panes is None:
            panes = entry[self.slot] = {}
        panes.setdefault(start, ([], []))[side].append(value)
        entry[0].dirty = True
        self._schedule(key, entry, cleanup)
        self._evaluate(key, entry, start, kept=True)

    def _evaluate(self, key: Any, entry: Entry, start: int, *, kept: bool) -> None:
        first, second = entry[self.slot][start]
        self.backend.key, self.backend.entry = key, entry
        contents = self.definition.contents
        elements = (contents.elements(first, kept=kept), contents.elements(second, kept=kept))
        self._emit(key, TimeWindow(start, start + self.size), elements)

    def _fire(self, timestamp: int, keys: list[Any]) -> None:
        call = self.definition.function
        join = call.pair_function if isinstance(call, JoinCall) and not self.lateness else None
        if join is None:
            super()._fire(timestamp, keys)
            return
        # Join all keys due at this timestamp first: the results are checked and collected together.
        backend, slot, start = self.backend, self.slot, timestamp - self.size + 1
        entries = backend.entries
        results: list[Any] = []
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
            backend.key, backend.entry = key, entry
            panes = entry[slot]
            if panes is None or start not in panes:
                self._on_timer(timestamp, key, entry)  # registered while lateness was allowed
                continue
            first, second = panes.pop(start)
            if not panes:
                entry[slot] = None
            results += [join(left, right) for left in first for right in second]
        collect_list(self.collector, results, timestamp)
