"""Types of records and state: checked in Python, printed as in Flink, mapped to Spark's types by DDL."""

from typing import TYPE_CHECKING

from penstock.common.typeinfo.base import TypeInformation
from penstock.common.typeinfo.basic import (
    BasicType,
    BasicTypeInfo,
    EnumTypeInfo,
    GenericTypeInfo,
    InstantTypeInfo,
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
from penstock.common.typeinfo.composite import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo.factory import Types
from penstock.common.typeinfo.temporal import (
    DateTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.unsupported import refuse_missing_names

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "EnumTypeInfo",
    "ExternalTypeInfo",
    "GenericTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SetTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "VoidTypeInfo",
]

if not TYPE_CHECKING:
    __getattr__ = refuse_missing_names(__name__)
