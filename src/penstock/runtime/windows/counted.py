"""Tumbling count windows: when a key has n elements, the window fires and is cleared.

Equivalent to a global window with a purging count trigger, but without trigger, timers and window objects.
"""

from __future__ import annotations

from typing import Any

from penstock.core.window import GlobalWindow
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.page_chunks import Path
from penstock.runtime.windows.base import WindowedOperator
from penstock.runtime.windows.contents import ReduceContents
from penstock.runtime.windows.definition import WindowDefinition


def counted_elements(counted: list[Any]) -> list[Path]:
    """Locate the elements in [number, elements]."""
    return [(1,)]


class CountWindowOperator(WindowedOperator):
    """The state of a key is [number of elements, contents]."""

    slot: int

    def __init__(self, definition: WindowDefinition, size: int) -> None:
        super().__init__(definition)
        self.size = size

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        self.slot = self._register_windows("count windows", growing=counted_elements)

    def end_batch(self) -> None:
        """Do nothing: there are no timers."""

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        backend, entries, slot, size = self.backend, self.backend.entries, self.slot, self.size
        contents = self.definition.contents
        first, fold = contents.first, contents.reduce if isinstance(contents, ReduceContents) else contents.fold
        for value in values:
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            counted: list[Any] | None = entry[slot]
            if counted is None:
                counted = entry[slot] = [1, first(value)]
            else:
                counted[0] += 1
                counted[1] = fold(counted[1], value)
            if counted[0] >= size:
                entry[slot] = None
                backend.key, backend.entry = key, entry
                self._emit(key, GlobalWindow.get(), contents.elements(counted[1], kept=False))
            entry[0].dirty = True
