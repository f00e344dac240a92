"""Rows and Arrow: the types of columns, records to columns, columns to records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo
from penstock.common.typeinfo.collections import MapTypeInfo, PrimitiveArrayTypeInfo, _ElementsTypeInfo
from penstock.common.typeinfo.temporal import DateTypeInfo, LocalTimeTypeInfo, TimestampTypeInfo, TimeTypeInfo
from penstock.common.types import Row, RowKind, _make_row, _share
from penstock.datastream.formats.conversion import _is_bytes

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
_LOCAL = (pa.date32(), pa.time64("us"), pa.timestamp("us"))


def arrow_type(kind: TypeInformation) -> Any:
    """The Arrow type for values of a type.

    >>> from penstock.common import Types
    >>> arrow_type(Types.INT())
    DataType(int32)
    """
    if isinstance(kind, BasicTypeInfo):
        return _BASIC[kind.basic_type]
    if isinstance(kind, RowTypeInfo):
        return pa.struct(list(arrow_schema(kind)))
    if isinstance(kind, MapTypeInfo):
        return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
    if isinstance(kind, PrimitiveArrayTypeInfo) and _is_bytes(kind):
        return pa.binary()
    if isinstance(kind, _ElementsTypeInfo):
        return pa.list_(arrow_type(kind.elem_type))
    if isinstance(kind, LocalTimeTypeInfo):
        return _LOCAL[kind.time_type.value]
    for temporal, found in ((DateTypeInfo, _LOCAL[0]), (TimeTypeInfo, _LOCAL[1]), (TimestampTypeInfo, _LOCAL[2])):
        if isinstance(kind, temporal):
            return found
    raise InvalidProgramError(f"values of type {kind!r} have no columns: use a type with declared fields")


def arrow_schema(row_type: RowTypeInfo) -> Any:
    """The columns of rows."""
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in fields])


def _plain(value: Any) -> Any:
    """Nested values as Arrow takes them."""
    if isinstance(value, Row):
        return dict(zip(value._fields, map(_plain, value._values), strict=True)) if value._fields else list(value)
    if isinstance(value, Instant):
        return value.seconds * 1_000_000 + value.nanos // 1_000
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return [(key, _plain(part)) for key, part in value.items()]
    return value


def to_arrow(rows: Sequence[Any], row_type: RowTypeInfo, schema: Any) -> Any:
    """Rows as a record batch; a row that does not fit is named."""
    fields_of = row_type._fields
    columns: list[list[Any]] = [[] for _ in schema]
    for row in rows:
        fields = fields_of(row)
        if fields is None:
            raise RecordFormatError(str(row_type.validate(row)), message=row)
        for column, value in zip(columns, fields, strict=True):
            column.append(value if value is None or type(value) in _SCALARS else _plain(value))
    try:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        for row in rows:
            reason = row_type.validate(row)
            if reason is not None:
                raise RecordFormatError(f"a row does not fit its columns: {reason}", message=row) from None
        raise RecordFormatError(f"rows do not fit their columns: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_SCALARS = {str, int, float, bool, bytes}


def rows_from_arrow(batch: Any) -> list[Row]:
    """The rows of a record batch, with the columns' names.

    >>> rows_from_arrow(pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}]))
    [Row(a=1, b='x')]
    """
    names = _share(batch.schema.names)
    columns = [column.to_pylist() for column in batch.columns]
    if any(_is_nested(field.type) for field in batch.schema):
        readers = [_nested_reader(field.type) for field in batch.schema]
        columns = [
            column if read is None else [read(value) for value in column]
            for read, column in zip(readers, columns, strict=True)
        ]
    insert = RowKind.INSERT
    if not columns:
        return [_make_row(names, [], insert) for _ in range(batch.num_rows)]
    return [_make_row(names, values, insert) for values in zip(*columns, strict=True)]


def _is_nested(kind: Any) -> bool:
    return bool(pa.types.is_nested(kind))


@lru_cache(maxsize=256)
def _nested_reader(kind: Any) -> Callable[[Any], Any] | None:
    """Structs become rows and maps dicts, at any depth."""
    if pa.types.is_struct(kind):
        names = _share(field.name for field in kind)
        readers = [(field.name, _nested_reader(field.type)) for field in kind]
        return lambda value: (
            None
            if value is None
            else _make_row(
                names, [value[name] if read is None else read(value[name]) for name, read in readers], RowKind.INSERT
            )
        )
    if pa.types.is_map(kind):
        item = _nested_reader(kind.item_type)
        return lambda value: (
            None if value is None else {key: part if item is None else item(part) for key, part in value}
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _nested_reader(kind.value_type)
        if element is not None:
            return lambda value: None if value is None else [element(part) for part in value]
    return None
