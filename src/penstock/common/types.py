"""Rows: records with positions, optional field names and a change kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, overload

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """The kind of a row in a changelog."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def short_string(self) -> str:
        """Return ``+I``, ``-U``, ``+U`` or ``-D``, as Flink prints it."""
        return ("+I", "-U", "+U", "-D")[self.value]

    def __str__(self) -> str:
        return self.short_string


_INSERT = RowKind.INSERT
_KINDS = tuple(RowKind)

# Rows of one schema share one tuple of names, so that pickle writes the names once per buffer, not per row.
_shared_names: dict[tuple[str, ...], tuple[str, ...]] = {}
_MAX_SHARED_NAMES = 4096


def share_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tuple that all rows with these field names share."""
    key = tuple(names)
    shared = _shared_names.get(key)
    if shared is not None:
        return shared
    if len(_shared_names) < _MAX_SHARED_NAMES:
        _shared_names[key] = key
    return key


class Row:
    """A record whose fields have positions and, optionally, names.

    >>> row = Row(name="Alice", age=11)
    >>> row
    Row(name='Alice', age=11)
    >>> row.name, row["age"], row[0]
    ('Alice', 11, 'Alice')

    A row of names is a template for rows with these names:

    >>> Person = Row("name", "age")
    >>> Person("Bob", 12)
    Row(name='Bob', age=12)
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row takes either positional or named fields, not both")
            self._fields = share_names(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Create a row with a change kind.

        >>> Row.of_kind(RowKind.DELETE, 1, 2).get_row_kind().name
        'DELETE'
        """
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        self._row_kind = row_kind

    def get_field_names(self) -> list[str] | None:
        """Return the field names, or ``None`` for a row without names."""
        return None if self._fields is None else list(self._fields)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        self._fields = share_names(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values of the named fields, in the given order.

        >>> Row(a=1, b=2).get_fields_by_names(["b", "a"])
        [2, 1]
        """
        return [self._values[self._index(name)] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the named fields as a dict. ``recursive`` also converts nested rows (in lists and dicts too).

        >>> Row(key=1, value=Row(a=2)).as_dict(True)
        {'key': 1, 'value': {'a': 2}}
        """
        if self._fields is None:
            raise TypeError(
                "a Row without field names cannot be converted to a dict: name its fields with set_field_names"
            )
        values = map(_rows_to_dicts, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def _index(self, name: object) -> int:
        if self._fields is None:
            raise KeyError(f"the Row has no field {name!r}, because it has no field names")
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(f"the Row has no field {name!r}, its fields are {', '.join(self._fields)}") from None

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} takes {len(self._values)} values, got {len(args)}")
        return make_row(share_names(self._values), args, self._row_kind)

    def __contains__(self, item: object) -> bool:
        return item in self._values or (self._fields is not None and item in self._fields)

    @overload
    def __getitem__(self, item: slice) -> list[Any]: ...
    @overload
    def __getitem__(self, item: int | str) -> Any: ...
    def __getitem__(self, item: int | str | slice) -> Any:
        if type(item) is int:  # by far the most common case
            return self._values[item]
        if isinstance(item, str):
            return self._values[self._index(item)]
        return self._values[item]

    def __setitem__(self, key: int | str | slice, value: Any) -> None:
        if isinstance(key, str):
            self._values[self._index(key)] = value
        else:
            self._values[key] = value

    def __getattr__(self, item: str) -> Any:
        # pickle and copy look up underscored names, also on half-built rows: these are never fields.
        if item[0] != "_" and self._fields is not None and item in self._fields:
            return self._values[self._fields.index(item)]
        raise AttributeError(f"Row has no attribute or field {item!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._values == other._values and self._fields == other._fields and self._row_kind is other._row_kind

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._row_kind is not _INSERT:
            return _unpickle_kind, (self._fields, self._values, self._row_kind.value)
        if self._fields is None:
            return Row, tuple(self._values)
        return _unpickle_named, (self._fields, self._values)

    def __copy__(self) -> Row:
        # Going through __reduce__ would share the list of values.
        return make_row(self._fields, self._values, self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self._values, strict=False))})"


_new_row = Row.__new__


def make_row(names: tuple[str, ...] | None, values: Iterable[Any], kind: RowKind) -> Row:
    """Make a row without the checks of its constructor."""
    row = _new_row(Row)
    row._fields = names
    row._values = list(values)
    row._row_kind = kind
    return row


def _unpickle_named(names: tuple[str, ...], values: list[Any]) -> Row:
    row = _new_row(Row)
    row._fields = _shared_names.get(names) or share_names(names)
    row._values = values
    row._row_kind = _INSERT
    return row


def _unpickle_kind(names: tuple[str, ...] | None, values: list[Any], kind: int) -> Row:
    return make_row(None if names is None else share_names(names), values, _KINDS[kind])


def _rows_to_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_rows_to_dicts(element) for element in value]
    if isinstance(value, dict):
        return {key: _rows_to_dicts(element) for key, element in value.items()}
    return value
