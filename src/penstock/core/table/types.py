"""SQL data types under PyFlink's names, immutable and compared by value.

>>> DataTypes.ROW(
...     [DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False)), DataTypes.FIELD("name", DataTypes.STRING())]
... )
ROW<`id` BIGINT NOT NULL, `name` STRING>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "IntType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "MultisetType",
    "NullType",
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
    """Base of all types. ``root`` is the name of the type without its parameters."""

    root: ClassVar[str] = ""
    _nullable: bool = field(default=True, kw_only=True)

    def nullable(self) -> Self:
        """The same type with NULL."""
        return self if self._nullable else replace(self, _nullable=True)

    def not_null(self) -> Self:
        """The same type without NULL."""
        return replace(self, _nullable=False) if self._nullable else self

    def with_nullability(self, nullable: bool) -> Self:
        """The same type with or without NULL."""
        return self.nullable() if nullable else self.not_null()

    @property
    def is_nullable(self) -> bool:
        """Whether NULL is a value of the type."""
        return self._nullable

    @classmethod
    def type_name(cls) -> str:
        """PyFlink's name of the class of types, such as ``BIGINT``."""
        return cls.root

    def bridged_to(self, conversion_cls: str) -> Self:
        """The same type: which Java class represents a value means nothing here."""
        return self

    def same_type(self, other: DataType) -> bool:
        """Whether the types are equal, whatever they say about NULL."""
        return self.nullable() == other.nullable()

    def summary(self) -> str:
        """The type in SQL, without NOT NULL."""
        return self.root

    def as_summary_string(self) -> str:
        """The type in SQL, as Flink writes it in messages and DESCRIBE."""
        return self.summary() + ("" if self._nullable else " NOT NULL")

    def __repr__(self) -> str:
        return self.as_summary_string()

    __str__ = __repr__


class AtomicType(DataType):
    """A type that is not made of others."""


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
    """Numbers with digits behind the point."""


class FloatType(FractionalType):
    """32 bits."""

    root = "FLOAT"


class DoubleType(FractionalType):
    """64 bits."""

    root = "DOUBLE"


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """Exact numbers: ``precision`` digits, ``scale`` of them behind the point."""

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
    """A reading of calendar and clock, without time zone."""

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
        """As SQL writes it."""
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
        """As SQL writes it."""
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


class DataTypes:
    """Makes types: ``DataTypes.BIGINT()``, ``DataTypes.ARRAY(DataTypes.STRING())``."""

    @staticmethod
    def NULL() -> NullType:
        """The type of an untyped NULL."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Text of a fixed length."""
        return CharType(length, _nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Text up to a length."""
        return VarCharType(length, _nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Text."""
        return VarCharType(_nullable=nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """TRUE, FALSE."""
        return BooleanType(_nullable=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Bytes of a fixed length."""
        return BinaryType(length, _nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Bytes up to a length."""
        return VarBinaryType(length, _nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Bytes."""
        return VarBinaryType(_nullable=nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Exact numbers."""
        return DecimalType(precision, scale, _nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """8 bits."""
        return TinyIntType(_nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """16 bits."""
        return SmallIntType(_nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """32 bits."""
        return IntType(_nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """64 bits."""
        return BigIntType(_nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """32 bits, with a point."""
        return FloatType(_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """64 bits, with a point."""
        return DoubleType(_nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """A day."""
        return DateType(_nullable=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """A time of day."""
        return TimeType(precision, _nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """A reading of calendar and clock."""
        return TimestampType(precision, _nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A point in time."""
        return LocalZonedTimestampType(precision, _nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A point in time."""
        return LocalZonedTimestampType(precision, _nullable=nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Elements in order."""
        return ArrayType(element_type, _nullable=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """A list in an accumulator."""
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Values by key."""
        return MapType(key_type, value_type, _nullable=nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """A map in an accumulator."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Elements with counts."""
        return MultisetType(element_type, _nullable=nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField | DataType] = (), nullable: bool = True) -> RowType:
        """Named fields; types alone get the names f0, f1, ..."""
        fields = [
            one if isinstance(one, RowField) else RowField(f"f{index}", one) for index, one in enumerate(row_fields)
        ]
        return RowType(tuple(fields), _nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """A field of a row."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """Unit of an interval."""
        return Resolution("SECOND", precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Unit of an interval."""
        return Resolution("MINUTE")

    @staticmethod
    def HOUR() -> Resolution:
        """Unit of an interval."""
        return Resolution("HOUR")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Unit of an interval."""
        return Resolution("DAY", precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Unit of an interval."""
        return Resolution("MONTH")

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Unit of an interval."""
        return Resolution("YEAR", precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """A length of time between two units."""
        units = [upper_resolution] + ([] if lower_resolution is None else [lower_resolution])
        names = " TO ".join(unit.unit for unit in units)
        if upper_resolution.unit in ("YEAR", "MONTH"):
            precision = upper_resolution.precision if upper_resolution.unit == "YEAR" else 2
            return YearMonthIntervalType(names, precision)
        days = upper_resolution.precision if upper_resolution.unit == "DAY" else 2
        seconds = next((unit.precision for unit in units if unit.unit == "SECOND"), 6)
        return DayTimeIntervalType(names, days, seconds)
