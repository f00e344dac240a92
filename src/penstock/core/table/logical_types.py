"""SQL data types, immutable and compared by value. :class:`DataTypes` in `types.py` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

__all__ = [
    "MAX_LENGTH",
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "MultisetType",
    "NullType",
    "NumericType",
    "Resolution",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]

MAX_LENGTH = 2_147_483_647


@dataclass(frozen=True, repr=False)
class DataType:
    """Base class of all types. ``root`` is the name of the type without its parameters."""

    root: ClassVar[str] = ""
    _nullable: bool = field(default=True, kw_only=True)

    def nullable(self) -> Self:
        """Return the same type, nullable."""
        return self if self._nullable else replace(self, _nullable=True)

    def not_null(self) -> Self:
        """Return the same type, not nullable."""
        return replace(self, _nullable=False) if self._nullable else self

    def with_nullability(self, nullable: bool) -> Self:
        """Return the same type, nullable or not."""
        return self.nullable() if nullable else self.not_null()

    @property
    def is_nullable(self) -> bool:
        """Whether the type is nullable."""
        return self._nullable

    @classmethod
    def type_name(cls) -> str:
        """Return PyFlink's name of the type class, such as ``BIGINT``."""
        return cls.root

    def bridged_to(self, conversion_cls: str) -> Self:
        """Return the same type: the Java class of a value has no meaning here."""
        return self

    def same_type(self, other: DataType) -> bool:
        """Whether the types are equal, ignoring nullability."""
        return self.nullable() == other.nullable()

    def summary(self) -> str:
        """Return the type in SQL, without NOT NULL."""
        return self.root

    def as_summary_string(self) -> str:
        """Return the type in SQL, as Flink writes it in messages and DESCRIBE."""
        return self.summary() + ("" if self._nullable else " NOT NULL")

    def __repr__(self) -> str:
        return self.as_summary_string()

    __str__ = __repr__


class AtomicType(DataType):
    """A type without element types."""


class NullType(AtomicType):
    """The type of an untyped NULL."""

    root = "NULL"


class BooleanType(AtomicType):
    """TRUE, FALSE."""

    root = "BOOLEAN"


class NumericType(AtomicType):
    """Numbers."""


class IntegralType(NumericType):
    """Whole numbers."""

    bits: ClassVar[int]


class TinyIntType(IntegralType):
    """8 bits."""

    root, bits = "TINYINT", 8


class SmallIntType(IntegralType):
    """16 bits."""

    root, bits = "SMALLINT", 16


class IntType(IntegralType):
    """32 bits."""

    root, bits = "INT", 32


class BigIntType(IntegralType):
    """64 bits."""

    root, bits = "BIGINT", 64


class FractionalType(NumericType):
    """Numbers with digits after the decimal point."""


class FloatType(FractionalType):
    """32 bits."""

    root = "FLOAT"


class DoubleType(FractionalType):
    """64 bits."""

    root = "DOUBLE"


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """Exact numbers: ``precision`` digits, ``scale`` of them after the decimal point."""

    root: ClassVar[str] = "DECIMAL"
    precision: int = 10
    scale: int = 0

    def summary(self) -> str:
        """With its parameters."""
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, repr=False)
class CharType(AtomicType):
    """Text of a fixed length."""

    root: ClassVar[str] = "CHAR"
    length: int = 1

    def summary(self) -> str:
        """With its length."""
        return f"CHAR({self.length})"


@dataclass(frozen=True, repr=False)
class VarCharType(AtomicType):
    """Text up to a length."""

    root: ClassVar[str] = "VARCHAR"
    length: int = MAX_LENGTH

    def summary(self) -> str:
        """STRING if there is no limit."""
        return "STRING" if self.length == MAX_LENGTH else f"VARCHAR({self.length})"


@dataclass(frozen=True, repr=False)
class BinaryType(AtomicType):
    """Bytes of a fixed length."""

    root: ClassVar[str] = "BINARY"
    length: int = 1

    def summary(self) -> str:
        """With its length."""
        return f"BINARY({self.length})"


@dataclass(frozen=True, repr=False)
class VarBinaryType(AtomicType):
    """Bytes up to a length."""

    root: ClassVar[str] = "VARBINARY"
    length: int = MAX_LENGTH

    def summary(self) -> str:
        """BYTES if there is no limit."""
        return "BYTES" if self.length == MAX_LENGTH else f"VARBINARY({self.length})"


class DateType(AtomicType):
    """A day."""

    root = "DATE"


@dataclass(frozen=True, repr=False)
class TimeType(AtomicType):
    """A time of day."""

    root: ClassVar[str] = "TIME"
    precision: int = 0

    def summary(self) -> str:
        """With its precision."""
        return f"TIME({self.precision})"


@dataclass(frozen=True, repr=False)
class TimestampType(AtomicType):
    """A date and time of day, without time zone."""

    root: ClassVar[str] = "TIMESTAMP"
    precision: int = 6

    def summary(self) -> str:
        """With its precision."""
        return f"TIMESTAMP({self.precision})"


@dataclass(frozen=True, repr=False)
class LocalZonedTimestampType(AtomicType):
    """A point in time, shown in the session's time zone."""

    root: ClassVar[str] = "TIMESTAMP_LTZ"
    precision: int = 6

    def summary(self) -> str:
        """With its precision."""
        return f"TIMESTAMP_LTZ({self.precision})"


@dataclass(frozen=True)
class Resolution:
    """A unit of an interval: ``DataTypes.DAY(3)``."""

    unit: str
    precision: int = -1

    def __str__(self) -> str:
        return self.unit if self.precision < 0 else f"{self.unit}({self.precision})"


@dataclass(frozen=True, repr=False)
class DayTimeIntervalType(AtomicType):
    """A length of time from days to fractions of seconds."""

    root: ClassVar[str] = "INTERVAL_DAY_TIME"
    resolution: str = "DAY TO SECOND"
    day_precision: int = 2
    fractional_precision: int = 6

    def summary(self) -> str:
        """Return the type in SQL."""
        units = self.resolution.split(" TO ")
        first = f"DAY({self.day_precision})" if units[0] == "DAY" else units[0]
        if units[0] == "SECOND":
            first = f"SECOND({self.fractional_precision})"
        if len(units) == 1:
            return f"INTERVAL {first}"
        last = f"SECOND({self.fractional_precision})" if units[1] == "SECOND" else units[1]
        return f"INTERVAL {first} TO {last}"


@dataclass(frozen=True, repr=False)
class YearMonthIntervalType(AtomicType):
    """A number of months."""

    root: ClassVar[str] = "INTERVAL_YEAR_MONTH"
    resolution: str = "YEAR TO MONTH"
    precision: int = 2

    def summary(self) -> str:
        """Return the type in SQL."""
        first, *rest = self.resolution.split(" TO ")
        named = f"YEAR({self.precision})" if first == "YEAR" else first
        return f"INTERVAL {' TO '.join([named, *rest])}"


@dataclass(frozen=True, repr=False)
class ArrayType(DataType):
    """Elements in order."""

    root: ClassVar[str] = "ARRAY"
    element_type: DataType = field(default_factory=NullType)

    def summary(self) -> str:
        """With the type of its elements."""
        return f"ARRAY<{self.element_type.as_summary_string()}>"


@dataclass(frozen=True, repr=False)
class ListViewType(ArrayType):
    """A list in an accumulator."""

    root: ClassVar[str] = "LIST_VIEW"


@dataclass(frozen=True, repr=False)
class MapType(DataType):
    """Values by key."""

    root: ClassVar[str] = "MAP"
    key_type: DataType = field(default_factory=NullType)
    value_type: DataType = field(default_factory=NullType)

    def summary(self) -> str:
        """With the types of keys and values."""
        return f"MAP<{self.key_type.as_summary_string()}, {self.value_type.as_summary_string()}>"


@dataclass(frozen=True, repr=False)
class MapViewType(MapType):
    """A map in an accumulator."""

    root: ClassVar[str] = "MAP_VIEW"


@dataclass(frozen=True, repr=False)
class MultisetType(DataType):
    """Elements with counts."""

    root: ClassVar[str] = "MULTISET"
    element_type: DataType = field(default_factory=NullType)

    def summary(self) -> str:
        """With the type of its elements."""
        return f"MULTISET<{self.element_type.as_summary_string()}>"


@dataclass(frozen=True)
class RowField:
    """A named field of a row type."""

    name: str
    data_type: DataType
    description: str | None = None


@dataclass(frozen=True, repr=False)
class RowType(DataType):
    """Named fields."""

    root: ClassVar[str] = "ROW"
    fields: tuple[RowField, ...] = ()

    def summary(self) -> str:
        """With its fields."""
        parts = [f"`{one.name}` {one.data_type.as_summary_string()}" for one in self.fields]
        return f"ROW<{', '.join(parts)}>"

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return self.field_names()

    def field_names(self) -> list[str]:
        """The names of the fields."""
        return [one.name for one in self.fields]

    def field_types(self) -> list[DataType]:
        """The types of the fields."""
        return [one.data_type for one in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)
