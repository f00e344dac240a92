"""Converts values of text formats (JSON, CSV) to declared types and back, with one function per type."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.basic import INTEGER_BITS, BasicType, BasicTypeInfo, InstantTypeInfo
from penstock.common.typeinfo.collections import ElementsTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo
from penstock.common.typeinfo.composite import TupleTypeInfo
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.common.typeinfo.java_text import shortest_double
from penstock.common.typeinfo.single import single
from penstock.common.typeinfo.temporal import (
    DateTypeInfo,
    LocalTimeTypeInfo,
    LocalZonedTimestampTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.types import Row, RowKind, make_row, share_names

Convert = Callable[[Any], Any]

POISON = (ValueError, TypeError, OverflowError, RecursionError)
"""The errors that malformed text may raise."""

_INTEGERS = {BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.BIG_INT}


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise ValueError(f"expected an integer, got {value!r}")  # noqa: TRY004 - bad data, not a bad call
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"expected an integer, got {value!r}")
        return int(value)
    return int(as_digits(value))


def as_digits(text: Any) -> Any:
    """Check the text of a number. Python would also accept ``1_000`` and digits of other scripts."""
    if isinstance(text, str) and ("_" in text or not text.isascii()):
        raise ValueError(f"expected a number, got {text!r}")
    return text


def _float(value: Any) -> float:
    return float(as_digits(value))


def _fitting(kind: BasicTypeInfo, convert: Convert) -> Convert:
    """Reject values that do not fit the type here, so that they are handled like other broken messages."""

    def read(value: Any) -> Any:
        converted = convert(value)
        problem = kind.validate(converted)
        if problem is not None:
            raise ValueError(problem)
        return converted

    return read


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("true", "1"):
        return True
    if text in ("false", "0"):
        return False
    raise ValueError(f"expected true or false, got {value!r}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _decimal(value: Any) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"expected a decimal number, got {value!r}") from None


def _date(value: Any) -> date:
    return date.fromisoformat(value)


def _time(value: Any) -> time:
    return time.fromisoformat(value.rstrip("Z"))


def _timestamp(value: Any) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed if parsed.tzinfo is None else parsed.astimezone(UTC).replace(tzinfo=None)


def _zoned_timestamp(value: Any) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _instant(value: Any) -> Instant:
    return Instant.from_datetime(datetime.fromisoformat(value))


def reader_of(kind: TypeInformation) -> Convert:
    """Return a converter from a JSON value or text to the type. It raises ValueError if the value does not fit."""
    if isinstance(kind, InstantTypeInfo):
        return nullable(_instant)
    if isinstance(kind, BasicTypeInfo):
        return nullable(_basic_reader(kind))
    if isinstance(kind, RowTypeInfo):
        return nullable(row_reader(kind, fail_on_missing_field=False))
    if isinstance(kind, TupleTypeInfo):
        return nullable(_tuple_reader([reader_of(part) for part in kind.get_field_types()]))
    if isinstance(kind, MapTypeInfo):
        keys, values = reader_of(kind.key_type), reader_of(kind.value_type)
        return nullable(lambda value: {keys(k): values(v) for k, v in _mapping(value).items()})
    if is_bytes(kind):
        return nullable(lambda value: base64.b64decode(value, validate=True))
    if isinstance(kind, ElementsTypeInfo):
        element = reader_of(kind.elem_type)
        return nullable(lambda value: [element(part) for part in _sequence(value)])
    for temporal, convert in _TEMPORAL_READERS.items():
        if isinstance(kind, temporal):
            return nullable(convert)
    if isinstance(kind, LocalZonedTimestampTypeInfo):
        return nullable(_zoned_timestamp)
    if isinstance(kind, LocalTimeTypeInfo):
        return nullable((_date, _time, _timestamp)[kind.time_type.value])
    return lambda value: value


_TEMPORAL_READERS: dict[type, Convert] = {DateTypeInfo: _date, TimeTypeInfo: _time, TimestampTypeInfo: _timestamp}


def _basic_reader(kind: BasicTypeInfo) -> Convert:
    basic_type = kind.basic_type
    if basic_type in _INTEGERS:
        return _fitting(kind, _integer)
    if basic_type is BasicType.FLOAT:
        return lambda value: single(_float(value))
    if basic_type is BasicType.DOUBLE:
        return _float
    if basic_type is BasicType.BOOLEAN:
        return _boolean
    if isinstance(kind, DecimalTypeInfo):
        return lambda value: kind.fit(_decimal(value))
    if basic_type is BasicType.BIG_DEC:
        return _decimal
    return _fitting(kind, _text) if basic_type is BasicType.CHAR else _text


def is_bytes(kind: TypeInformation) -> bool:
    """Whether a type is the type of ``bytes``."""
    return (
        isinstance(kind, PrimitiveArrayTypeInfo)
        and isinstance(kind.elem_type, BasicTypeInfo)
        and kind.elem_type.basic_type is BasicType.BYTE
    )


def nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object, got {type(value).__name__}")  # noqa: TRY004 - same
    return value


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected an array, got {type(value).__name__}")  # noqa: TRY004 - same
    return value


def _tuple_reader(parts: list[Convert]) -> Convert:
    def read(value: Any) -> tuple[Any, ...]:
        found = _sequence(value)
        if len(found) != len(parts):
            raise ValueError(f"expected an array of {len(parts)} values, got {len(found)}")
        return tuple(part(element) for part, element in zip(parts, found, strict=True))

    return read


def row_reader(kind: RowTypeInfo, *, fail_on_missing_field: bool) -> Convert:
    """Return a converter from a mapping to a Row of the type."""
    names = share_names(kind.get_field_names())
    fields = [(name, reader_of(part)) for name, part in zip(names, kind.get_field_types(), strict=True)]

    quick = [
        (name, _quick_reader(part, read)) for (name, read), part in zip(fields, kind.get_field_types(), strict=True)
    ]
    insert = RowKind.INSERT

    def read(value: Any) -> Row:
        """Convert all fields at once. If one is wrong, convert them one by one to find it."""
        if type(value) is dict and (not fail_on_missing_field or len(value) >= len(names)):
            try:
                get = value.get
                row = make_row(names, [convert(get(name)) for name, convert in quick], insert)
            except POISON:
                pass
            else:
                if not fail_on_missing_field or all(name in value for name in names):
                    return row
        return read_carefully(value)

    def read_carefully(value: Any) -> Row:
        found = _mapping(value)
        values: list[Any] = []
        for name, convert in fields:
            if name not in found and fail_on_missing_field:
                raise ValueError(f"field {name!r} is missing")
            try:
                values.append(convert(found.get(name)))
            except POISON as error:
                raise ValueError(f"field {name!r}: {error}") from None
        return make_row(names, values, insert)

    return read


def _quick_reader(kind: TypeInformation, read: Convert) -> Convert:
    """Return a reader that costs only one call for JSON's own types."""
    wanted: type | None = None
    if isinstance(kind, BasicTypeInfo) and not isinstance(kind, InstantTypeInfo):
        if kind.basic_type in _INTEGERS:
            bits = INTEGER_BITS.get(kind.basic_type)
            if bits is not None:
                low, high = -(1 << bits - 1), (1 << bits - 1) - 1
                return lambda value: value if type(value) is int and low <= value <= high else read(value)
            wanted = int
        elif kind.basic_type is BasicType.DOUBLE:
            wanted = float
        elif kind.basic_type is BasicType.STRING:
            wanted = str
    if wanted is None:
        return read
    return lambda value: value if type(value) is wanted else read(value)


def writer_of(kind: TypeInformation | None) -> Convert:
    """Return a converter from a value of the type to a JSON value."""
    if isinstance(kind, RowTypeInfo):
        return row_writer(kind)
    if isinstance(kind, MapTypeInfo):
        values = writer_of(kind.value_type)
        return nullable(lambda value: {_key(k): values(v) for k, v in value.items()})
    if isinstance(kind, ElementsTypeInfo) and not is_bytes(kind):
        element = writer_of(kind.elem_type)
        return nullable(lambda value: [element(part) for part in value])
    if isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.FLOAT:
        return nullable(lambda value: shortest_double(single(value)))
    return plain_value


def row_writer(kind: RowTypeInfo) -> Convert:
    """Return a converter from a row of the type to a mapping."""
    writers = [
        (name, writer_of(part)) for name, part in zip(kind.get_field_names(), kind.get_field_types(), strict=True)
    ]

    def write(value: Any) -> Any:
        if value is None:
            return None
        fields = kind._fields(value)
        if fields is None:
            raise InvalidProgramError(str(kind.validate(value)))
        return {name: convert(field) for (name, convert), field in zip(writers, fields, strict=True)}

    return write


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _text(plain_value(value))


def plain_value(value: Any) -> Any:
    """Convert a value to JSON's types, whatever its declared type is."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Row):
        if value._fields is None:
            return [plain_value(part) for part in value]
        return {name: plain_value(part) for name, part in zip(value._fields, value._values, strict=True)}
    if isinstance(value, Mapping):
        return {_key(name): plain_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(part) for part in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Instant):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value)
