"""Timers of windows that fire at their end: plain timestamps per key, with a cheap index over them."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.timers.internal_timer_service import InternalTimerService, OnTimer

Fire = Callable[[int, list[Any]], None]
"""(timestamp, keys that may be due then)"""


class DueIndex:
    """Keys by timestamp, earliest first.

    Windows of thousands of keys end at the same few timestamps. One heap item per timestamp is much cheaper than one
    per timer. Items may be stale or duplicated; the caller checks in the key's entry whether the timer is still set.

    >>> index = DueIndex()
    >>> index.add(9, "a"), index.add(4, "b"), index.add(9, "c")
    (None, None, None)
    >>> index.pop(8), index.pop(8), index.pop(10), index.pop(10)
    ((4, ['b']), None, (9, ['a', 'c']), None)
    """

    __slots__ = ("_keys", "_times", "size")

    def __init__(self) -> None:
        self._keys: dict[int, list[Any]] = {}
        self._times: list[int] = []
        self.size = 0

    def add(self, timestamp: int, key: Any) -> None:
        """Add a key to a timestamp."""
        self.size += 1
        keys = self._keys.get(timestamp)
        if keys is None:
            self._keys[timestamp] = [key]
            heappush(self._times, timestamp)
        else:
            keys.append(key)

    def add_all(self, timestamp: int, keys: list[Any]) -> None:
        """Add several keys to a timestamp. The caller must not use the list afterwards."""
        self.size += len(keys)
        known = self._keys.get(timestamp)
        if known is not None:
            known += keys
        elif keys:
            self._keys[timestamp] = keys
            heappush(self._times, timestamp)

    def pop(self, limit: int) -> tuple[int, list[Any]] | None:
        """Remove and return the earliest timestamp up to the limit and its keys, or None."""
        times = self._times
        if not times or times[0] > limit:
            return None
        timestamp = heappop(times)
        keys = self._keys.pop(timestamp)
        self.size -= len(keys)
        return timestamp, keys

    def keep(self, holds: Callable[[int, Any], bool]) -> None:
        """Drop the items for which `holds` is false."""
        kept = {time: [key for key in keys if holds(time, key)] for time, keys in self._keys.items()}
        self._keys = {time: keys for time, keys in kept.items() if keys}
        self._times = sorted(self._keys)  # a sorted list is a heap
        self.size = sum(map(len, self._keys.values()))


class DueTimerService(InternalTimerService):
    """Event-time timers without namespace, fired for all keys of a timestamp at once.

    Like all timers, they live in the entries of keys. Timers registered in this task are indexed here. Timers of pages
    read from the store arrive through the base class and join the others before any timer fires, to keep the time
    order.
    """

    __slots__ = ("_compact_index_at", "_fire_moment", "index")

    def __init__(
        self,
        backend: KeyedStateBackend,
        clock: Callable[[], int],
        fire: Fire,
        on_processing: OnTimer,
        *,
        batch: bool = False,
    ) -> None:
        super().__init__(backend, clock, self._on_stored_timer, on_processing, batch=batch)
        self.index = DueIndex()
        self._compact_index_at = 4096
        self._fire_moment = fire

    def schedule(self, key: Any, entry: Entry, timestamp: int) -> None:
        """Register an event-time timer of a key, which need not be the current key."""
        timers = entry[EVENT_TIMERS]
        if timers is None:
            entry[EVENT_TIMERS] = {timestamp}
        elif timestamp in timers:
            return
        else:
            timers.add(timestamp)
        entry[0].dirty = True
        self.index.add(timestamp, key)

    def _on_stored_timer(self, timestamp: int, key: Any, namespace: Any) -> None:
        self.schedule(key, self._backend.entry, timestamp)

    def _fire_event_timers(self, limit: int) -> None:
        super()._fire_event_timers(limit)
        index, fire = self.index, self._fire_moment
        while (due := index.pop(limit)) is not None:
            fire(*due)

    def compact(self) -> None:
        """Between batches: drop items without a timer, and items of pages that left memory (they keep the timer)."""
        super().compact()
        if self.index.size >= self._compact_index_at:
            self.index.keep(self._is_set)
            self._compact_index_at = max(4096, 2 * self.index.size)

    def _is_set(self, timestamp: int, key: Any) -> bool:
        entry = self._backend.find(key)
        return entry is not None and entry[EVENT_TIMERS] is not None and timestamp in entry[EVENT_TIMERS]
