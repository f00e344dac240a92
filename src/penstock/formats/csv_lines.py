"""Converts lines of CSV to rows and back."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo
from penstock.common.typeinfo.collections import ElementsTypeInfo
from penstock.common.typeinfo.composite import TupleTypeInfo
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.common.typeinfo.java_text import java_double, java_float
from penstock.common.types import Row, RowKind, make_row, share_names
from penstock.formats.conversion import POISON, Convert, as_digits, is_bytes, plain_value, reader_of
from penstock.formats.csv_schema import Dialect

_LONGEST_FIELD = (1 << 31) - 1  # the default of Python's module is 128 KB
_LONGEST_UNQUOTED = 24  # Flink's writer always quotes longer texts

ToText = Callable[[Any], str]


def csv_options(dialect: Dialect) -> dict[str, Any]:
    """Return the options of a dialect for Python's csv module."""
    options: dict[str, Any] = {"delimiter": dialect.separator, "escapechar": dialect.escape}
    if dialect.quote is None:
        return {**options, "quoting": csv.QUOTE_NONE, "quotechar": None}
    return {**options, "quotechar": dialect.quote}


class LineParser:
    """Converts lines to rows."""

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect, order: Sequence[int] | None = None) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        self._dialect = dialect
        self._options = csv_options(dialect)
        self._names = share_names(row_type.get_field_names())
        self._readers = [
            _field_reader(kind, dialect, dialect.array_separator_of(name))
            for name, kind in zip(self._names, row_type.get_field_types(), strict=True)
        ]
        self._column_readers = [
            _column_reader(kind, read, dialect)
            for kind, read in zip(row_type.get_field_types(), self._readers, strict=True)
        ]
        self._order = order
        self._expected = len(self._names)

    def fields(self, line: str) -> list[str]:
        """Return the fields of one line. An unclosed quote is an error."""
        rows = list(csv.reader([line], strict=True, **self._options))
        return rows[0] if rows else []

    def rows(self, lines: list[str]) -> list[Row] | None:
        """Return the rows of many lines, converted by column, or None if a line needs individual handling."""
        try:
            rows = list(csv.reader(lines, strict=True, **self._options))
            if len(rows) != len(lines):  # a field spans lines
                return None
            columns: list[Any] = list(zip(*rows, strict=True))
            if self._order is not None:
                columns = [columns[position] for position in self._order]
            if len(columns) != self._expected:
                return None
            columns = [
                column if read is None else read(column)
                for read, column in zip(self._column_readers, columns, strict=True)
            ]
            names, insert = self._names, RowKind.INSERT
            return [make_row(names, values, insert) for values in zip(*columns, strict=True)]
        except (*POISON, IndexError, csv.Error):
            return None

    def row(self, fields: list[str]) -> Row:
        """Return the row for the fields of one line."""
        if self._order is not None:
            if len(fields) <= max(self._order):
                raise ValueError(f"expected a field for each column of the header, got {len(fields)}")
            fields = [fields[position] for position in self._order]
        if len(fields) != self._expected:
            raise ValueError(f"expected {self._expected} fields, got {len(fields)}")
        values: list[Any] = []
        for name, read, field in zip(self._names, self._readers, fields, strict=True):
            try:
                values.append(read(field))
            except POISON as error:
                raise ValueError(f"field {name!r}: {error}") from None
        return make_row(self._names, values, RowKind.INSERT)


def _field_reader(kind: TypeInformation, dialect: Dialect, separator: str | None) -> Convert:
    null = dialect.null
    if isinstance(kind, (ElementsTypeInfo, RowTypeInfo, TupleTypeInfo)) and not is_bytes(kind):
        if separator is None:
            raise InvalidProgramError("an array column needs an array element separator")
        read = _parts_reader(kind, separator)
    else:
        read = reader_of(kind)
    return read if null is None else (lambda text: None if text == null else read(text))


def _parts_reader(kind: TypeInformation, separator: str) -> Convert:
    if isinstance(kind, ElementsTypeInfo):
        element = reader_of(kind.elem_type)
        return lambda text: [element(part) for part in text.split(separator)] if text else []
    assert isinstance(kind, (RowTypeInfo, TupleTypeInfo))
    readers = [reader_of(part) for part in kind.get_field_types()]
    make = (
        partial(make_row, share_names(kind.get_field_names()), kind=RowKind.INSERT)
        if isinstance(kind, RowTypeInfo)
        else tuple
    )

    def read(text: str) -> Any:
        parts = text.split(separator)
        if len(parts) != len(readers):
            raise ValueError(f"expected {len(readers)} parts, got {len(parts)}")
        return make([reader(part) for reader, part in zip(readers, parts, strict=True)])

    return read


def _column_reader(kind: TypeInformation, read: Convert, dialect: Dialect) -> Convert | None:
    """Return the function that reads a column: one written in C where possible, None for text."""
    if dialect.null is None and isinstance(kind, BasicTypeInfo):
        if kind.basic_type is BasicType.STRING:
            return None
        if kind.basic_type in (BasicType.LONG, BasicType.INT, BasicType.BIG_INT):
            return lambda column: _integers(kind, column)
        if kind.basic_type is BasicType.DOUBLE:
            return lambda column: map(float, _digits(column))
    return lambda column: map(read, column)


def _digits(column: Sequence[str]) -> Sequence[str]:
    as_digits("".join(column))
    return column


def _integers(kind: BasicTypeInfo, column: Sequence[str]) -> list[int]:
    numbers = list(map(int, _digits(column)))
    for number in (min(numbers), max(numbers)):
        if kind.validate(number) is not None:
            raise ValueError(number)
    return numbers


class LineWriter:
    """Converts rows to lines in the format of Flink's writer (Jackson).

    Jackson quotes a text if a character in it is not greater than the separator, the quote or the line end, and if it
    is long. That is more often than necessary, but makes files identical byte by byte.
    """

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect) -> None:
        self._row_type = row_type
        self._dialect = dialect
        quote, escape = dialect.quote, dialect.escape
        safe = max(dialect.separator, quote or "", *dialect.line_separator)
        self._unsafe = re.compile(f"[\0-{re.escape(safe)}{re.escape(escape or '')}]")
        self._special = re.compile(f"[{re.escape(dialect.separator + dialect.line_separator + (escape or ''))}]")
        self._to_texts = [
            self._field(kind, dialect.array_separator_of(name))
            for name, kind in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
        ]

    def line(self, value: Any) -> str:
        """Return the line of a row, with the line end."""
        fields = self._row_type._fields(value)
        if fields is None:
            raise RecordFormatError(str(self._row_type.validate(value)), message=value)
        null = self._dialect.null or ""
        texts = [
            null if field is None else to_text(field) for to_text, field in zip(self._to_texts, fields, strict=True)
        ]
        return self._dialect.separator.join(texts) + self._dialect.line_separator

    def header(self) -> str:
        """Return the line with the names of the columns."""
        return self._dialect.separator.join(map(self.quoted, self._row_type.get_field_names())) + (
            self._dialect.line_separator
        )

    def quoted(self, text: str) -> str:
        """Return a text as a field, in quotes if necessary."""
        quote, escape = self._dialect.quote, self._dialect.escape
        if quote is None:
            return self._unquoted(text)
        if len(text) <= _LONGEST_UNQUOTED and self._unsafe.search(text) is None:
            return text
        if escape is not None:
            text = text.replace(escape, escape + escape)
        return quote + text.replace(quote, quote + quote) + quote

    def _unquoted(self, text: str) -> str:
        if self._special.search(text) is None:
            return text
        escape = self._dialect.escape
        if escape is None:
            raise RecordFormatError(
                "a text with a separator or a line end needs a quote character or an escape character", message=text
            )
        return self._special.sub(lambda found: escape + found[0], text)

    def _field(self, kind: TypeInformation, separator: str | None) -> ToText:
        if isinstance(kind, DecimalTypeInfo):
            return _decimal_text(kind, self._dialect.null or "")
        number = _number_text(kind)
        if number is not None:
            return number
        if separator is None or is_bytes(kind):
            return lambda value: self.quoted(str(_plain(value)))
        if isinstance(kind, ElementsTypeInfo):
            element = _part_text(kind.elem_type)
            return lambda value: self.quoted(separator.join(map(element, value)))
        if isinstance(kind, (RowTypeInfo, TupleTypeInfo)):
            parts = [_part_text(part) for part in kind.get_field_types()]
            return lambda value: self.quoted(
                separator.join(part(field) for part, field in zip(parts, _fields(kind, value), strict=True))
            )
        return lambda value: self.quoted(str(_plain(value)))


def _fields(kind: RowTypeInfo | TupleTypeInfo, value: Any) -> Sequence[Any]:
    fields: Sequence[Any] | None = kind._fields(value) if isinstance(kind, RowTypeInfo) else value
    if fields is None:
        raise RecordFormatError(str(kind.validate(value)), message=value)
    return fields


def _decimal_text(kind: DecimalTypeInfo, null: str) -> ToText:
    def text(value: Any) -> str:
        fitting = kind.fit(value)
        return null if fitting is None else str(fitting)

    return text


def _number_text(kind: TypeInformation) -> ToText | None:
    """Return the function that writes a type without quotes, whatever the value contains."""
    if not isinstance(kind, BasicTypeInfo):
        return None
    if isinstance(kind, DecimalTypeInfo):
        return _decimal_text(kind, "")
    if kind.basic_type is BasicType.FLOAT:
        return java_float
    if kind.basic_type is BasicType.DOUBLE:
        return lambda value: java_double(float(value))
    if kind.basic_type is BasicType.BOOLEAN:
        return lambda value: "true" if value else "false"
    if kind.basic_type in (BasicType.STRING, BasicType.CHAR, BasicType.INSTANT):
        return None
    return str


def _part_text(kind: TypeInformation) -> ToText:
    to_text = _number_text(kind) or (lambda value: str(_plain(value)))
    return lambda value: "" if value is None else to_text(value)


def _plain(value: Any) -> Any:
    """Convert a value that needs no type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else plain_value(value)
