"""Converts between rows and Arrow: types, records to columns, columns to records."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.common.decimals import fit
from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo
from penstock.common.typeinfo.collections import ElementsTypeInfo, MapTypeInfo
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.common.typeinfo.temporal import (
    DateTypeInfo,
    LocalTimeTypeInfo,
    LocalZonedTimestampTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.types import Row, RowKind, make_row, share_names
from penstock.formats.conversion import Convert, is_bytes, nullable

_BASIC = {
    BasicType.STRING: pa.string(),
    BasicType.CHAR: pa.string(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    BasicType.FLOAT: pa.float32(),
    BasicType.DOUBLE: pa.float64(),
    BasicType.BIG_INT: pa.decimal128(38, 0),
    BasicType.BIG_DEC: pa.decimal128(38, 18),
    BasicType.INSTANT: pa.timestamp("us", "UTC"),
}
_MOST_DIGITS = 38
_SCALARS = {str, int, float, bool, bytes}
_SCALARS_OR_NONE = _SCALARS | {type(None)}
_LOCAL = (pa.date32(), pa.time64("us"), pa.timestamp("us"))


def arrow_type(kind: TypeInformation) -> Any:
    """Return the Arrow type for values of a type.

    >>> from penstock.common import Types
    >>> arrow_type(Types.INT())
    DataType(int32)
    """
    if isinstance(kind, DecimalTypeInfo):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, BasicTypeInfo):
        return _BASIC[kind.basic_type]
    if isinstance(kind, RowTypeInfo):
        return pa.struct(list(arrow_schema(kind)))
    if isinstance(kind, MapTypeInfo):
        return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
    if is_bytes(kind):
        return pa.binary()
    if isinstance(kind, ElementsTypeInfo):
        return pa.list_(arrow_type(kind.elem_type))
    if isinstance(kind, LocalZonedTimestampTypeInfo):
        return _BASIC[BasicType.INSTANT]
    if isinstance(kind, LocalTimeTypeInfo):
        return _LOCAL[kind.time_type.value]
    for temporal, found in ((DateTypeInfo, _LOCAL[0]), (TimeTypeInfo, _LOCAL[1]), (TimestampTypeInfo, _LOCAL[2])):
        if isinstance(kind, temporal):
            return found
    raise InvalidProgramError(f"values of type {kind!r} have no column type: use a type with declared fields")


def arrow_schema(row_type: RowTypeInfo) -> Any:
    """Return the Arrow schema of rows."""
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in fields])


def _plain(value: Any, kind: Any) -> Any:
    """Convert a value for Arrow: all kinds of records become dicts."""
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, Decimal) and pa.types.is_decimal(kind):
        return _fitting(value, kind)
    if isinstance(value, Instant):
        return value.seconds * 1_000_000 + value.nanos // 1_000
    if pa.types.is_struct(kind):
        return _plain_struct(value, kind)
    if isinstance(value, dict):
        item = kind.item_type if pa.types.is_map(kind) else None
        return [(key, _plain(part, item)) for key, part in value.items()]
    if isinstance(value, (list, tuple)) and pa.types.is_list(kind):
        return [_plain(part, kind.value_type) for part in value]
    return value


def _fitting(value: Decimal, kind: Any) -> Decimal | None:
    """Round to the scale, or return NULL, as in SQL, if the declared precision is too small."""
    fitting = fit(value, kind.precision, kind.scale)
    return value if fitting is None and kind.precision == _MOST_DIGITS else fitting


def _plain_struct(value: Any, kind: Any) -> Any:
    types = {field.name: field.type for field in kind}
    if isinstance(value, Row):
        parts: Any = zip(value._fields or types, value._values, strict=True)
    elif isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = zip(types, value, strict=True)
    else:
        return value
    return {name: _plain(part, types.get(name)) for name, part in parts}


def to_arrow(rows: Sequence[Any], row_type: RowTypeInfo, schema: Any) -> Any:
    """Convert rows to a record batch. The error for a row that does not fit names the row."""
    fields_of = row_type._fields
    names, width = tuple(row_type.get_field_names()), len(schema)
    taken: list[Sequence[Any]] = []
    for row in rows:
        if type(row) is Row and (row._fields is None or row._fields == names) and len(row._values) == width:
            taken.append(row._values)
            continue
        fields = fields_of(row)
        if fields is None:
            raise RecordFormatError(str(row_type.validate(row)), message=row)
        taken.append(fields)
    columns: list[Sequence[Any]] = [
        values if _SCALARS_OR_NONE.issuperset(map(type, values)) else _plain_column(values, kind, rows, row_type)
        for values, kind in zip(zip(*taken, strict=True), schema.types, strict=bool(rows))
    ]
    columns = columns or [[] for _ in range(width)]
    try:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        for row in rows:
            reason = row_type.validate(row)
            if reason is not None:
                raise RecordFormatError(f"a row does not fit its columns: {reason}", message=row) from None
        raise RecordFormatError(f"rows do not fit their columns: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain_column(values: Sequence[Any], kind: Any, rows: Sequence[Any], row_type: RowTypeInfo) -> list[Any]:
    found: list[Any] = []
    try:
        for value in values:
            found.append(_plain(value, kind))  # noqa: PERF401 - how far it came tells which row
    except ValueError:  # a nested record has too few or too many fields
        row = rows[len(found)]
        why = row_type.validate(row) or f"its fields differ from {kind}"
        raise RecordFormatError(f"a row does not fit its columns: {why}", message=row) from None
    return found


def rows_from_arrow(batch: Any, row_type: RowTypeInfo | None = None) -> list[Row]:
    """Convert a record batch to rows with the columns' names, and with values of the type, if there is one.

    >>> rows_from_arrow(pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}]))
    [Row(a=1, b='x')]
    """
    names = share_names(batch.schema.names)
    columns = [_to_micros(column).to_pylist() for column in batch.columns]
    if row_type is not None or any(_is_nested(field.type) for field in batch.schema):
        kinds = [None] * len(names) if row_type is None else row_type.get_field_types()
        readers = [_reader(field.type, kind) for field, kind in zip(batch.schema, kinds, strict=True)]
        columns = [
            column if read is None else [read(value) for value in column]
            for read, column in zip(readers, columns, strict=True)
        ]
    insert = RowKind.INSERT
    if not columns:
        return [make_row(names, [], insert) for _ in range(batch.num_rows)]
    return [make_row(names, values, insert) for values in zip(*columns, strict=True)]


def _is_nested(kind: Any) -> bool:
    return bool(pa.types.is_nested(kind))


@lru_cache(maxsize=256)
def _without_nanos(kind: Any) -> Any:
    """Return the type with microseconds instead of nanoseconds, which Python's classes do not support."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_nanos(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_without_nanos(kind.key_type), _without_nanos(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_nanos(kind.value_type)))
    return kind


def _to_micros(column: Any) -> Any:
    wanted = _without_nanos(column.type)
    return column if wanted == column.type else column.cast(wanted, safe=False)


def _reader(kind: Any, declared: TypeInformation | None) -> Convert | None:
    """Return the conversion from a value of Arrow: nested structs become rows, maps become dicts, and the two types
    without their own column type become what they were declared to be. None if no conversion is needed.
    """
    if isinstance(declared, DecimalTypeInfo):
        return None if kind == arrow_type(declared) else nullable(declared.fit)
    if isinstance(declared, BasicTypeInfo):
        return _DECLARED.get(declared.basic_type)
    if isinstance(declared, LocalZonedTimestampTypeInfo):
        return declared.from_internal_type
    if pa.types.is_struct(kind):
        return _struct_reader(kind, declared)
    if pa.types.is_map(kind):
        item = _reader(kind.item_type, declared.value_type if isinstance(declared, MapTypeInfo) else None)
        return nullable(lambda value: {key: part if item is None else item(part) for key, part in value})
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _reader(kind.value_type, declared.elem_type if isinstance(declared, ElementsTypeInfo) else None)
        return None if element is None else nullable(lambda value: [element(part) for part in value])
    return None


def _struct_reader(kind: Any, declared: TypeInformation | None) -> Convert:
    names = share_names(field.name for field in kind)
    types: dict[str, TypeInformation] = {}
    if isinstance(declared, RowTypeInfo):
        types = dict(zip(declared.get_field_names(), declared.get_field_types(), strict=True))
    readers = [(field.name, _reader(field.type, types.get(field.name))) for field in kind]
    return nullable(
        lambda value: make_row(
            names, [value[name] if read is None else read(value[name]) for name, read in readers], RowKind.INSERT
        )
    )


_DECLARED: dict[BasicType, Convert] = {
    BasicType.INSTANT: nullable(Instant.from_datetime),
    BasicType.BIG_INT: nullable(int),
}
