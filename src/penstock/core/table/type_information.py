"""Converts SQL data types to the types of streams: formats accept both, as in PyFlink."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.common.typeinfo.temporal import LocalZonedTimestampTypeInfo
from penstock.core.table.types import ArrayType, DataType, DecimalType, MapType, RowType

__all__ = ["as_row_type", "as_type_information"]

_SIMPLE = {
    "BOOLEAN": Types.BOOLEAN,
    "TINYINT": Types.BYTE,
    "SMALLINT": Types.SHORT,
    "INT": Types.INT,
    "BIGINT": Types.LONG,
    "FLOAT": Types.FLOAT,
    "DOUBLE": Types.DOUBLE,
    "CHAR": Types.STRING,
    "VARCHAR": Types.STRING,
    "DATE": Types.SQL_DATE,
    "TIME": Types.SQL_TIME,
    "TIMESTAMP": Types.SQL_TIMESTAMP,
    "TIMESTAMP_LTZ": LocalZonedTimestampTypeInfo,
}
_BYTES = {"BINARY", "VARBINARY"}


def as_type_information(declared: Any) -> Any:
    """Convert a data type to the type of a stream's values. Return other values unchanged.

    >>> from penstock.core.table.types import DataTypes
    >>> as_type_information(DataTypes.ARRAY(DataTypes.TINYINT()))
    BasicArrayTypeInfo<Byte>
    """
    if not isinstance(declared, DataType):
        return declared
    root = declared.root
    if root in _SIMPLE:
        return _SIMPLE[root]()
    if isinstance(declared, DecimalType):
        return DecimalTypeInfo(declared.precision, declared.scale)
    if root in _BYTES:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if isinstance(declared, ArrayType):
        element = declared.element_type
        wrap = Types.BASIC_ARRAY if element.root in _SIMPLE or isinstance(element, DecimalType) else Types.OBJECT_ARRAY
        return wrap(as_type_information(element))
    if isinstance(declared, MapType):
        return Types.MAP(as_type_information(declared.key_type), as_type_information(declared.value_type))
    if isinstance(declared, RowType):
        names = [field.name for field in declared.fields]
        types: list[TypeInformation] = [as_type_information(field.data_type) for field in declared.fields]
        return Types.ROW_NAMED(names, types)
    raise InvalidProgramError(f"{declared} cannot be the type of a stream: use one of Types instead")


def as_row_type(declared: Any) -> RowTypeInfo:
    """Return the row type given as ``Types.ROW_NAMED(...)`` or ``DataTypes.ROW(...)``."""
    row_type = as_type_information(declared)
    if not isinstance(row_type, RowTypeInfo):
        raise InvalidProgramError(f"expected Types.ROW_NAMED(...) or DataTypes.ROW(...), got {shorten(declared)}")
    return row_type
