"""Windows of fixed size that fire at their end, stored as panes.

A pane is a section of the time line that no window boundary crosses: a tumbling window, or a slice that several sliding
windows share. An element belongs to exactly one pane. In a key's entry, the panes are a dict from the start of a pane
to its contents. The key's timers have no namespace: their timestamp determines which windows end.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.key_slices import MISSING
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.timers.due_index import DueTimerService
from penstock.runtime.windows.base import WindowedOperator
from penstock.runtime.windows.contents import AggregateContents, ReduceContents
from penstock.runtime.windows.definition import WindowDefinition


class TimedOperator(WindowedOperator):
    """Windows whose timers are plain timestamps of a key: no trigger object, no namespace, a cheap index."""

    timers: DueTimerService
    slot: int

    def _create_timers(self, context: OperatorContext) -> DueTimerService:
        assert context.keyed_backend is not None
        timers = DueTimerService(
            context.keyed_backend,
            context.processing_time,
            self._fire_moment,
            self._on_processing_time,
            batch=context.batch_execution,
        )
        context.timer_services.append(timers)
        return timers

    def _schedule(self, key: Any, entry: Entry, timestamp: int) -> None:
        """Register a timer that calls `_on_timer` at this timestamp."""
        if self.event_time:
            if timestamp > MAX_WATERMARK and not self.context.batch_execution:
                self._check_end(timestamp)
                return  # only the lateness exceeds the time range: the window is never removed
            self.timers.schedule(key, entry, timestamp)
        else:
            self.backend.key, self.backend.entry = key, entry
            self.timers.schedule_processing_time(timestamp)

    def _check_end(self, timestamp: int) -> None:
        if timestamp - self.lateness > MAX_WATERMARK:
            raise ValueError(
                f"the timestamp is too close to the maximum, {MAX_WATERMARK} ms: its window in "
                f"{self.definition.assigner!r} can never end"
            )

    def end_batch(self) -> None:
        """Do nothing in event time, which has no processing-time timers."""
        if not self.event_time:
            super().end_batch()

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        try:
            self._on_timer(timestamp, key, self.backend.entry)
        except Exception as error:
            raise self._error(error) from None

    def _fire_moment(self, timestamp: int, keys: list[Any]) -> None:
        try:
            self._fire(timestamp, keys)
        except Exception as error:
            raise self._error(error) from None

    def _fire(self, timestamp: int, keys: list[Any]) -> None:
        """Fire the windows of all keys with a timer at this timestamp."""
        backend = self.backend
        for key in keys:
            backend.set_current_key(key)
            entry = backend.entry
            timers = entry[EVENT_TIMERS]
            if timers is not None and timestamp in timers:
                timers.discard(timestamp)
                if not timers:
                    entry[EVENT_TIMERS] = None
                entry[0].dirty = True
                self._on_timer(timestamp, key, entry)

    def _on_timer(self, timestamp: int, key: Any, entry: Entry) -> None:
        """Handle a timer of a key."""
        raise NotImplementedError


class PaneOperator(TimedOperator):
    """The loops that add elements to panes."""

    def __init__(self, definition: WindowDefinition, size: int, period: int, offset: int, split: int = 0) -> None:
        super().__init__(definition)
        self.size = size
        self.period = period  # a pane begins at every multiple of it, shifted by the offset
        self.offset = offset
        self.split = split  # if not 0, another pane begins this long after that

    def _boundary(self) -> int:
        """Panes that start here or earlier may belong to windows that have fired."""
        raise NotImplementedError

    def _new_pane(self, key: Any, entry: Entry, start: int) -> None:
        """Handle the first element of a pane."""
        raise NotImplementedError

    def _add_late(self, value: Any, timestamp: int, key: Any, entry: Entry, start: int) -> None:
        """Add an element to a pane at or before the boundary."""
        raise NotImplementedError

    def _new_panes(self) -> dict[int, Any]:
        return {}

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        times = self._timestamps(values, timestamps)
        boundary = self._boundary()
        contents = self.definition.contents
        try:
            if isinstance(contents, AggregateContents):
                self._aggregate(values, times, select, boundary, contents)
            elif isinstance(contents, ReduceContents):
                self._reduce(values, times, select, boundary, contents)
            else:
                self._append(values, times, select, boundary)
        except TypeError:
            self._check_timestamps(values, times)
            raise

    # The three loops differ in one line. They are written out because a call per record is visible in the benchmark.

    def _aggregate(
        self, values: Values, timestamps: list[Any], select: KeySelect, boundary: int, contents: AggregateContents
    ) -> None:
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        period, offset, split = self.period, self.offset, self.split
        add, create = contents.function.add, contents.function.create_accumulator
        for value, timestamp in zip(values, timestamps, strict=True):
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            position = (timestamp - offset) % period
            start = timestamp - position
            if split and position >= split:
                start += split
            if start <= boundary:
                self._add_late(value, timestamp, key, entry, start)
                continue
            panes = entry[slot]
            if panes is None:
                panes = entry[slot] = self._new_panes()
            accumulator = panes.get(start, MISSING)
            if accumulator is MISSING:
                accumulator = create()
                self._new_pane(key, entry, start)
            panes[start] = add(value, accumulator)
            entry[0].dirty = True

    def _reduce(
        self, values: Values, timestamps: list[Any], select: KeySelect, boundary: int, contents: ReduceContents
    ) -> None:
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        period, offset, split = self.period, self.offset, self.split
        reduce = contents.reduce
        for value, timestamp in zip(values, timestamps, strict=True):
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            position = (timestamp - offset) % period
            start = timestamp - position
            if split and position >= split:
                start += split
            if start <= boundary:
                self._add_late(value, timestamp, key, entry, start)
                continue
            panes = entry[slot]
            if panes is None:
                panes = entry[slot] = self._new_panes()
            current = panes.get(start, MISSING)
            if current is MISSING:
                panes[start] = value
                self._new_pane(key, entry, start)
            else:
                panes[start] = reduce(current, value)
            entry[0].dirty = True

    def _append(self, values: Values, timestamps: list[Any], select: KeySelect, boundary: int) -> None:
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        period, offset, split = self.period, self.offset, self.split
        for value, timestamp in zip(values, timestamps, strict=True):
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            position = (timestamp - offset) % period
            start = timestamp - position
            if split and position >= split:
                start += split
            if start <= boundary:
                self._add_late(value, timestamp, key, entry, start)
                continue
            panes = entry[slot]
            if panes is None:
                panes = entry[slot] = self._new_panes()
            elements = panes.get(start)
            if elements is None:
                panes[start] = [value]
                self._new_pane(key, entry, start)
            else:
                elements.append(value)
            entry[0].dirty = True
