"""CSV messages and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
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
from penstock.formats.csv_lines import LineParser, LineWriter, csv_options
from penstock.formats.csv_schema import CsvSchema, CsvSchemaBuilder, Dialect
from penstock.formats.file_format import LineFormat, open_file, skip_byte_order_mark

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


_ROWS_AT_ONCE = 4_096


class CsvRowDeserializationSchema(DeserializationSchema):
    """Reads rows from CSV lines.

    >>> from penstock.common import Types
    >>> schema = CsvRowDeserializationSchema.Builder(Types.ROW([Types.STRING(), Types.INT()])).build()
    >>> schema.deserialize(b'"Lovelace, Ada",36')
    Row(f0='Lovelace, Ada', f1=36)
    """

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect, *, ignore_parse_errors: bool = False) -> None:
        self._row_type = row_type
        self._dialect = dialect
        self._ignore_parse_errors = ignore_parse_errors
        self._parser: LineParser | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parser": None}

    def deserialize(self, message: bytes) -> Any:
        """Return the row in a message, or ``None`` for a comment or for a broken line if those are ignored."""
        if self._parser is None:
            self._parser = LineParser(self._row_type, self._dialect)
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
        """Builds the schema."""

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
            """Skip lines that start with ``#``."""
            return self._with(comments=allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(array_separator=delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(quote=c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(escape=c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that means NULL."""
            return self._with(null=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether to skip unreadable lines. Use ``decode(..., on_error=...)`` to keep them."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            return CsvRowDeserializationSchema(
                self._row_type, self._dialect, ignore_parse_errors=self._ignore_parse_errors
            )


class CsvRowSerializationSchema(SerializationSchema):
    r"""Writes rows as CSV lines.

    >>> from penstock.common import Types
    >>> schema = CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING(), Types.INT()])).build()
    >>> schema.serialize(("Lovelace, Ada", None))
    b'"Lovelace, Ada",\n'
    """

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect) -> None:
        self._row_type = row_type
        self._dialect = dialect
        self._writer: LineWriter | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writer": None}

    def serialize(self, value: Any) -> bytes:
        if self._writer is None:
            self._writer = LineWriter(self._row_type, self._dialect)
        return self._writer.line(value).encode()

    class Builder:
        """Builds the schema."""

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
            """Set the text that means NULL."""
            return self._with(null=s)

        def build(self) -> CsvRowSerializationSchema:
            return CsvRowSerializationSchema(self._row_type, self._dialect)


def _checked(type_info: Any) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidProgramError(f"CSV lines are rows: expected Types.ROW_NAMED(...), got {shorten(type_info)}")
    return type_info


class CsvReaderFormat(LineFormat):
    """CSV files for a FileSource. Each line is a record, so that a file can be read in parts. With ``multiline``,
    quoted fields may span lines, and a file is read as a whole.
    """

    def __init__(self, schema: CsvSchema, *, ignore_parse_errors: bool = False, multiline: bool = False) -> None:
        super().__init__()
        self.skips_byte_order_mark = True
        self._schema = schema
        self._ignore_parse_errors = ignore_parse_errors
        self._multiline = multiline
        if multiline:
            self.split_units = None
        self._parser: LineParser | None = None
        self.lines_to_skip = int(schema.use_header) + int(schema.skip_first_data_row)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parser": None}

    @staticmethod
    def for_schema(schema: CsvSchema, *, ignore_parse_errors: bool = False, multiline: bool = False) -> CsvReaderFormat:
        """Create the format of files with these columns.

        :param ignore_parse_errors: skip unreadable lines; to keep them, read the lines as text and use
            ``decode(..., on_error=OutputTag(...))``
        :param multiline: quoted fields may contain line ends; one task then reads a file in one batch
        """
        return CsvReaderFormat(schema, ignore_parse_errors=ignore_parse_errors, multiline=multiline)

    def length(self, path: str) -> int:
        return 1 if self._multiline else super().length(path)

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return end if self._multiline else super().advance(path, start, end, max_records)

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        """Read a file, whose header may have the columns in another order."""
        order = self._header_order(path) if self._schema.use_header else None
        self._parser = LineParser(self._schema.row_type, self._schema.dialect, order)
        yield from self._read_whole(path) if self._multiline else super().read(path, start, end)

    def _read_whole(self, path: str) -> Iterator[list[Any]]:
        parser, comments = self._parser, self._schema.dialect.comments
        assert parser is not None
        records: list[Any] = []
        # Bytes that are not text must not stop the reading of later ones: they are found in their row.
        with io.TextIOWrapper(open_file(Path(path)), "utf-8-sig", "surrogateescape", newline="") as file:
            lines = (line for line in file if not (comments and line.startswith("#")))
            rows = csv.reader(islice(lines, self.lines_to_skip, None), strict=True, **csv_options(self._schema.dialect))
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
                        raise RecordFormatError(
                            f"{where}: not a record of the CSV schema: {error}", message=fields
                        ) from None
                if len(records) >= _ROWS_AT_ONCE:
                    yield records
                    records = []
        if records:
            yield records

    def _header_order(self, path: str) -> list[int] | None:
        """Return the positions of the columns in the file by its header, or None if they equal the schema's.

        As in Flink, unknown names are ignored. An unknown name in place of a column means that the column is missing.
        """
        with open_file(Path(path)) as file:
            skip_byte_order_mark(file)
            line = file.readline().decode(self.charset).rstrip("\r\n")
        found = LineParser(self._schema.row_type, self._schema.dialect).fields(line)
        columns = list(self._schema)
        missing = [name for name in columns if name not in found]
        elsewhere = [name for name in columns if name in found and found.index(name) != columns.index(name)]
        if (missing and elsewhere) or (self._schema.strict_headers and found != columns):
            raise RecordFormatError(
                f"{path}: the header has the columns {', '.join(found)}, expected {', '.join(columns)}"
            )
        return None if missing else [found.index(name) for name in columns]

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
    """Creates writers of CSV files for a FileSink."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Create a factory of writers for these columns, with a header if the schema uses one."""
        return _CsvWriterFactory(schema)


class _CsvWriterFactory(RowDataBulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self._schema = schema

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _CsvWriter(self._schema, stream)


class _CsvWriter(BulkWriter):
    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._writer = LineWriter(schema.row_type, schema.dialect)
        self._stream = stream
        if schema.use_header:
            stream.write(self._writer.header().encode())

    def add_element(self, element: Any) -> None:
        self._stream.write(self._writer.line(element).encode())

    def finish(self) -> None:
        return
