"""Converts values of SQL types to JSON and text, like Flink's formats."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.core.table.type_rules import is_approximate, is_character, is_integer
from penstock.core.table.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
)
from penstock.util.exceptions import ValidationException

Convert = Callable[[Any], Any]


def optional(convert: Convert) -> Convert:
    """Return a conversion that keeps None."""
    return lambda value: None if value is None else convert(value)


# -- reading ----------------------------------------------------------------------------------------------------------


def from_json(type_: DataType) -> Convert:
    """Return the conversion from a JSON value to the Python value of a type. NULL is None."""
    match type_:
        case ArrayType():
            element = from_json(type_.element_type)
            return optional(lambda value: [element(one) for one in value])
        case MapType():
            key, item = from_text(type_.key_type), from_json(type_.value_type)
            return optional(lambda value: {key(k): item(v) for k, v in value.items()})
        case MultisetType():
            key = from_text(type_.element_type)
            return optional(lambda value: {key(k): int(count) for k, count in value.items()})
        case RowType():
            fields = [(one.name, from_json(one.data_type)) for one in type_.fields]
            return optional(lambda value: [convert(value.get(name)) for name, convert in fields])
        case BooleanType():
            return optional(lambda value: value if isinstance(value, bool) else _boolean(str(value)))
        case _ if is_character(type_):
            return optional(lambda value: value if isinstance(value, str) else json.dumps(value, default=str))
        case _ if is_integer(type_):
            return optional(_integer)
        case _ if is_approximate(type_):
            return optional(float)
    text = from_text(type_)
    return optional(lambda value: text(value if isinstance(value, str) else str(value)))


def from_text(type_: DataType) -> Convert:
    """Return the conversion from text to the Python value of a type. None stays None."""
    match type_:
        case BooleanType():
            return optional(_boolean)
        case DecimalType():
            return optional(lambda text: Decimal(text.strip()))
        case DateType():
            return optional(lambda text: dt.date.fromisoformat(text.strip()))
        case TimeType():
            return optional(lambda text: dt.time.fromisoformat(text.strip().removesuffix("Z")))
        case TimestampType():
            return optional(lambda text: dt.datetime.fromisoformat(text.strip().removesuffix("Z")))
        case LocalZonedTimestampType():
            return optional(_instant)
        case BinaryType() | VarBinaryType():
            return optional(base64.b64decode)
        case _ if is_character(type_):
            return lambda text: text
        case _ if is_integer(type_):
            return optional(lambda text: int(text.strip()))
        case _ if is_approximate(type_):
            return optional(float)
    raise ValidationException(f"values of type {type_} cannot be read from text")


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"{text!r} is not a BOOLEAN")
    return word == "true"


def _integer(value: Any) -> int:
    return int(value.strip()) if isinstance(value, str) else int(value)


def _instant(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment


# -- writing ----------------------------------------------------------------------------------------------------------


def to_json(type_: DataType, *, iso: bool = False) -> Convert:
    """Return the conversion from the Python value of a type to JSON. ``iso`` writes times as ISO-8601."""
    match type_:
        case ArrayType():
            element = to_json(type_.element_type, iso=iso)
            return optional(lambda value: [element(one) for one in value])
        case MapType():
            key, item = to_text(type_.key_type, iso=iso), to_json(type_.value_type, iso=iso)
            return optional(lambda value: {key(k): item(v) for k, v in value.items()})
        case MultisetType():
            key = to_text(type_.element_type, iso=iso)
            return optional(lambda value: {key(k): count for k, count in value.items()})
        case RowType():
            fields = [(one.name, to_json(one.data_type, iso=iso)) for one in type_.fields]
            return optional(
                lambda value: {name: convert(one) for (name, convert), one in zip(fields, value, strict=True)}
            )
        case BooleanType():
            return lambda value: value
        case DecimalType():
            return optional(_number)
        case _ if is_character(type_) or is_integer(type_) or is_approximate(type_):
            return lambda value: value
    return to_text(type_, iso=iso)


def _number(value: Decimal) -> int | float:
    """Return the nearest JSON number with the same digits, because JSON has no decimals."""
    return int(value) if value == value.to_integral_value() else float(value)


def to_text(type_: DataType, *, iso: bool = False) -> Convert:
    """Return the conversion from the Python value of a type to text. None stays None."""
    separator = "T" if iso else " "
    match type_:
        case BooleanType():
            return optional(lambda value: "true" if value else "false")
        case TimestampType():
            return optional(lambda value: _moment(value, separator))
        case LocalZonedTimestampType():
            return optional(lambda value: _moment(value.astimezone(dt.UTC).replace(tzinfo=None), separator) + "Z")
        case BinaryType() | VarBinaryType():
            return optional(lambda value: base64.b64encode(value).decode())
        case DateType() | TimeType():
            return optional(lambda value: value.isoformat())
        case DecimalType():
            return optional(lambda value: format(value, "f"))
        case ArrayType() | MapType() | MultisetType() | RowType():
            convert = to_json(type_, iso=iso)
            return optional(lambda value: json.dumps(convert(value)))
    return optional(str)


def _moment(value: dt.datetime, separator: str) -> str:
    text = value.isoformat(separator)
    return text.rstrip("0") if "." in text else text
