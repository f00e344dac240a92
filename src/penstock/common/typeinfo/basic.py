"""Types of single values: numbers, strings, bytes, anything picklable."""

from __future__ import annotations

import pickle
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo.base import T_co, TypeInformation, mismatch
from penstock.common.typeinfo.java_text import java_double, java_float
from penstock.common.typeinfo.single import single

__all__ = [
    "BasicType",
    "BasicTypeInfo",
    "EnumTypeInfo",
    "GenericTypeInfo",
    "InstantTypeInfo",
    "PickledBytesTypeInfo",
    "VoidTypeInfo",
]


class BasicType(Enum):
    """The kinds of basic types."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Character"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


INTEGER_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_DDL = {
    BasicType.STRING: "string",
    BasicType.BYTE: "tinyint",
    BasicType.BOOLEAN: "boolean",
    BasicType.SHORT: "smallint",
    BasicType.INT: "int",
    BasicType.LONG: "bigint",
    BasicType.FLOAT: "float",
    BasicType.DOUBLE: "double",
    BasicType.CHAR: "string",
    BasicType.BIG_INT: "decimal(38,0)",
    BasicType.BIG_DEC: "decimal(38,18)",
    BasicType.INSTANT: "timestamp",
}


class BasicTypeInfo(TypeInformation[T_co]):
    """A type of single values. Get one from :class:`Types`, or from the ``..._TYPE_INFO`` methods here."""

    __slots__ = ("basic_type",)

    def __new__(cls, basic_type: BasicType) -> BasicTypeInfo[T_co]:
        # One class per rule avoids branches for each record in validate() and format().
        return super().__new__(_CLASS_OF[basic_type] if cls is BasicTypeInfo else cls)

    def __init__(self, basic_type: BasicType) -> None:
        self.basic_type = basic_type

    def to_ddl(self) -> str:
        return _DDL[self.basic_type]

    def validate(self, value: Any) -> str | None:
        raise NotImplementedError

    def format(self, value: Any) -> str:
        return "null" if value is None else str(value)

    def _identity(self) -> tuple[Any, ...]:
        return (self.basic_type,)

    def __reduce__(self) -> tuple[Any, ...]:
        return BasicTypeInfo, (self.basic_type,)

    def __repr__(self) -> str:
        return self.basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo[str]:
        return _BASIC[BasicType.STRING]

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo[bool]:
        return _BASIC[BasicType.BOOLEAN]

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo[int]:
        return _BASIC[BasicType.BYTE]

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo[int]:
        return _BASIC[BasicType.SHORT]

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo[int]:
        return _BASIC[BasicType.INT]

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo[int]:
        return _BASIC[BasicType.LONG]

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo[float]:
        return _BASIC[BasicType.FLOAT]

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo[float]:
        return _BASIC[BasicType.DOUBLE]

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo[str]:
        return _BASIC[BasicType.CHAR]

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo[int]:
        return _BASIC[BasicType.BIG_INT]

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo[Decimal]:
        return _BASIC[BasicType.BIG_DEC]

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo[Instant]:
        return _BASIC[BasicType.INSTANT]


class _StringTypeInfo(BasicTypeInfo):
    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, str) else mismatch("STRING", value)


class _CharTypeInfo(BasicTypeInfo):
    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        if value is None or (isinstance(value, str) and len(value) == 1):
            return None
        return mismatch("CHAR (one character)", value)


class _BooleanTypeInfo(BasicTypeInfo):
    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, bool) else mismatch("BOOLEAN", value)

    def format(self, value: Any) -> str:
        return "null" if value is None else "true" if value else "false"


class _IntegerTypeInfo(BasicTypeInfo):
    """Integers. BYTE to LONG have a range, BIG_INT has none. Values out of range are errors; they never wrap."""

    __slots__ = ("_high", "_low")

    def __init__(self, basic_type: BasicType) -> None:
        super().__init__(basic_type)
        bits = INTEGER_BITS.get(basic_type)
        self._low = None if bits is None else -(1 << bits - 1)
        self._high = None if bits is None else (1 << bits - 1) - 1

    def validate(self, value: Any) -> str | None:
        if type(value) is not int:
            if value is None:
                return None
            if isinstance(value, bool) or not isinstance(value, Integral):
                return mismatch(self.basic_type.name, value)
        if self._low is None or self._high is None or self._low <= value <= self._high:
            return None
        return f"{value} is out of the range of {self.basic_type.name} ({self._low} to {self._high})"

    def need_conversion(self) -> bool:
        return self._low is None

    def to_internal_type(self, obj: Any) -> Any:
        return Decimal(obj) if self._low is None and obj is not None else obj

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else int(obj)


class _FloatingTypeInfo(BasicTypeInfo):
    """FLOAT (32 bits) and DOUBLE. Ints are also valid."""

    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        if type(value) is float or value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, Real):
            return mismatch(self.basic_type.name, value)
        return None

    def format(self, value: Any) -> str:
        if value is None:
            return "null"
        return java_float(value) if self.basic_type is BasicType.FLOAT else java_double(float(value))

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        if self.basic_type is BasicType.FLOAT:
            return single(obj)
        return None if obj is None else float(obj)


class _DecimalTypeInfo(BasicTypeInfo):
    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        if value is None or isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
            return None
        return mismatch("BIG_DEC", value)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else Decimal(obj)


class InstantTypeInfo(BasicTypeInfo):
    """Points in time. Spark stores them as timestamps with a time zone."""

    __slots__ = ()

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, Instant) else mismatch("INSTANT", value)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.to_datetime()

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else Instant.from_datetime(obj)


_CLASS_OF: dict[BasicType, type[BasicTypeInfo]] = {
    BasicType.STRING: _StringTypeInfo,
    BasicType.CHAR: _CharTypeInfo,
    BasicType.BOOLEAN: _BooleanTypeInfo,
    BasicType.BYTE: _IntegerTypeInfo,
    BasicType.SHORT: _IntegerTypeInfo,
    BasicType.INT: _IntegerTypeInfo,
    BasicType.LONG: _IntegerTypeInfo,
    BasicType.BIG_INT: _IntegerTypeInfo,
    BasicType.FLOAT: _FloatingTypeInfo,
    BasicType.DOUBLE: _FloatingTypeInfo,
    BasicType.BIG_DEC: _DecimalTypeInfo,
    BasicType.INSTANT: InstantTypeInfo,
}
_BASIC: dict[BasicType, BasicTypeInfo[Any]] = {basic_type: BasicTypeInfo(basic_type) for basic_type in BasicType}


class PickledBytesTypeInfo(TypeInformation):
    """Any picklable value: the type of a stream without a declared type. Values print as in Python."""

    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None

    def format(self, value: Any) -> str:
        return str(value)

    def to_ddl(self) -> str:
        return "binary"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return pickle.dumps(obj, protocol=5)

    def from_internal_type(self, obj: Any) -> Any:
        return pickle.loads(obj)

    def _identity(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class GenericTypeInfo(PickledBytesTypeInfo):
    """Values of one Python class, and its subclasses."""

    __slots__ = ("value_class",)

    def __init__(self, value_class: type) -> None:
        self.value_class = value_class

    def validate(self, value: Any) -> str | None:
        if value is None or isinstance(value, self.value_class):
            return None
        return mismatch(self.value_class.__name__, value)

    def _identity(self) -> tuple[Any, ...]:
        return (self.value_class,)

    def __repr__(self) -> str:
        return f"GenericType<{self.value_class.__name__}>"


class EnumTypeInfo(TypeInformation):
    """Members of one :class:`enum.Enum`; Spark stores their names."""

    __slots__ = ("enum_class",)

    def __init__(self, enum_class: type[Enum]) -> None:
        self.enum_class = enum_class

    def validate(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, self.enum_class) else mismatch(repr(self), value)

    def format(self, value: Any) -> str:
        return "null" if value is None else str(value.name)

    def to_ddl(self) -> str:
        return "string"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.name

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else self.enum_class[obj]

    def _identity(self) -> tuple[Any, ...]:
        return (self.enum_class,)

    def __repr__(self) -> str:
        return f"Enum<{self.enum_class.__name__}>"


class VoidTypeInfo(TypeInformation):
    """Only ``None``."""

    __slots__ = ()

    def validate(self, value: Any) -> str | None:
        return None if value is None else mismatch("VOID", value)

    def format(self, value: Any) -> str:
        return "null"

    def to_ddl(self) -> str:
        return "void"

    def _identity(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "Void"
