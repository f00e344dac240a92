"""``Types``, with one method for each type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeVar

from penstock.common.typeinfo.base import TypeInformation
from penstock.common.typeinfo.basic import (
    BasicTypeInfo,
    EnumTypeInfo,
    GenericTypeInfo,
    PickledBytesTypeInfo,
    VoidTypeInfo,
)
from penstock.common.typeinfo.collections import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    SetTypeInfo,
)
from penstock.common.typeinfo.composite import RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo.temporal import LocalTimeTypeInfo, SqlTimeTypeInfo

__all__ = ["Types"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E", bound=Enum)


class Types:
    """Creates type information.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()]).to_ddl()
    'struct<f0:string,f1:bigint>'
    >>> Types.SHORT().validate(43878)
    '43878 is out of the range of SHORT (-32768 to 32767)'
    """

    STRING = staticmethod(BasicTypeInfo.STRING_TYPE_INFO)
    BYTE = staticmethod(BasicTypeInfo.BYTE_TYPE_INFO)
    BOOLEAN = staticmethod(BasicTypeInfo.BOOLEAN_TYPE_INFO)
    SHORT = staticmethod(BasicTypeInfo.SHORT_TYPE_INFO)
    INT = staticmethod(BasicTypeInfo.INT_TYPE_INFO)
    LONG = staticmethod(BasicTypeInfo.LONG_TYPE_INFO)
    FLOAT = staticmethod(BasicTypeInfo.FLOAT_TYPE_INFO)
    DOUBLE = staticmethod(BasicTypeInfo.DOUBLE_TYPE_INFO)
    CHAR = staticmethod(BasicTypeInfo.CHAR_TYPE_INFO)
    BIG_INT = staticmethod(BasicTypeInfo.BIG_INT_TYPE_INFO)
    BIG_DEC = staticmethod(BasicTypeInfo.BIG_DEC_TYPE_INFO)
    INSTANT = staticmethod(BasicTypeInfo.INSTANT_TYPE_INFO)
    SQL_DATE = staticmethod(SqlTimeTypeInfo.DATE)
    SQL_TIME = staticmethod(SqlTimeTypeInfo.TIME)
    SQL_TIMESTAMP = staticmethod(SqlTimeTypeInfo.TIMESTAMP)

    @staticmethod
    def LOCAL_DATE() -> TypeInformation[dt.date]:
        """Dates (``datetime.date``)."""
        return LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE)

    @staticmethod
    def LOCAL_TIME() -> TypeInformation[dt.time]:
        """Times of day (``datetime.time``)."""
        return LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_TIME)

    @staticmethod
    def LOCAL_DATE_TIME() -> TypeInformation[dt.datetime]:
        """Dates with a time (``datetime.datetime``)."""
        return LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME)

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any picklable value."""
        return PickledBytesTypeInfo()

    @staticmethod
    def GENERIC(value_class: type[T]) -> TypeInformation[T]:
        """Instances of a Python class."""
        return GenericTypeInfo(value_class)

    @staticmethod
    def ENUM(enum_class: type[E]) -> TypeInformation[E]:
        """Members of an enum."""
        return EnumTypeInfo(enum_class)

    @staticmethod
    def VOID() -> TypeInformation[None]:
        """Only ``None``."""
        return VoidTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Rows with the field names f0, f1, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Rows with field names."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Tuples."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """Arrays of numbers. An array of bytes is ``bytes``."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """Arrays of basic values, which may be ``None``."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """Arrays of any values."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def LIST(element_type_info: TypeInformation[T]) -> TypeInformation[list[T]]:
        """Lists."""
        return ListTypeInfo(element_type_info)

    @staticmethod
    def SET(element_type_info: TypeInformation[T]) -> TypeInformation[set[T]]:
        """Sets."""
        return SetTypeInfo(element_type_info)

    @staticmethod
    def MAP(key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> TypeInformation[dict[K, V]]:
        """Maps (dicts)."""
        return MapTypeInfo(key_type_info, value_type_info)
