"""The rules for combining types: common types, arithmetic, casts (T23, T30, T32, T123)."""

from __future__ import annotations

from collections.abc import Sequence

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
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
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

MAX_PRECISION = 38
_INTEGERS = (TinyIntType, SmallIntType, IntType, BigIntType)
_DIGITS = {TinyIntType: 3, SmallIntType: 5, IntType: 10, BigIntType: 19}


def is_character(one: DataType) -> bool:
    """Whether a type is CHAR, VARCHAR or STRING."""
    return isinstance(one, (CharType, VarCharType))


def is_binary(one: DataType) -> bool:
    """Whether a type is BINARY, VARBINARY or BYTES."""
    return isinstance(one, (BinaryType, VarBinaryType))


def is_numeric(one: DataType) -> bool:
    """Whether a type is numeric."""
    return isinstance(one, NumericType)


def is_integer(one: DataType) -> bool:
    """Whether a type is one of TINYINT to BIGINT."""
    return isinstance(one, IntegralType)


def is_approximate(one: DataType) -> bool:
    """Whether a type is FLOAT or DOUBLE."""
    return isinstance(one, (FloatType, DoubleType))


def is_timestamp(one: DataType) -> bool:
    """Whether a type is TIMESTAMP or TIMESTAMP_LTZ."""
    return isinstance(one, (TimestampType, LocalZonedTimestampType))


def is_temporal(one: DataType) -> bool:
    """Whether a type is DATE, TIME or a timestamp."""
    return isinstance(one, (DateType, TimeType)) or is_timestamp(one)


def is_interval(one: DataType) -> bool:
    """Whether a type is an interval."""
    return isinstance(one, (DayTimeIntervalType, YearMonthIntervalType))


def as_decimal(one: DataType) -> DecimalType:
    """Return the decimal type that holds all values of an exact numeric type."""
    if isinstance(one, DecimalType):
        return one
    return DecimalType(_DIGITS[type(one)], 0, _nullable=one.is_nullable)  # type: ignore[index]


def common_type(types: Sequence[DataType]) -> DataType | None:
    """Return the least restrictive common type, or None.

    >>> from penstock.core.table.types import DataTypes
    >>> common_type([DataTypes.INT(nullable=False), DataTypes.DECIMAL(5, 2)])
    DECIMAL(12, 2)
    >>> common_type([DataTypes.INT(), DataTypes.STRING()]) is None
    True
    """
    result: DataType = NullType()
    for one in types:
        joined = _common(result, one)
        if joined is None:
            return None
        result = joined
    return result.with_nullability(any(one.is_nullable for one in types))


def _common(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, NullType):
        return right
    if isinstance(right, NullType) or left.same_type(right):
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if is_character(left) and is_character(right):
        longest = max(left.length, right.length)  # type: ignore[attr-defined]
        both_char = isinstance(left, CharType) and isinstance(right, CharType)
        return CharType(longest) if both_char and left.length == right.length else VarCharType(longest)  # type: ignore[attr-defined]
    if is_binary(left) and is_binary(right):
        return VarBinaryType(max(left.length, right.length))  # type: ignore[attr-defined]
    if is_temporal(left) and is_temporal(right):
        return _common_time(left, right)
    if isinstance(left, DayTimeIntervalType) and isinstance(right, DayTimeIntervalType):
        return DayTimeIntervalType()
    if isinstance(left, YearMonthIntervalType) and isinstance(right, YearMonthIntervalType):
        return YearMonthIntervalType()
    return _common_collection(left, right)


def _common_number(left: DataType, right: DataType) -> DataType:
    if is_approximate(left) or is_approximate(right):
        single = all(isinstance(one, FloatType) or is_integer(one) for one in (left, right))
        return FloatType() if single else DoubleType()
    if is_integer(left) and is_integer(right):
        return left if left.bits >= right.bits else right  # type: ignore[attr-defined]
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale)
    return bounded_decimal(digits + scale, scale)


def _common_time(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, TimeType) or isinstance(right, TimeType):
        return None if type(left) is not type(right) else left if left.precision >= right.precision else right  # type: ignore[attr-defined]
    precision = max(getattr(left, "precision", 0), getattr(right, "precision", 0))
    if isinstance(left, LocalZonedTimestampType) or isinstance(right, LocalZonedTimestampType):
        return LocalZonedTimestampType(precision)
    return TimestampType(precision)


def _common_collection(left: DataType, right: DataType) -> DataType | None:
    match left, right:
        case ArrayType(), ArrayType():
            element = common_type([left.element_type, right.element_type])
            return None if element is None else ArrayType(element)
        case MultisetType(), MultisetType():
            element = common_type([left.element_type, right.element_type])
            return None if element is None else MultisetType(element)
        case MapType(), MapType():
            key = common_type([left.key_type, right.key_type])
            value = common_type([left.value_type, right.value_type])
            return None if key is None or value is None else MapType(key, value)
        case RowType(), RowType() if len(left) == len(right):
            types = [common_type(pair) for pair in zip(left.field_types(), right.field_types(), strict=True)]
            if None in types:
                return None
            fields = zip(left.field_names(), types, strict=True)
            return RowType(tuple(RowField(name, one) for name, one in fields if one is not None))
    return None


# -- decimals ---------------------------------------------------------------------------------------------------------


def bounded_decimal(precision: int, scale: int) -> DecimalType:
    """Return a decimal type of at most 38 digits. Excess fractional digits are dropped first, down to six."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Return the type of a sum, difference, product, quotient or remainder; None if an operand is not a number.

    >>> from penstock.core.table.types import DataTypes
    >>> arithmetic_type("/", DataTypes.DECIMAL(8, 2), DataTypes.DECIMAL(4, 1))
    DECIMAL(14, 7)
    """
    if isinstance(left, NullType):
        left = right.nullable()
    if isinstance(right, NullType):
        right = left.nullable()
    if not is_numeric(left) or not is_numeric(right):
        return None
    nullable = left.is_nullable or right.is_nullable
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        if is_approximate(left) or is_approximate(right):
            return DoubleType(_nullable=nullable)
        return _decimal_arithmetic(operator, as_decimal(left), as_decimal(right)).with_nullability(nullable)
    common = _common_number(left, right)
    if is_approximate(left) and is_approximate(right):
        common = left  # FLOAT + DOUBLE is a FLOAT, DOUBLE + FLOAT a DOUBLE
    if operator == "%" and is_integer(left) and is_integer(right):
        common = right
    return common.with_nullability(nullable)


def _decimal_arithmetic(operator: str, a: DecimalType, b: DecimalType) -> DecimalType:
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if operator in "+-":
        scale = max(s1, s2)
        return bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return bounded_decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return bounded_decimal(p1 - s1 + s2 + scale, scale)
    return bounded_decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def rounded_type(one: DecimalType, digits: int) -> DecimalType:
    """Return the type of ROUND(decimal, digits): one more digit before the point, fewer after it."""
    if digits >= one.scale:
        return one
    whole = 1 + one.precision - one.scale
    kept = max(digits, 0)
    return DecimalType(min(38, whole + kept), kept, _nullable=one.is_nullable)


def sum_type(one: DataType) -> DataType:
    """Return the type of SUM: that of its argument; decimals get 38 digits (T30, T32)."""
    return DecimalType(MAX_PRECISION, one.scale) if isinstance(one, DecimalType) else one.nullable()


def average_type(one: DataType) -> DataType:
    """Return the type of AVG."""
    return DecimalType(MAX_PRECISION, max(6, one.scale)) if isinstance(one, DecimalType) else one.nullable()


# -- casts ------------------------------------------------------------------------------------------------------------


def casts_implicitly(source: DataType, target: DataType) -> bool:
    """Whether a column of another type accepts the values without a CAST, because no data is lost (T123)."""
    if isinstance(source, NullType) or source.same_type(target):
        return True
    if is_character(source) and is_character(target):
        return True
    if is_binary(source) and is_binary(target):
        return True
    if is_integer(source) and is_integer(target):
        return bool(source.bits <= target.bits)  # type: ignore[attr-defined]
    if is_numeric(source) and is_numeric(target):
        if is_approximate(target):
            return not (isinstance(source, DoubleType) and isinstance(target, FloatType))
        return isinstance(target, DecimalType) and not is_approximate(source)
    if is_timestamp(source) and is_timestamp(target):
        return True
    if isinstance(source, DateType) and is_timestamp(target):
        return True
    if isinstance(source, TimeType) and isinstance(target, TimeType):
        return True
    if is_interval(source) and is_interval(target):
        return type(source) is type(target)
    return _collection_casts(source, target)


def _collection_casts(source: DataType, target: DataType) -> bool:
    match source, target:
        case ArrayType(), ArrayType():
            return casts_implicitly(source.element_type, target.element_type)
        case MultisetType(), MultisetType():
            return casts_implicitly(source.element_type, target.element_type)
        case MapType(), MapType():
            return casts_implicitly(source.key_type, target.key_type) and casts_implicitly(
                source.value_type, target.value_type
            )
        case RowType(), RowType():
            pairs = zip(source.field_types(), target.field_types(), strict=False)
            return len(source) == len(target) and all(casts_implicitly(one, other) for one, other in pairs)
    return False


def casts_explicitly(source: DataType, target: DataType) -> bool:
    """Whether CAST can convert one type to the other."""
    if casts_implicitly(source, target) or is_character(source) or is_character(target):
        return not (is_character(source) and is_interval(target))
    if is_numeric(source) and is_numeric(target):
        return True
    if isinstance(source, BooleanType) and is_numeric(target):
        return True
    if is_numeric(source) and isinstance(target, BooleanType):
        return True
    if is_temporal(source) and is_temporal(target):
        return not (isinstance(source, DateType) and isinstance(target, TimeType)) and not (
            isinstance(source, TimeType) and isinstance(target, DateType)
        )
    if is_interval(source) and is_integer(target):
        return True
    if is_integer(source) and is_interval(target):
        return True
    match source, target:
        case ArrayType(), ArrayType():
            return casts_explicitly(source.element_type, target.element_type)
        case MultisetType(), MultisetType():
            return casts_explicitly(source.element_type, target.element_type)
        case MapType(), MapType():
            return casts_explicitly(source.key_type, target.key_type) and casts_explicitly(
                source.value_type, target.value_type
            )
        case RowType(), RowType():
            pairs = zip(source.field_types(), target.field_types(), strict=False)
            return len(source) == len(target) and all(casts_explicitly(one, other) for one, other in pairs)
    return False
