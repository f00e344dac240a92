"""The earliest timers of every page, so that a watermark loads only pages with due timers."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.state.pages import PageStore

SEGMENT = 256  # number of pages whose earliest timers are stored in one blob

TimerMinima = tuple[int | None, int | None]
"""The earliest event-time timer and the earliest processing-time timer of a page."""


class TimerIndex(dict[int, TimerMinima]):
    """Page -> its earliest timers. Pages without timers are absent."""

    __slots__ = ("_changed", "_prefix", "_store")

    def __init__(self, prefix: str, store: PageStore, page_count: int) -> None:
        super().__init__()
        self._prefix = prefix
        self._store = store
        self._changed: set[int] = set()
        for segment in range(page_count // SEGMENT + 1):
            blob = store.get(f"{prefix}/t{segment}")
            if blob is not None:
                self.update(load_stored(blob))

    def note(self, page: int, minima: TimerMinima) -> None:
        """Record the timers of a page that was written."""
        if minima == (None, None):
            if self.pop(page, None) is None:
                return
        elif self.get(page) == minima:
            return
        else:
            self[page] = minima
        self._changed.add(page // SEGMENT)

    def write(self) -> None:
        """Write changed segments to the store."""
        for segment in self._changed:
            pages = range(segment * SEGMENT, (segment + 1) * SEGMENT)
            write_segment(self._store, self._prefix, segment, {page: self[page] for page in pages if page in self})
        self._changed.clear()


def write_segment(store: PageStore, prefix: str, segment: int, minima: Mapping[int, TimerMinima]) -> None:
    """Write one blob of the index."""
    name = f"{prefix}/t{segment}"
    if minima:
        store.put(name, pickle.dumps(dict(minima), 5))
    else:
        store.remove(name)
