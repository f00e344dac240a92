"""Keys that Python cannot hash: lists, dicts, sets, bytearrays, and tuples and rows that contain them.

PyFlink serializes keys, so any value can be a key. Here keys are looked up in dicts, so an unhashable key is replaced
by an equal one of a hashable subclass. Most key selectors return hashable keys, and a check of every record is
expensive. Therefore only the keys of the first records are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from penstock.common.types import Row, make_row
from penstock.runtime.records.batch import KeySelect, Values

_FIRST_KEYS = 16
_SELECTORS = ("key_selector", "key_selector2")

T = TypeVar("T")


class ListKey(list[T]):
    """A list as a key."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class DictKey(dict[Any, T]):
    """A dict as a key."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class SetKey(set[T]):
    """A set as a key. It equals the frozenset of its elements."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return repr(set(self))


class BytearrayKey(bytearray):
    """A bytearray as a key. It equals its bytes."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(bytes(self))

    def __repr__(self) -> str:
        return repr(bytearray(self))


def hashable(key: Any) -> Any:
    """Return an equal key that is hashable, or raise a TypeError if there is none.

    >>> key = hashable([1, {"a": [2]}])
    >>> key, key == [1, {"a": [2]}], isinstance(hash(key), int), hashable("plain")
    ([1, {'a': [2]}], True, True, 'plain')
    """
    try:
        hash(key)
    except TypeError:
        return _replaced(key)
    return key


def _replaced(key: Any) -> Any:
    if isinstance(key, tuple):
        parts = map(hashable, key)
        return key._make(parts) if hasattr(key, "_make") else tuple(parts)
    if isinstance(key, Row):
        return make_row(key._fields, map(hashable, key._values), key._row_kind)
    if isinstance(key, list):
        return ListKey(map(hashable, key))
    if isinstance(key, dict):
        return DictKey({name: hashable(value) for name, value in key.items()})
    if isinstance(key, set):
        return SetKey(key)
    if isinstance(key, bytearray):
        return BytearrayKey(key)
    raise TypeError(f"unhashable type: '{type(key).__name__}'")


class HashableKeys:
    """A key selector that returns only hashable keys."""

    __slots__ = ("_select",)

    def __init__(self, select: KeySelect) -> None:
        self._select = select

    def __call__(self, value: Any) -> Any:
        """Return the key of a record."""
        return hashable(self._select(value))


class Keyed(Protocol):
    """An operator with a key selector for each keyed input."""

    def key_selectors(self) -> Sequence[KeySelect | None]:
        """Return one key selector per input."""
        ...


def make_keys_hashable(operator: Keyed, input_index: int, values: Values) -> None:
    """Wrap the operator's key selector for an input if one of the first records has an unhashable key."""
    selectors = operator.key_selectors()
    select = selectors[input_index] if input_index < len(selectors) else None
    if select is not None and returns_unhashable(select, values):
        setattr(operator, _SELECTORS[input_index], HashableKeys(select))


def returns_unhashable(select: KeySelect, values: Values) -> bool:
    """Whether a key of the first records is unhashable. The loop over all records handles errors of the selector."""
    for value in values[:_FIRST_KEYS]:
        try:
            key = select(value)
        except Exception:
            return False
        try:
            hash(key)
        except TypeError:
            return True
    return False
