"""SQL data types under PyFlink's names, immutable and compared by value.

>>> DataTypes.ROW(
...     [DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False)), DataTypes.FIELD("name", DataTypes.STRING())]
... )
ROW<`id` BIGINT NOT NULL, `name` STRING>
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.table.logical_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
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
    FractionalType,
    IntegralType,
    IntType,
    ListViewType,
    LocalZonedTimestampType,
    MapType,
    MapViewType,
    MultisetType,
    NullType,
    NumericType,
    Resolution,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = [
    "MAX_LENGTH",
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


class DataTypes:
    """Creates types: ``DataTypes.BIGINT()``, ``DataTypes.ARRAY(DataTypes.STRING())``."""

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
        """32-bit floating point."""
        return FloatType(_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """64-bit floating point."""
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
        """A date and time of day, without time zone."""
        return TimestampType(precision, _nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A point in time, shown in the session's time zone."""
        return LocalZonedTimestampType(precision, _nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """A point in time, shown in the session's time zone."""
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
        """Named fields. Types without names get the names f0, f1, ..."""
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
        """Seconds as the unit of an interval."""
        return Resolution("SECOND", precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Minutes as the unit of an interval."""
        return Resolution("MINUTE")

    @staticmethod
    def HOUR() -> Resolution:
        """Hours as the unit of an interval."""
        return Resolution("HOUR")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Days as the unit of an interval."""
        return Resolution("DAY", precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Months as the unit of an interval."""
        return Resolution("MONTH")

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Years as the unit of an interval."""
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
