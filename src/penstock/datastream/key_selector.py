"""Converts a user's key to a plain function of the record (rule 5.8)."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from operator import attrgetter, itemgetter
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.core.functions import KeySelector
from penstock.core.return_values import check_arity, check_returns
from penstock.runtime.operators.fields import FieldPath, positional

__all__ = ["FieldKey", "SelectorKey", "key_function"]

KeyFunction = Callable[[Any], Any]


class FieldKey:
    """Reads a field by name or path from any kind of record.

    It tries the getter first. The slower path also supports dicts, and names like ``f0`` on records without names.

    >>> key = FieldKey("id")
    >>> from types import SimpleNamespace
    >>> key({"id": 7}), key(SimpleNamespace(id=8))
    (7, 8)
    """

    __slots__ = ("_getter", "_path")

    def __init__(self, name: str, getter: KeyFunction | None = None) -> None:
        self._path = FieldPath(name)
        self._getter = getter or attrgetter(name)

    def __call__(self, value: Any) -> Any:
        """Return the key of a record."""
        try:
            return self._getter(value)
        except (AttributeError, KeyError, IndexError, TypeError):
            return self._path.get(value)


class PathKey:
    """Reads a field that only a path can find: positional names and wildcards."""

    __slots__ = ("_path",)

    def __init__(self, path: FieldPath) -> None:
        self._path = path

    def __call__(self, value: Any) -> Any:
        """Return the key of a record."""
        return self._path.get(value)


class CompositeKey:
    """Combines several keys into one tuple."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[KeyFunction]) -> None:
        self._parts = tuple(parts)

    def __call__(self, value: Any) -> Any:
        """Return the key of a record."""
        return tuple([part(value) for part in self._parts])


class SelectorKey:
    """A KeySelector object as a function."""

    __slots__ = ("__dict__", "selector")

    def __init__(self, selector: KeySelector) -> None:
        self.selector = selector

    def __call__(self, value: Any) -> Any:
        """Return the key of a record."""
        return self.selector.get_key(value)


def key_function(*keys: Any, record_type: TypeInformation | None = None) -> KeyFunction:
    """Return the plain function for a key: a callable, a KeySelector, a position, a name, or several of these.

    >>> key_function(lambda reading: reading.id)  # doctest: +ELLIPSIS
    <function <lambda> at ...>
    >>> key_function(0)(("a", 1)), key_function(0, 1)(("a", 1)), key_function(["f1", "f0"])(("a", 1))
    ('a', ('a', 1), (1, 'a'))
    >>> key_function("address.zip")({"address": {"zip": 1234}})
    1234
    """
    if len(keys) == 1 and isinstance(keys[0], (list, tuple)):
        keys = tuple(keys[0])
    if not keys:
        raise InvalidProgramError("key_by needs a key: a function, a KeySelector, a field position or a field name")
    if all(is_int(key) for key in keys):
        for key in keys:
            FieldPath(key)  # rejects negative positions
        return itemgetter(*keys)
    if len(keys) == 1:
        return _single(keys[0], record_type)
    return CompositeKey([_single(key, record_type) for key in keys])


def _single(key: Any, record_type: TypeInformation | None) -> KeyFunction:
    check_returns(key, "get_key", "the key of the record")
    check_arity(key, "key_by" if isfunction(key) else "get_key", "the record")
    if isinstance(key, KeySelector):
        return SelectorKey(key)
    if is_int(key):
        return itemgetter(key)
    if isinstance(key, str):
        return _by_name(key, record_type)
    get_key = getattr(key, "get_key", None)
    if get_key is not None:
        return SelectorKey(key)
    if callable(key):
        function: KeyFunction = key
        return function
    raise InvalidProgramError(
        f"a key must be a function, a KeySelector, a field position or a field name, got {shorten(key)}"
    )


def _by_name(name: str, record_type: TypeInformation | None) -> KeyFunction:
    path = FieldPath(name)
    if isinstance(record_type, RowTypeInfo) and len(path.steps) == 1:
        position = record_type.get_field_index(name)
        if position >= 0:
            return FieldKey(name, itemgetter(position))
    position_of_name = positional(name) if len(path.steps) == 1 else None
    if position_of_name is not None:
        if isinstance(record_type, TupleTypeInfo):
            return itemgetter(position_of_name)
        return PathKey(path)
    if any(_only_by_path(str(step)) for step in path.steps):
        return PathKey(path)
    return FieldKey(name)


def _only_by_path(step: str) -> bool:
    """Whether a step is a wildcard, a positional name or a method name of records (a dict may have a key ``items``)."""
    is_method = any(hasattr(kind, step) for kind in (dict, tuple, list, Row))
    return step in ("*", "_") or is_method or positional(step) is not None
