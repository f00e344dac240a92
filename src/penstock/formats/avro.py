"""Avro messages and files, based on fastavro (extra ``avro``)."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.io import InputFormat
from penstock.common.serialization import BulkWriter, BulkWriterFactory, DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.typeinfo.avro import AvroSchema, GenericRecordAvroTypeInfo, fastavro_module
from penstock.common.types import Row
from penstock.formats.avro_records import avro_record, avro_row
from penstock.formats.file_format import StreamFormat

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaderFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

_BYTES_PER_RECORD = 32  # an estimate, to convert a number of records to bytes
_SPLIT_BYTES = 64 << 20
_RECORDS_PER_BLOCK = 4_096
_SYNC_BYTES = 16


class AvroRowDeserializationSchema(DeserializationSchema):
    """Reads rows from messages with one Avro record each, without a header.

    It does not use a schema registry. With ``framed``, it reads messages in Confluent's framing (a zero byte and a
    schema id), always with the given schema.
    """

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None, *, framed: bool = False
    ) -> None:
        self._schema = _only_by_schema(record_class, avro_schema_string)
        self._framed = framed

    def deserialize(self, message: bytes) -> Row:
        body = message
        if self._framed:
            if len(message) < 5 or message[0] != 0:
                raise RecordFormatError("the message lacks the frame of a schema registry", message=message)
            body = message[5:]
        stream = io.BytesIO(body)
        try:
            record = fastavro_module().schemaless_reader(stream, self._schema.parsed, None)
        except Exception as error:
            raise RecordFormatError(
                f"not an Avro record of {self._schema!r}: {type(error).__name__}: {error}", message=message
            ) from None
        if stream.tell() != len(body):
            raise RecordFormatError(f"extra bytes follow a record of {self._schema!r}", message=message)
        return avro_row(self._schema, record)

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


class AvroRowSerializationSchema(SerializationSchema):
    """Writes rows or dicts as one Avro record each, without a header."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _only_by_schema(record_class, avro_schema_string)

    def serialize(self, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            fastavro_module().schemaless_writer(stream, self._schema.parsed, avro_record(value, self._schema))
        except Exception as error:
            raise RecordFormatError(f"not a record of {self._schema!r}: {error}", message=value) from None
        return stream.getvalue()


def _only_by_schema(record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if avro_schema_string is None:
        raise InvalidProgramError("Avro needs avro_schema_string: there are no generated classes in Python")
    return AvroSchema.parse_string(avro_schema_string)


class AvroReaderFormat(StreamFormat):
    """Avro files for a FileSource, as dicts. Ranges may begin at any byte: a range has the blocks that begin in it.

    :param schema: the schema of the reader, by Avro's rules of schema evolution; the default is that of the writer
    """

    split_units = _SPLIT_BYTES

    def __init__(self, schema: AvroSchema | None = None) -> None:
        fastavro_module()
        self._schema = schema

    def length(self, path: str) -> int:
        return Path(path).stat().st_size

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return min(end, start + max_records * _BYTES_PER_RECORD)

    def record_count(self, path: str, start: int, end: int) -> int:
        return max(1, (end - start) // _BYTES_PER_RECORD)

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        wanted = None if self._schema is None else self._schema.parsed
        with Path(path).open("rb") as file:
            try:
                blocks = fastavro_module().block_reader(file, reader_schema=wanted)
            except Exception as error:
                raise RecordFormatError(f"{path} is not an Avro file: {error}") from None
            begin = file.tell()
            if start > begin:
                # The mark before a block identifies it. A block whose mark ends at `start` begins in this range.
                file.seek(_behind_mark(file, blocks._header["sync"], start - _SYNC_BYTES))
            while file.tell() < end:
                block = next(blocks, None)
                if block is None:
                    return
                yield list(block)

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


def _behind_mark(file: BinaryIO, mark: bytes, position: int) -> int:
    """Return the position after the first mark from a position on, or the end of the file."""
    file.seek(position)
    window = b""
    while chunk := file.read(1 << 16):
        window += chunk
        found = window.find(mark)
        if found >= 0:
            return position + found + len(mark)
        keep = len(mark) - 1
        position += len(window) - keep
        window = window[-keep:]
    return file.seek(0, io.SEEK_END)


class AvroInputFormat(InputFormat):
    """Avro files for ``env.create_input``."""

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._schema = schema

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def as_source(self) -> Any:
        """Return the files as a bounded source."""
        from penstock.connectors.file_system.source import FileSource

        return FileSource.for_record_stream_format(AvroReaderFormat(self._schema), self._path).build()


class AvroBulkWriters:
    """Creates writers of Avro files for a FileSink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, codec: str = "deflate") -> BulkWriterFactory:
        """Create a factory of writers for dicts or rows with the fields of the schema."""
        return _AvroWriterFactory(schema, codec)


class _AvroWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema, codec: str) -> None:
        self._schema = schema
        self._codec = codec

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _AvroWriter(stream, self._schema, self._codec)


class _AvroWriter(BulkWriter):
    """Collects records in blocks. It writes the header with the first block."""

    def __init__(self, stream: BinaryIO, schema: AvroSchema, codec: str) -> None:
        writers: Any = importlib.import_module("fastavro.write")
        self._schema = schema
        self._writer = writers.Writer(stream, schema.parsed, codec)
        self._records = 0

    def add_element(self, element: Any) -> None:
        try:
            self._writer.write(avro_record(element, self._schema))
        except Exception as error:
            raise RecordFormatError(f"not a record of {self._schema!r}: {error}", message=element) from None
        self._records += 1
        if self._records % _RECORDS_PER_BLOCK == 0:
            self._writer.dump()

    def finish(self) -> None:
        self._writer.flush()
