"""Parses types in text form: ``ROW<id BIGINT NOT NULL, tags ARRAY<STRING>>``."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.core.table.types import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DataTypes,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    Resolution,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)
from penstock.util.exceptions import ValidationException

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^']|'')*'|[A-Za-z_][A-Za-z_0-9]*|\d+|[<>(),])")

_SIMPLE: dict[str, Callable[[], DataType]] = {
    "NULL": NullType,
    "BOOLEAN": BooleanType,
    "TINYINT": TinyIntType,
    "SMALLINT": SmallIntType,
    "INT": IntType,
    "INTEGER": IntType,
    "BIGINT": BigIntType,
    "FLOAT": FloatType,
    "DATE": DateType,
    "STRING": VarCharType,
    "BYTES": VarBinaryType,
}
_SIZED: dict[str, Callable[[int], DataType]] = {
    "CHAR": CharType,
    "CHARACTER": CharType,
    "VARCHAR": VarCharType,
    "BINARY": BinaryType,
    "VARBINARY": VarBinaryType,
}
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def parse_type(text: str) -> DataType:
    """Parse a type.

    >>> parse_type("ARRAY<DECIMAL(10, 2)> NOT NULL")
    ARRAY<DECIMAL(10, 2)> NOT NULL
    """
    parser = TypeParser(text)
    result = parser.type()
    if parser.peek() is not None:
        raise ValidationException(f"Could not parse type '{text}': unexpected '{parser.peek()}'")
    return result


class TypeParser:
    """Reads types from text. ``position`` is the start of the text after a type."""

    def __init__(self, text: str, position: int = 0) -> None:
        self._text = text
        self.position = position

    def peek(self) -> str | None:
        """Return the next token, or None at the end."""
        found = _TOKEN.match(self._text, self.position)
        if found is None:
            rest = self._text[self.position :].strip()
            return rest[:1] or None
        return found.group(1)

    def next(self) -> str:
        """Take the next token."""
        found = _TOKEN.match(self._text, self.position)
        if found is None:
            raise ValidationException(f"Could not parse type '{self._text.strip()}'")
        self.position = found.end()
        return found.group(1)

    def accept(self, *words: str) -> bool:
        """Take words if they come next."""
        start = self.position
        for word in words:
            token = self.peek()
            if token is None or token.upper() != word:
                self.position = start
                return False
            self.next()
        return True

    def expect(self, word: str) -> None:
        """Take a word that must come next."""
        if not self.accept(word):
            raise ValidationException(f"Could not parse type '{self._text.strip()}': '{word}' expected")

    def type(self) -> DataType:
        """Parse a type with its nullability."""
        result = self._base()
        while True:
            if self.accept("NOT", "NULL"):
                result = result.not_null()
            elif self.accept("NULL"):
                result = result.nullable()
            elif self.accept("ARRAY"):
                result = ArrayType(result)
            elif self.accept("MULTISET"):
                result = MultisetType(result)
            else:
                return result

    def _base(self) -> DataType:
        name = self.next().upper()
        if name in _SIMPLE:
            return _SIMPLE[name]()
        if name in _SIZED:
            if name in ("CHAR", "CHARACTER") and self.accept("VARYING"):
                name = "VARCHAR"
            return _SIZED[name](self._number(1))
        if name == "DOUBLE":
            self.accept("PRECISION")
            return DoubleType()
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if name in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
            return self._time(name)
        if name == "INTERVAL":
            return self._interval()
        return self._nested(name)

    def _nested(self, name: str) -> DataType:
        match name:
            case "ARRAY":
                return ArrayType(self._inner()[0])
            case "MULTISET":
                return MultisetType(self._inner()[0])
            case "MAP":
                key, value = self._inner()
                return MapType(key, value)
            case "ROW":
                return self._row()
        raise ValidationException(f"Could not parse type '{self._text.strip()}': unknown type '{name}'")

    def _inner(self) -> list[DataType]:
        self.expect("<")
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        self.expect(">")
        return types

    def _row(self) -> DataType:
        closing = ">" if self.accept("<") else ")"
        if closing == ")":
            self.expect("(")
        fields: list[RowField] = []
        while not self.accept(closing):
            if fields:
                self.expect(",")
            start = self.position
            name = self.next()
            following = (self.peek() or "").upper()
            if following in (",", closing, "<", "(") or (following == "NOT" and not name.startswith("`")):
                self.position = start  # a type without a name
                fields.append(RowField(f"f{len(fields)}", self.type()))
                continue
            type_ = self.type()
            comment = self.next()[1:-1] if (self.peek() or "").startswith("'") else None
            fields.append(RowField(unquote(name), type_, comment))
        return RowType(tuple(fields))

    def _number(self, default: int) -> int:
        if not self.accept("("):
            return default
        number = int(self.next())
        self.expect(")")
        return number

    def _decimal(self) -> DataType:
        precision, scale = 10, 0
        if self.accept("("):
            precision = int(self.next())
            if self.accept(","):
                scale = int(self.next())
            self.expect(")")
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValidationException(
                f"Decimal precision must be between 1 and 38 and scale between 0 and the precision, "
                f"got DECIMAL({precision}, {scale})"
            )
        return DecimalType(precision, scale)

    def _time(self, name: str) -> DataType:
        if name == "TIME":
            precision = self._number(0)
            self.accept("WITHOUT", "TIME", "ZONE")
            return TimeType(precision)
        precision = self._number(6)
        if not 0 <= precision <= 9:
            raise ValidationException(f"Timestamp precision must be between 0 and 9, got {precision}")
        if name == "TIMESTAMP_LTZ" or self.accept("WITH", "LOCAL", "TIME", "ZONE"):
            return LocalZonedTimestampType(precision)
        self.accept("WITHOUT", "TIME", "ZONE")
        return TimestampType(precision)

    def _interval(self) -> DataType:
        units = [self._resolution()]
        if self.accept("TO"):
            units.append(self._resolution())
        return DataTypes.INTERVAL(*units)

    def _resolution(self) -> Resolution:
        name = self.next().upper()
        if name not in _UNITS:
            raise ValidationException(
                f"Could not parse type '{self._text.strip()}': '{name}' is not a unit of an interval"
            )
        default = {"YEAR": 2, "DAY": 2, "SECOND": 6}.get(name, -1)
        return Resolution(name, self._number(default))


def unquote(name: str) -> str:
    """Return a name without its backticks."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
