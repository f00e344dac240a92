"""The format ``avro``: files that contain their schema, and binary messages."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, ClassVar

from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.common.typeinfo.avro import fastavro_module
from penstock.core.table.arrow import python_values
from penstock.core.table.type_rules import is_character
from penstock.core.table.types import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
)
from penstock.formats.file_format import FileFormat, StreamFormat
from penstock.runtime.table.batch import INSERT
from penstock.table.formats.base import Change, TableFormat, batch_of_changes, table_format
from penstock.table.plan.nodes.base import Field
from penstock.util.exceptions import ValidationException

_PLAIN: dict[type[DataType], Any] = {
    BooleanType: "boolean",
    TinyIntType: "int",
    SmallIntType: "int",
    IntType: "int",
    BigIntType: "long",
    FloatType: "float",
    DoubleType: "double",
    BinaryType: "bytes",
    VarBinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: {"type": "int", "logicalType": "time-millis"},
    TimestampType: {"type": "long", "logicalType": "timestamp-millis"},
    LocalZonedTimestampType: {"type": "long", "logicalType": "timestamp-millis"},
}


def avro_schema(fields: Sequence[tuple[str, DataType]], name: str = "record") -> dict[str, Any]:
    """Return the Avro schema of a row. Nullable columns are unions."""
    columns: list[dict[str, Any]] = []
    for column, type_ in fields:
        made = _avro_type(type_, f"{name}_{column}")
        if type_.is_nullable:
            columns.append({"name": column, "type": ["null", made], "default": None})
        else:
            columns.append({"name": column, "type": made})
    return {"type": "record", "name": name, "fields": columns}


def _avro_type(type_: DataType, name: str) -> Any:
    plain = _PLAIN.get(type(type_))
    if plain is not None:
        return plain
    match type_:
        case _ if is_character(type_):
            return "string"
        case DecimalType():
            return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
        case ArrayType():
            return {"type": "array", "items": _nullable(type_.element_type, name)}
        case MapType() if is_character(type_.key_type):
            return {"type": "map", "values": _nullable(type_.value_type, name)}
        case RowType():
            return avro_schema([(one.name, one.data_type) for one in type_.fields], name)
    raise ValidationException(f"Avro does not support values of type {type_}")


def _nullable(type_: DataType, name: str) -> Any:
    made = _avro_type(type_, name)
    return ["null", made] if type_.is_nullable else made


@table_format("avro")
class AvroFormat(TableFormat):
    """Records with the fields of the table. Files may have other fields, in another order."""

    options: ClassVar[dict[str, str | None]] = {
        "codec": "snappy",
        "encoding": "binary",
        "timestamp_mapping.legacy": "true",
    }
    file_suffix = ".avro"

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        super().__init__(fields, options)
        self._schema = avro_schema([(one.name, one.type) for one in fields])

    def decode(self, message: bytes) -> Sequence[Change]:
        """Decode one record without a schema."""
        record = fastavro_module().schemaless_reader(io.BytesIO(message), self._schema)
        return [(INSERT, avro_values(record, self.fields))]

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Encode one record without a schema."""
        stream = io.BytesIO()
        fastavro_module().schemaless_writer(stream, self._schema, avro_values_out(values, self.fields))
        return stream.getvalue()

    def file_format(self) -> FileFormat | None:
        """Return the format of files with their schema."""
        return _AvroFiles(self.fields)

    def bulk_writer(self) -> BulkWriterFactory | None:
        """Return the writers of files with the table's schema."""
        codec = self.given["codec"]
        return _AvroWriters(self.fields, self._schema, "deflate" if codec == "snappy" else codec)


def avro_values(record: dict[str, Any], fields: Sequence[Field]) -> list[Any]:
    """Return the values of a record."""
    return [_read(record.get(field.name), field.type) for field in fields]


def _read(value: Any, type_: DataType) -> Any:
    if isinstance(value, dt.datetime) and isinstance(type_, TimestampType):
        return value.replace(tzinfo=None)
    if isinstance(value, dict) and isinstance(type_, RowType):
        return [_read(value.get(one.name), one.data_type) for one in type_.fields]
    return value


def avro_values_out(values: Sequence[Any], fields: Sequence[Field]) -> dict[str, Any]:
    """Return a row as a record."""
    return {field.name: _write(value, field.type) for field, value in zip(fields, values, strict=True)}


def _write(value: Any, type_: DataType) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    if value is not None and isinstance(type_, RowType):
        return {one.name: _write(item, one.data_type) for one, item in zip(type_.fields, value, strict=True)}
    return value


class _AvroFiles(StreamFormat):
    """Reads a file as a whole."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)

    def read_file(self, stream: BinaryIO) -> Iterable[Any]:
        for record in fastavro_module().reader(stream):
            yield INSERT, avro_values(record, self._fields)

    def read(self, path: str, start: int, end: int) -> Any:
        for changes in super().read(path, start, end):
            yield batch_of_changes(changes, self._fields)


class _AvroWriters(BulkWriterFactory):
    def __init__(self, fields: Sequence[Field], schema: dict[str, Any], codec: str) -> None:
        self._fields = tuple(fields)
        self._schema = schema
        self._codec = codec

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _AvroWriter(stream, self._fields, self._schema, self._codec)


class _AvroWriter(BulkWriter):
    def __init__(self, stream: BinaryIO, fields: Sequence[Field], schema: dict[str, Any], codec: str) -> None:
        self._stream = stream
        self._fields = fields
        self._schema = schema
        self._codec = codec
        self._records: list[dict[str, Any]] = []

    def add_element(self, element: Any) -> None:
        columns = [
            python_values(column, field.type) for column, field in zip(element.columns, self._fields, strict=True)
        ]
        self._records += [avro_values_out(row, self._fields) for row in zip(*columns, strict=True)]

    def finish(self) -> None:
        fastavro_module().writer(self._stream, self._schema, self._records, codec=self._codec)
