"""Sliding count windows: after every `slide` elements of a key, its last `size` elements.

Equivalent to a global window with a count trigger and a count evictor, but keeps reduced values instead of elements
where possible. Elements are numbered per key, and the numbers serve as a time line: windows share its slices (see
`slices`).
"""

from __future__ import annotations

from typing import Any

from penstock.core.window import GlobalWindow
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.key_slices import MISSING, KeySlices
from penstock.runtime.windows.base import WindowedOperator
from penstock.runtime.windows.contents import fold_elements
from penstock.runtime.windows.counted import counted_elements
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.emission import append_results
from penstock.runtime.windows.functions import EmitCall
from penstock.runtime.windows.slices import FoldedSlices, SliceGrid

_END = GlobalWindow.get().max_timestamp()


class _SlidingCountOperator(WindowedOperator):
    slot: int
    contents_kind: str | None = None

    def __init__(self, definition: WindowDefinition, size: int, slide: int) -> None:
        super().__init__(definition)
        self.size = size
        self.slide = slide
        self._emits_results = isinstance(definition.function, EmitCall)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        kind = f"sliding count windows of {self.size}/{self.slide}"
        self.slot = self._register_windows(kind, self.contents_kind, growing=counted_elements)

    def end_batch(self) -> None:
        """Do nothing: there are no timers."""

    def _emit_window(self, key: Any, entry: Any, elements: list[Any]) -> None:
        if self._emits_results:
            append_results(self.collector, elements, _END)
        else:
            self.backend.key, self.backend.entry = key, entry
            self._emit(key, GlobalWindow.get(), elements)


class FoldedSlidingCountOperator(_SlidingCountOperator):
    """For reduce and aggregate. The state of a key is its slices and the number of its elements."""

    def __init__(self, definition: WindowDefinition, size: int, slide: int) -> None:
        super().__init__(definition, size, slide)
        self._offset = -size  # windows end at multiples of the slide and begin `size` earlier
        self._split = size % slide

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Choose how windows are combined."""
        super().setup(context, output)
        self._slices = FoldedSlices(self.definition.contents, SliceGrid(self.size, self.slide, self._offset))

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        slide, offset, split = self.slide, self._offset, self._split
        contents = self.definition.contents
        first, fold = contents.first, contents.fold
        for value in values:
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            slices = entry[slot]
            if slices is None:
                slices = entry[slot] = KeySlices()
            number = slices.arrivals
            position = (number - offset) % slide
            start = number - position + (split if split and position >= split else 0)
            known = slices.get(start, MISSING)
            slices[start] = first(value) if known is MISSING else fold(known, value)
            slices.arrivals = number = number + 1
            entry[0].dirty = True
            if number % slide == 0:
                self._fire(key, entry, slices, number)

    def _fire(self, key: Any, entry: Any, slices: KeySlices, end: int) -> None:
        start = end - self.size
        elements = self._slices.elements(slices, start, end)
        assert elements is not None  # the window contains the element that completes the slide
        slices.pop(start, None)
        if self._split:
            slices.pop(start + self._split, None)
        self._emit_window(key, entry, elements)


class BufferedSlidingCountOperator(_SlidingCountOperator):
    """For functions of all elements, or without merge. State: [elements since the last window, last elements]."""

    contents_kind = "elements"

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        backend, entries, slot, size, slide = self.backend, self.backend.entries, self.slot, self.size, self.slide
        contents = self.definition.contents
        for value in values:
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            counted: list[Any] | None = entry[slot]
            if counted is None:
                counted = entry[slot] = [0, []]
            counted[0] += 1
            buffer = counted[1]
            buffer.append(value)
            entry[0].dirty = True
            if counted[0] >= slide:
                counted[0] = 0
                del buffer[:-size]
                elements = fold_elements(contents, buffer[:])
                assert elements is not None  # the element that completed the slide is present
                self._emit_window(key, entry, elements)


def sliding_count_operator(definition: WindowDefinition, size: int, slide: int) -> WindowedOperator:
    """Build the operator of `count_window(size, slide)`."""
    contents = definition.contents
    folded = contents.mergeable and contents.function is not None and slide <= size
    return (FoldedSlidingCountOperator if folded else BufferedSlidingCountOperator)(definition, size, slide)
