"""CSV: lines as rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from penstock.common.errors import InvalidProgramError, RecordFormatError, shorten
from penstock.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    RowDataBulkWriterFactory,
    SerializationSchema,
)
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo
from penstock.common.typeinfo.collections import _ElementsTypeInfo
from penstock.common.types import Row, RowKind, _make_row, _share
from penstock.datastream.connectors.file_system.formats import LineFormat, open_file, skip_byte_order_mark
from penstock.datastream.formats.conversion import POISON, Convert, as_digits, plain_value, reader_of
from penstock.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder, Dialect

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


_LONGEST_FIELD = (1 << 31) - 1  # Python's module stops at 128 KB unless told otherwise
_ROWS_AT_ONCE = 4_096


def _options(dialect: Dialect) -> dict[str, Any]:
    options: dict[str, Any] = {"delimiter": dialect.separator, "escapechar": dialect.escape}
    if dialect.quote is None:
        return {**options, "quoting": csv.QUOTE_NONE, "quotechar": None}
    return {**options, "quotechar": dialect.quote}


class _LineParser:
    """Fields of lines to rows."""

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect, order: list[int] | None = None) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        self._dialect = dialect
        self._options = _options(dialect)
        self._names = _share(row_type.get_field_names())
        self._readers = [_field_reader(kind, dialect) for kind in row_type.get_field_types()]
        self._column_readers = [
            _column_reader(kind, read, dialect)
            for kind, read in zip(row_type.get_field_types(), self._readers, strict=True)
        ]
        self._order = order
        self._expected = len(self._names)

    def fields(self, line: str) -> list[str]:
        """The fields of one line; a quote that stays open is an error."""
        rows = list(csv.reader([line], strict=True, **self._options))
        return rows[0] if rows else []

    def rows(self, lines: list[str]) -> list[Row] | None:
        """The rows of many lines, column by column; None if one of them needs a closer look."""
        try:
            rows = list(csv.reader(lines, strict=True, **self._options))
            if len(rows) != len(lines):  # a field that spans lines
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
            return [_make_row(names, values, insert) for values in zip(*columns, strict=True)]
        except (*POISON, IndexError, csv.Error):
            return None

    def row(self, fields: list[str]) -> Row:
        """A row of the fields of one line."""
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
        return _make_row(self._names, values, RowKind.INSERT)


def _field_reader(kind: TypeInformation, dialect: Dialect) -> Convert:
    null = dialect.null
    if isinstance(kind, _ElementsTypeInfo):
        element, separator = reader_of(kind.elem_type), dialect.array_separator
        if separator is None:
            raise InvalidProgramError("an array column needs an array element separator")
        read: Convert = lambda text: [element(part) for part in text.split(separator)] if text else []  # noqa: E731
    else:
        read = reader_of(kind)
    return read if null is None else (lambda text: None if text == null else read(text))


def _column_reader(kind: TypeInformation, read: Convert, dialect: Dialect) -> Convert | None:
    """What to call for a column: functions written in C where there are some, nothing for text."""
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


class CsvRowDeserializationSchema(DeserializationSchema):
    """Rows of CSV lines.

    >>> from penstock.common import Types
    >>> schema = CsvRowDeserializationSchema.Builder(Types.ROW([Types.STRING(), Types.INT()])).build()
    >>> schema.deserialize(b'"Lovelace, Ada",36')
    Row(f0='Lovelace, Ada', f1=36)
    """

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect, *, ignore_parse_errors: bool = False) -> None:
        self._row_type = row_type
        self._dialect = dialect
        self._ignore_parse_errors = ignore_parse_errors
        self._parser: _LineParser | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parser": None}

    def deserialize(self, message: bytes) -> Any:
        """The row in a message; ``None`` for a comment, and for a broken line if those are ignored."""
        if self._parser is None:
            self._parser = _LineParser(self._row_type, self._dialect)
        try:
            line = message.decode().rstrip("\r\n")
            if self._dialect.comments and line.startswith("#"):
                return None
            return self._parser.row(self._parser.fields(line))
        except (ValueError, csv.Error) as error:
            if self._ignore_parse_errors:
                return None
            raise RecordFormatError(f"not a CSV line of {self._row_type!r}: {error}", message=message) from None

    def get_produced_type(self) -> TypeInformation:
        return self._row_type

    class Builder:
        """Collects the settings."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._row_type = _checked(type_info)
            self._dialect = Dialect()
            self._ignore_parse_errors = False

        def _with(self, **changes: Any) -> CsvRowDeserializationSchema.Builder:
            self._dialect = replace(self._dialect, **changes)
            return self

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(separator=delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Leave out lines that begin with ``#``."""
            return self._with(comments=allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(array_separator=delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(quote=c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(escape=c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """The text that stands for no value."""
            return self._with(null=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Skip lines that cannot be read; ``decode(..., on_error=...)`` can keep them."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            return CsvRowDeserializationSchema(
                self._row_type, self._dialect, ignore_parse_errors=self._ignore_parse_errors
            )


class CsvRowSerializationSchema(SerializationSchema):
    r"""Rows as CSV lines.

    >>> from penstock.common import Types
    >>> schema = CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING(), Types.INT()])).build()
    >>> schema.serialize(("Lovelace, Ada", None))
    b'"Lovelace, Ada",\n'
    """

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect) -> None:
        self._row_type = row_type
        self._dialect = dialect

    def serialize(self, value: Any) -> bytes:
        fields = self._row_type._fields(value)
        if fields is None:
            raise RecordFormatError(str(self._row_type.validate(value)), message=value)
        texts = [self._text(field) for field in fields]
        options = _options(self._dialect)
        if self._dialect.quote is not None and any(isinstance(text, str) and "\r" in text for text in texts):
            options["quoting"] = csv.QUOTE_ALL  # the writer has an eye on its own line ends only
        line = io.StringIO()
        csv.writer(line, lineterminator=self._dialect.line_separator, **options).writerow(texts)
        return line.getvalue().encode()

    def _text(self, value: Any) -> Any:
        if value is None:
            return self._dialect.null or ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)) and self._dialect.array_separator is not None:
            return self._dialect.array_separator.join(str(self._text(part)) for part in value)
        return plain_value(value)

    class Builder:
        """Collects the settings."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._row_type = _checked(type_info)
            self._dialect = Dialect()

        def _with(self, **changes: Any) -> CsvRowSerializationSchema.Builder:
            self._dialect = replace(self._dialect, **changes)
            return self

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(separator=c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            return self._with(line_separator=delimiter)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            return self._with(array_separator=delimiter)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(quote=c)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            return self._with(quote=None)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(escape=c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """The text that stands for no value."""
            return self._with(null=s)

        def build(self) -> CsvRowSerializationSchema:
            return CsvRowSerializationSchema(self._row_type, self._dialect)


def _checked(type_info: Any) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidProgramError(f"CSV lines are rows: expected Types.ROW_NAMED(...), got {shorten(type_info)}")
    return type_info


class CsvReaderFormat(LineFormat):
    """CSV files, for a FileSource. A record is a line, so that a file can be read in parts, unless ``multiline`` says
    that a quoted field may go on in the next line: then it is read as a whole.
    """

    def __init__(self, schema: CsvSchema, *, ignore_parse_errors: bool = False, multiline: bool = False) -> None:
        super().__init__()
        self.skips_byte_order_mark = True
        self._schema = schema
        self._ignore_parse_errors = ignore_parse_errors
        self._multiline = multiline
        if multiline:
            self.split_units = None
        self._parser: _LineParser | None = None
        self.lines_to_skip = int(schema.use_header) + int(schema.skip_first_data_row)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parser": None}

    @staticmethod
    def for_schema(schema: CsvSchema, *, ignore_parse_errors: bool = False, multiline: bool = False) -> CsvReaderFormat:
        """The format of files with these columns.

        :param ignore_parse_errors: leave out lines that cannot be read. To keep them, read the lines as text and use
            ``decode(..., on_error=OutputTag(...))``.
        :param multiline: quoted fields may have line ends; a file is then read by one task, in one batch.
        """
        return CsvReaderFormat(schema, ignore_parse_errors=ignore_parse_errors, multiline=multiline)

    def length(self, path: str) -> int:
        return 1 if self._multiline else super().length(path)

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return end if self._multiline else super().advance(path, start, end, max_records)

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        """The header may name the columns in another order."""
        order = self._header_order(path) if self._schema.use_header else None
        self._parser = _LineParser(self._schema.row_type, self._schema.dialect, order)
        yield from self._read_whole(path) if self._multiline else super().read(path, start, end)

    def _read_whole(self, path: str) -> Iterator[list[Any]]:
        parser, comments = self._parser, self._schema.dialect.comments
        assert parser is not None
        records: list[Any] = []
        # Bytes that are no text must not end the reading of those behind them: they are found in their row.
        with io.TextIOWrapper(open_file(Path(path)), "utf-8-sig", "surrogateescape", newline="") as file:
            lines = (line for line in file if not (comments and line.startswith("#")))
            rows = csv.reader(islice(lines, self.lines_to_skip, None), strict=True, **_options(self._schema.dialect))
            while True:
                fields: Any = None
                try:
                    fields = next(rows, None)
                    if fields is None:
                        break
                    if fields:
                        "".join(fields).encode(self.charset)
                        records.append(parser.row(fields))
                except (ValueError, csv.Error) as error:
                    if not self._ignore_parse_errors:
                        where = f"{path}, before line {rows.line_num + self.lines_to_skip + 1}"
                        raise RecordFormatError(f"{where}: not of the CSV schema: {error}", message=fields) from None
                if len(records) >= _ROWS_AT_ONCE:
                    yield records
                    records = []
        if records:
            yield records

    def _header_order(self, path: str) -> list[int]:
        with open_file(Path(path)) as file:
            skip_byte_order_mark(file)
            line = file.readline().decode(self.charset).rstrip("\r\n")
        found = _LineParser(self._schema.row_type, self._schema.dialect).fields(line)
        columns = list(self._schema)
        missing = [name for name in columns if name not in found]
        if missing or (self._schema.strict_headers and found != columns):
            raise RecordFormatError(
                f"{path}: the header has the columns {', '.join(found)}, expected {', '.join(columns)}"
            )
        return [found.index(name) for name in columns]

    def decode_lines(self, lines: list[bytes], path: str) -> list[Any]:
        parser, comments = self._parser, self._schema.dialect.comments
        assert parser is not None
        if not comments and b"" not in lines:
            with suppress(UnicodeDecodeError):
                rows = parser.rows([line.decode(self.charset) for line in lines])
                if rows is not None:
                    return list(rows)
        records: list[Any] = []
        for line in lines:
            try:
                text = line.decode(self.charset)
                if text and not (comments and text.startswith("#")):
                    records.append(parser.row(parser.fields(text)))
            except (ValueError, csv.Error) as error:
                if not self._ignore_parse_errors:
                    advice = " (multiline=True reads fields that span lines)" if isinstance(error, csv.Error) else ""
                    reason = f"{path}: not a line of the CSV schema: {error}{advice}"
                    raise RecordFormatError(reason, message=line) from None
        return records

    def get_produced_type(self) -> TypeInformation:
        return self._schema.row_type


class CsvBulkWriters:
    """CSV files, for a FileSink."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Writers of files with these columns, with a header if the schema uses one."""
        return _CsvWriterFactory(schema)


class _CsvWriterFactory(RowDataBulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self._schema = schema

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _CsvWriter(self._schema, stream)


class _CsvWriter(BulkWriter):
    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._serialize = CsvRowSerializationSchema(schema.row_type, schema.dialect).serialize
        self._stream = stream
        if schema.use_header:
            stream.write(self._serialize(list(schema)))

    def add_element(self, element: Any) -> None:
        self._stream.write(self._serialize(element))

    def finish(self) -> None:
        return
