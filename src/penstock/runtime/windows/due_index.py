"""Which keys are due when: an index over timers that live in the keys' entries."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any


class DueIndex:
    """Keys by timestamp, earliest first.

    Windows of thousands of keys end at the same few moments: one heap item for each moment is much cheaper than one
    for each timer. Items may be stale or double; who takes them asks the key's entry whether the timer is still set.

    >>> index = DueIndex()
    >>> index.add(9, "a"), index.add(4, "b"), index.add(9, "c")
    (None, None, None)
    >>> index.pop(8), index.pop(8), index.pop(10), index.pop(10)
    ((4, ['b']), None, (9, ['a', 'c']), None)
    """

    __slots__ = ("_keys", "_times")

    def __init__(self) -> None:
        self._keys: dict[int, list[Any]] = {}
        self._times: list[int] = []

    def add(self, timestamp: int, key: Any) -> None:
        """Note that a key is due."""
        keys = self._keys.get(timestamp)
        if keys is None:
            self._keys[timestamp] = [key]
            heappush(self._times, timestamp)
        else:
            keys.append(key)

    def pop(self, limit: int) -> tuple[int, list[Any]] | None:
        """The earliest moment up to the limit, and the keys that are due then; None if there is none."""
        times = self._times
        if not times or times[0] > limit:
            return None
        timestamp = heappop(times)
        return timestamp, self._keys.pop(timestamp)

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))
