"""Remove expired elements from pages.

A sweep checks everything in a slot. Pages are written far more often than their elements expire. Therefore a sweep also
returns when the next element can expire: until then, the page need not be checked. Elements that are written later
expire later, since processing time never goes back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.runtime.state.chunked_map import unnoted_items
from penstock.runtime.state.page_chunks import swept
from penstock.runtime.state.pages import Entry

__all__ = ["ListSweep", "MapSweep", "NamespaceSweep", "Sweep", "ValueSweep"]

Stamped = tuple[Any, int]


class Sweep(ABC):
    """Removes expired elements from a slot. An element lives while now < touched + ttl."""

    __slots__ = ("ttl",)

    def __init__(self, ttl: int) -> None:
        self.ttl = ttl

    @abstractmethod
    def __call__(self, stored: Any, now: int) -> Any:
        """Return the unexpired part, or None if nothing is left."""

    @abstractmethod
    def oldest(self, stored: Any) -> int:
        """Return the time of the element that was touched least recently."""

    def clear_slot(self, entries: Iterable[Entry], slot: int, now: int) -> int:
        """Remove expired elements from a slot of all entries, and return when the next element can expire."""
        oldest = now
        for entry in entries:
            stored = entry[slot]
            if stored is not None:
                kept = entry[slot] = swept(stored, self(stored, now))
                if kept is not None:
                    oldest = min(oldest, self.oldest(kept))
        return oldest + self.ttl


class ValueSweep(Sweep):
    """Sweeps one value."""

    __slots__ = ()

    def __call__(self, stored: Stamped, now: int) -> Stamped | None:
        return stored if now < stored[1] + self.ttl else None

    def oldest(self, stored: Stamped) -> int:
        return stored[1]

    def clear_slot(self, entries: Iterable[Entry], slot: int, now: int) -> int:
        """Sweep all entries without a call per entry."""
        born, oldest = now - self.ttl, now
        for entry in entries:
            stored = entry[slot]
            if stored is not None:
                touched = stored[1]
                if touched <= born:
                    entry[slot] = None
                elif touched < oldest:
                    oldest = touched
        return oldest + self.ttl


class ListSweep(Sweep):
    """Sweeps the elements of a list."""

    __slots__ = ()

    def __call__(self, stored: list[Stamped], now: int) -> list[Stamped] | None:
        born = now - self.ttl
        return [stamped for stamped in list.__iter__(stored) if stamped[1] > born] or None

    def oldest(self, stored: list[Stamped]) -> int:
        return min(touched for _, touched in list.__iter__(stored))


class MapSweep(Sweep):
    """Sweeps the entries of a map."""

    __slots__ = ()

    def __call__(self, stored: dict[Any, Stamped], now: int) -> dict[Any, Stamped] | None:
        born = now - self.ttl
        return {key: stamped for key, stamped in unnoted_items(stored) if stamped[1] > born} or None

    def oldest(self, stored: dict[Any, Stamped]) -> int:
        oldest: int = min(touched for _, (_, touched) in unnoted_items(stored))
        return oldest


class NamespaceSweep(Sweep):
    """Sweeps a value, list or map per namespace."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Sweep) -> None:
        super().__init__(inner.ttl)
        self._inner = inner

    def __call__(self, stored: dict[Any, Any], now: int) -> dict[Any, Any] | None:
        kept = {}
        for namespace, value in stored.items():
            left = self._inner(value, now)
            if left is not None:  # an unchanged value stays the same object: it may be chunked
                kept[namespace] = value if len(left) == len(value) else left
        return kept or None

    def oldest(self, stored: dict[Any, Any]) -> int:
        return min(map(self._inner.oldest, stored.values()))
