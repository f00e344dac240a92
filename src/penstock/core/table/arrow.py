"""Conversion of SQL values between Arrow columns and Python.

Timestamps and intervals are stored in microseconds for all precisions: Python has no finer one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.common.decimals import rescale
from penstock.common.types import Row
from penstock.core.table.types import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

_PLAIN: dict[type[DataType], pa.DataType] = {
    NullType: pa.null(),
    BooleanType: pa.bool_(),
    TinyIntType: pa.int8(),
    SmallIntType: pa.int16(),
    IntType: pa.int32(),
    BigIntType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    CharType: pa.string(),
    VarCharType: pa.string(),
    BinaryType: pa.binary(),
    VarBinaryType: pa.binary(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    LocalZonedTimestampType: pa.timestamp("us", "UTC"),
    DayTimeIntervalType: pa.duration("us"),
    YearMonthIntervalType: pa.int32(),
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a column for a SQL type.

    >>> from penstock.core.table.types import DataTypes
    >>> arrow_type(DataTypes.ARRAY(DataTypes.TIMESTAMP(3)))
    ListType(list<item: timestamp[us]>)
    """
    plain = _PLAIN.get(type(data_type))
    if plain is not None:
        return plain
    match data_type:
        case DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case ArrayType():
            return pa.list_(arrow_type(data_type.element_type))
        case MapType():
            return pa.map_(arrow_type(data_type.key_type), arrow_type(data_type.value_type))
        case MultisetType():
            return pa.map_(arrow_type(data_type.element_type), pa.int32())
        case RowType():
            return pa.struct([pa.field(one.name, arrow_type(one.data_type)) for one in data_type.fields])
    raise TypeError(f"{data_type} has no Arrow type")


Convert = Callable[[Any], Any]


def to_python(data_type: DataType) -> Convert | None:
    """Return the conversion from a value of Arrow to the type's Python value; None if they are the same."""
    match data_type:
        case RowType():
            names = data_type.field_names()
            inner = [to_python(one) for one in data_type.field_types()]
            return lambda value: None if value is None else _row(names, inner, value)
        case ArrayType():
            return _list_of(to_python(data_type.element_type))
        case MapType():
            key, item = (to_python(one) or _same for one in (data_type.key_type, data_type.value_type))
            return lambda value: None if value is None else {key(k): item(v) for k, v in value}
        case MultisetType():
            element = to_python(data_type.element_type) or _same
            return lambda value: None if value is None else {element(k): count for k, count in value}
    return None


def _list_of(element: Convert | None) -> Convert | None:
    return None if element is None else lambda value: value and [element(one) for one in value]


def _row(names: list[str], convert: list[Convert | None], value: dict[str, Any]) -> Row:
    row = Row(*(_convert(one, item) for one, item in zip(convert, value.values(), strict=True)))
    row.set_field_names(names)
    return row


def _convert(convert: Convert | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def _same(value: Any) -> Any:
    return value


def python_values(column: pa.Array, data_type: DataType) -> list[Any]:
    """Convert a column to Python values of its type."""
    values = column.to_pylist()
    convert = to_python(data_type)
    return values if convert is None else [convert(value) for value in values]


def to_column(values: list[Any], data_type: DataType) -> pa.Array:
    """Convert Python values of a type to a column. Raise TypeError or ValueError for a value of another type."""
    prepare = _preparation(data_type)
    if prepare is not None:
        values = [None if value is None else prepare(value) for value in values]
    try:
        return pa.array(values, arrow_type(data_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TypeError(f"a value does not fit the type {data_type}: {error}") from error


def _preparation(data_type: DataType) -> Convert | None:
    match data_type:
        case DecimalType():
            scale = data_type.scale
            return lambda value: rescale(Decimal(value), scale)
        case BinaryType() | VarBinaryType():
            return bytes
        case FloatType() | DoubleType():
            return float
        case LocalZonedTimestampType():
            return _as_instant
        case TimestampType():
            return _without_zone
        case YearMonthIntervalType():
            return int
        case ArrayType():
            element = _preparation(data_type.element_type) or _same
            return lambda value: [None if one is None else element(one) for one in value]
        case MapType():
            key, item = (_preparation(one) or _same for one in (data_type.key_type, data_type.value_type))
            return lambda value: [(key(k), None if v is None else item(v)) for k, v in value.items()]
        case MultisetType():
            element = _preparation(data_type.element_type) or _same
            return lambda value: [(element(k), count) for k, count in value.items()]
        case RowType():
            return _row_preparation(data_type)
    return None


def _row_preparation(data_type: RowType) -> Convert:
    names = data_type.field_names()
    prepare = [_preparation(one) or _same for one in data_type.field_types()]

    def as_struct(value: Any) -> dict[str, Any]:
        items = [value.get(name) for name in names] if isinstance(value, dict) else list(value)
        if len(items) != len(names):
            raise TypeError(f"a row of {len(items)} fields does not fit the type {data_type}")
        pairs = zip(names, prepare, items, strict=True)
        return {name: None if item is None else convert(item) for name, convert, item in pairs}

    return as_struct


def _as_instant(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return dt.datetime.fromtimestamp(value / 1000, dt.UTC)
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value


def _without_zone(value: Any) -> Any:
    return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
