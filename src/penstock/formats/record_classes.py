"""Dataclasses, named tuples and pydantic models as schemas: converts plain values to objects and back.

``reader(cls)`` compiles a function once; the function checks all fields. A missing field takes its default.
"""

from __future__ import annotations

import base64
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any
from uuid import UUID

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.types import Row

__all__ = ["RecordClassError", "plain", "reader", "record_fields", "text_reader"]

Read = Callable[[Any], Any]
_MISSING: Any = object()
_NO_DEFAULT = type(dataclasses.MISSING)  # a class pickled by value has a copy of MISSING
_CLASS = "a dataclass, a NamedTuple, a TypedDict or a pydantic model"


class RecordClassError(ValueError):
    """Raised for a value that does not fit a field. The message names the field."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    annotation: Any
    default: Callable[[], Any] | None


def record_fields(cls: Any) -> dict[str, Any]:
    """Return the fields of a class and their types.

    >>> class Point(typing.NamedTuple):
    ...     x: int
    ...     y: int = 0
    >>> record_fields(Point)
    {'x': <class 'int'>, 'y': <class 'int'>}
    """
    return {name: field.annotation for name, field in _fields(cls).items()}


def _fields(cls: Any) -> dict[str, _Field]:
    if not isinstance(cls, type):
        raise InvalidProgramError(f"a schema must be {_CLASS}, got {shorten(cls)}")
    models = getattr(cls, "model_fields", None)
    if models is not None:
        return {name: _Field(field.annotation, None) for name, field in models.items()}
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise InvalidProgramError(f"the annotations of {cls.__name__} cannot be read: {error}") from None
    if dataclasses.is_dataclass(cls):
        return {
            field.name: _Field(hints[field.name], _default(field)) for field in dataclasses.fields(cls) if field.init
        }
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults: dict[str, Any] = cls._field_defaults  # type: ignore[attr-defined]
        names: tuple[str, ...] = cls._fields
        return {
            name: _Field(hints.get(name, Any), partial(_same, defaults[name]) if name in defaults else None)
            for name in names
        }
    if typing.is_typeddict(cls):
        return {name: _Field(hint, None) for name, hint in hints.items()}
    raise InvalidProgramError(f"a schema must be {_CLASS}, but {cls.__name__} is not")


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if not isinstance(field.default, _NO_DEFAULT):
        return partial(_same, field.default)
    factory = typing.cast("Any", field.default_factory)
    return None if isinstance(factory, _NO_DEFAULT) else factory


def _same(value: Any) -> Any:
    return value


def reader(annotation: Any) -> Read:
    """Return the function that converts a JSON value to the type.

    >>> reader(dict[str, list[datetime]])({"a": ["2026-05-01"]})
    {'a': [datetime.datetime(2026, 5, 1, 0, 0)]}
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return partial(_read_union, [reader(each) for each in arguments], annotation)
    if origin is typing.Literal:
        return partial(_read_literal, arguments)
    if origin is typing.Annotated:
        return reader(arguments[0])
    kind = origin or annotation
    if kind in _COLLECTIONS:
        return _collection_reader(kind, arguments)
    if kind in _PLAIN:
        return partial(_read_plain, kind)
    if kind in _FROM_TEXT:
        return partial(_read_text, kind, _FROM_TEXT[kind])
    if kind in (Any, object) or not isinstance(kind, type):
        return _same  # Any, a type variable
    if kind is type(None):
        return _read_none
    if issubclass(kind, Enum):
        return partial(_read_enum, kind)
    if hasattr(kind, "model_validate"):
        return partial(_read_model, kind)
    return _record_reader(kind)


def _collection_reader(kind: Any, arguments: tuple[Any, ...]) -> Read:
    if kind in (dict, Mapping):
        return partial(_read_dict, reader(arguments[1]) if len(arguments) == 2 else _same)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return partial(_read_tuple, [reader(each) for each in arguments])
    made = list if kind in (typing.get_origin(typing.Sequence[Any]), typing.get_origin(typing.Iterable[Any])) else kind
    return partial(_read_items, made, reader(arguments[0]) if arguments else _same)


def _record_reader(cls: type) -> Read:
    fields = _fields(cls)
    parts = [(name, reader(field.annotation), field.default) for name, field in fields.items()]
    return partial(_read_record, cls, parts)


def _read_record(cls: Any, parts: list[tuple[str, Read, Callable[[], Any] | None]], value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise RecordClassError(f"{shorten(value)} is not an object with the fields of {cls.__name__}")
    read: dict[str, Any] = {}
    for name, read_part, default in parts:
        part = value.get(name, _MISSING)
        if part is _MISSING:
            if default is None:
                raise RecordClassError(f"the field '{name}' of {cls.__name__} is missing")
            read[name] = default()
        else:
            try:
                read[name] = read_part(part)
            except ValueError as error:
                raise RecordClassError(f"field '{name}' of {cls.__name__}: {error}") from None
    return cls(**read)


def _read_model(cls: Any, value: Any) -> Any:
    return cls.model_validate(value)


def _read_plain(kind: type, value: Any) -> Any:
    if type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return float(value)
    raise RecordClassError(f"{shorten(value)} is not of type {kind.__name__}")


def _read_text(kind: type, parse: Read, value: Any) -> Any:
    try:
        return parse(value)
    except (ArithmeticError, TypeError, ValueError):
        raise RecordClassError(f"{shorten(value)} is not of type {kind.__name__}") from None


def _read_none(value: Any) -> None:
    if value is not None:
        raise RecordClassError(f"{shorten(value)} is not None")


def _read_enum(kind: type[Enum], value: Any) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise RecordClassError(f"{shorten(value)} is not of type {kind.__name__}") from None


def _read_literal(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        raise RecordClassError(f"{shorten(value)} is not one of {', '.join(map(repr, choices))}")
    return value


def _read_union(readers: list[Read], annotation: Any, value: Any) -> Any:
    reasons = []
    for read in readers:
        try:
            return read(value)
        except ValueError as error:
            reasons.append(str(error))
    raise RecordClassError("; ".join(reason for reason in reasons if not reason.endswith("is not None")))


def _read_dict(read: Read, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise RecordClassError(f"{shorten(value)} is not an object")
    return {key: read(part) for key, part in value.items()}


def _read_items(made: Any, read: Read, value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise RecordClassError(f"{shorten(value)} is not a list")
    return made(map(read, value))


def _read_tuple(readers: list[Read], value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or len(value) != len(readers):
        raise RecordClassError(f"{shorten(value)} is not a list of {len(readers)} values")
    return tuple(read(part) for read, part in zip(readers, value, strict=True))


def _datetime(value: Any) -> datetime:
    if isinstance(value, (int, float)):  # ms since the epoch, as Kafka and Flink write it
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(value)


_PLAIN = (bool, int, float, str)
_COLLECTIONS = (
    *(list, tuple, set, frozenset, dict, Mapping),
    *(typing.get_origin(typing.Sequence[Any]), typing.get_origin(typing.Iterable[Any])),
)
_FROM_TEXT: dict[type, Read] = {
    datetime: _datetime,
    date: date.fromisoformat,
    time: time.fromisoformat,
    Decimal: lambda value: Decimal(str(value)),
    UUID: UUID,
    bytes: lambda value: base64.b64decode(value, validate=True),
}


def text_reader(annotation: Any) -> Read:
    """Return the function that converts text, as in CSV, to the type. Empty text is None if the type allows it.

    >>> text_reader(int)("7"), text_reader(float | None)(""), text_reader(bool)("true")
    (7, None, True)
    """
    alternatives = typing.get_args(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType) and type(None) in alternatives:
        others = [each for each in alternatives if each is not type(None)]
        inner = [text_reader(each) for each in others]
        return partial(_read_optional_text, partial(_read_union, inner, annotation))
    if annotation in _PARSED:
        return partial(_read_text, annotation, _PARSED[annotation])
    return reader(annotation)


def _read_optional_text(read: Read, text: str) -> Any:
    return None if text == "" else read(text)


def _bool(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError from None


_PARSED: dict[Any, Read] = {bool: _bool, int: int, float: float}


def plain(value: Any) -> Any:
    """Convert a value to JSON's types: objects to dicts, times to ISO format.

    >>> plain({"at": date(2026, 5, 1), "price": Decimal("1.50"), "tags": {"a"}})
    {'at': '2026-05-01', 'price': '1.50', 'tags': ['a']}
    """
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Row):
        names = value.get_field_names()
        return [plain(part) for part in value] if names is None else dict(zip(names, map(plain, value), strict=True))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(part) for part in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, (Decimal, UUID)) else value
