"""Collections in the accumulators of aggregate functions (T103)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["DataView", "ListView", "MapView"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """The base class of collections in an accumulator."""

    __slots__ = ()

    @abstractmethod
    def clear(self) -> None:
        """Remove all elements."""


class ListView(DataView, Generic[T]):
    """A list.

    >>> view = ListView()
    >>> view.add(1)
    >>> view.add_all([2, 3])
    >>> list(view.get())
    [1, 2, 3]
    """

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[T] = []

    def get(self) -> Iterable[T]:
        """Return all values in order."""
        return iter(self._items)

    def add(self, value: T) -> None:
        """Append a value."""
        self._items.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Append several values."""
        self._items.extend(values)

    def clear(self) -> None:
        """Remove all values."""
        self._items.clear()

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._items == other._items

    def __hash__(self) -> int:
        return hash(tuple(self._items))

    def __reduce__(self) -> tuple[Any, ...]:
        return _list_view, (self._items,)


class MapView(DataView, Generic[K, V]):
    """A map.

    >>> view = MapView()
    >>> view["a"] = 1
    >>> view.contains("a"), view["a"], list(view.items())
    (True, 1, [('a', 1)])
    """

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._items.get(key)

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._items[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of several keys."""
        self._items.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key, which must exist."""
        del self._items[key]

    def contains(self, key: K) -> bool:
        """Whether a key exists."""
        return key in self._items

    def items(self) -> Iterable[tuple[K, V]]:
        """Return all keys and values."""
        return self._items.items()

    def keys(self) -> Iterable[K]:
        """Return all keys."""
        return self._items.keys()

    def values(self) -> Iterable[V]:
        """Return all values."""
        return self._items.values()

    def is_empty(self) -> bool:
        """Whether there are no keys."""
        return not self._items

    def clear(self) -> None:
        """Remove all keys."""
        self._items.clear()

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._items[key] = value

    def __delitem__(self, key: K) -> None:
        del self._items[key]

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._items == other._items

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def __reduce__(self) -> tuple[Any, ...]:
        return _map_view, (self._items,)


def _list_view(items: list[Any]) -> ListView[Any]:
    view: ListView[Any] = ListView()
    view.add_all(items)
    return view


def _map_view(items: dict[Any, Any]) -> MapView[Any, Any]:
    view: MapView[Any, Any] = MapView()
    view.put_all(items)
    return view
