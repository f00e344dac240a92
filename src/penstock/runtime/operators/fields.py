"""Fields of records of any kind, by position or by name (rule 5.8).

A field expression is a position (``0``), a name (``"id"``), one of Flink's positional names (``"f2"`` and ``"2"`` for
the third field, ``"_1"`` for the first), a path of these (``"address.zip"``), or ends in a wildcard (``"birthday._"``,
``"*"``).
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.types import Row

Field = int | str
_SCALARS = (int, float, complex, str, bytes, bool, type(None))
_WILDCARDS = ("_", "*")
_POSITIONAL = re.compile(r"f(\d+)|_(\d+)|(\d+)")


class FieldPath:
    """A parsed field expression: reads the field of a record, or copies the record with another value in that field.

    >>> FieldPath("address.zip").get({"address": {"zip": 1234}})
    1234
    >>> FieldPath("_1").get(("a", "b")), FieldPath("f1").get(("a", "b")), FieldPath(1).get(("a", "b"))
    ('a', 'b', 'b')
    >>> FieldPath(1).replaced(("a", 1), 5)
    ('a', 5)
    """

    __slots__ = ("steps", "text")

    def __init__(self, expression: Field) -> None:
        if isinstance(expression, bool) or not isinstance(expression, (int, str)):
            raise InvalidProgramError(f"a field must be a position (int) or a name (str), got {shorten(expression)}")
        if isinstance(expression, int) and expression < 0:
            raise InvalidProgramError(f"a field position must not be negative, got {expression}")
        self.text = str(expression)
        self.steps: tuple[Field, ...] = (expression,) if isinstance(expression, int) else tuple(expression.split("."))
        if "" in self.steps:
            raise InvalidProgramError(f"the field expression {expression!r} has an empty part")
        if any(step in _WILDCARDS for step in self.steps[:-1]):
            raise InvalidProgramError(f"a wildcard must be the last part of the field expression {expression!r}")

    def get(self, record: Any) -> Any:
        """Return the field of a record."""
        for step in self.steps:
            record = all_fields(record) if step in _WILDCARDS else read_field(record, step)
        return record

    def replaced(self, record: Any, value: Any) -> Any:
        """Return a copy of the record with another value in this field."""
        return _replaced(record, self.steps, value)


def positional(name: str) -> int | None:
    """Return the position that a name stands for in records without names.

    >>> positional("f2"), positional("_1"), positional("2"), positional("id")
    (2, 0, 2, None)
    """
    match = _POSITIONAL.fullmatch(name)
    if match is None:
        return None
    java, scala, digits = match.groups()
    if scala is not None:
        return int(scala) - 1 if int(scala) > 0 else None
    return int(java if java is not None else digits)


def read_field(record: Any, field: Field) -> Any:
    """Return one field of one record."""
    if isinstance(field, int):
        return _at(record, field)
    if isinstance(record, Mapping):
        if field in record:
            return record[field]
    elif isinstance(record, Row):
        names = record.get_field_names()
        if names is not None and field in names:
            return record[field]
    elif hasattr(record, field) and not (isinstance(record, (tuple, list)) and not hasattr(record, "_fields")):
        return getattr(record, field)
    position = positional(field)
    if position is None:
        raise _no_field(record, field)
    return _at(record, position)


def _no_field(record: Any, field: str) -> LookupError:
    names = _names(record)
    fields = f", its fields are {', '.join(map(str, names))}" if names else ""
    return LookupError(f"the record {shorten(record)} has no field {field!r}{fields}")


def _names(record: Any) -> list[Any]:
    """The names of a record's fields, as far as they are known."""
    if isinstance(record, Mapping):
        return list(record)
    if isinstance(record, Row):
        return list(record.get_field_names() or ())
    if dataclasses.is_dataclass(record):
        return [field.name for field in dataclasses.fields(record)]
    return list(getattr(record, "_fields", ()) or getattr(type(record), "model_fields", ()))


def _at(record: Any, position: int) -> Any:
    if isinstance(record, (tuple, list, Row)):
        if position < len(record):
            return record[position]
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        fields = dataclasses.fields(record)
        if position < len(fields):
            return getattr(record, fields[position].name)
    elif isinstance(record, Mapping):
        if position in record:
            return record[position]
    elif position == 0:
        return record  # a plain value is its own first field
    raise LookupError(f"the record {shorten(record)} has no field at position {position}")


def all_fields(record: Any) -> Any:
    """Return all fields of a record as one hashable value, which is what a wildcard selects."""
    if isinstance(record, (tuple, list, Row)):
        return tuple(all_fields(part) for part in record)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return tuple(all_fields(getattr(record, field.name)) for field in dataclasses.fields(record))
    if isinstance(record, Mapping):
        return tuple((key, all_fields(record[key])) for key in sorted(record, key=repr))
    return record


def _replaced(record: Any, steps: tuple[Field, ...], value: Any) -> Any:
    if not steps:
        return value
    field, rest = steps[0], steps[1:]
    if rest:
        value = _replaced(read_field(record, field), rest, value)
    if isinstance(record, (list, Row)) or (isinstance(record, tuple) and not hasattr(record, "_replace")):
        return _with_position(record, _position_in(record, field), value)
    if isinstance(record, tuple):
        return type(record)._make(_with_position(list(record), _position_in(record, field), value))  # type: ignore[attr-defined]
    if isinstance(record, Mapping):
        return {**record, field: value}
    if isinstance(record, _SCALARS):
        return value
    return _with_attribute(record, field, value)


def _position_in(record: Any, field: Field) -> int:
    if isinstance(field, int):
        return field
    names = record.get_field_names() if isinstance(record, Row) else getattr(record, "_fields", None)
    if names is not None and field in names:
        return int(list(names).index(field))
    position = positional(field)
    if position is None:
        raise _no_field(record, field)
    return position


def _with_position(record: Any, position: int, value: Any) -> Any:
    if isinstance(record, tuple):
        return (*record[:position], value, *record[position + 1 :])
    twin = copy.copy(record) if isinstance(record, list) else _copy_row(record)
    twin[position] = value
    return twin


def _copy_row(row: Row) -> Row:
    twin = Row.of_kind(row.get_row_kind(), *row)
    names = row.get_field_names()
    if names is not None:
        twin.set_field_names(names)
    return twin


def _with_attribute(record: Any, field: Field, value: Any) -> Any:
    if isinstance(field, int):
        if not dataclasses.is_dataclass(record):
            if field == 0:
                return value
            raise LookupError(f"the record {shorten(record)} has no field at position {field}")
        field = dataclasses.fields(record)[field].name
    twin = copy.copy(record)
    object.__setattr__(twin, field, value)  # also works for frozen dataclasses; the twin is not shared
    return twin
