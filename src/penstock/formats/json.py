"""JSON messages and files."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any, BinaryIO

from penstock.common.errors import InvalidProgramError, RecordFormatError, shorten
from penstock.common.serialization import DeserializationSchema, Encoder, SerializationSchema
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.formats.conversion import POISON, Convert, plain_value, row_reader, row_writer
from penstock.formats.file_format import LineFormat
from penstock.formats.json_schema import row_type_of

__all__ = [
    "JsonLinesEncoder",
    "JsonReaderFormat",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "json_bytes",
    "json_value",
]


_decode = json.JSONDecoder().decode


def json_value(message: bytes) -> Any:
    """Parse like json.loads, but without detecting the encoding, which would take longer than the rest."""
    return _decode(message.decode())


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON. NaN and infinity become texts, since JSON has no numbers for them."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list) else value


class JsonRowDeserializationSchema(DeserializationSchema):
    """Reads rows from JSON objects. Unknown fields are ignored; missing ones are ``None``.

    >>> kind = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(kind).build()
    >>> schema.deserialize(b'{"name": "Ada", "age": 36, "more": true}')
    Row(name='Ada', age=36)
    """

    def __init__(
        self, row_type: RowTypeInfo, *, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        if fail_on_missing_field and ignore_parse_errors:
            raise InvalidProgramError("fail_on_missing_field and ignore_parse_errors exclude each other")
        self._row_type = row_type
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._read: Convert | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Any:
        """Return the row in a message, or ``None`` if it is broken and broken ones are ignored."""
        if self._read is None:
            self._read = row_reader(self._row_type, fail_on_missing_field=self._fail_on_missing_field)
        try:
            return self._read(_decode(message.decode()))
        except POISON as error:
            if self._ignore_parse_errors:
                return None
            raise RecordFormatError(f"not the JSON of a {self._row_type!r}: {error}", message=message) from None

    def get_produced_type(self) -> TypeInformation:
        return self._row_type

    class Builder:
        """Builds the schema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: RowTypeInfo) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows."""
            self._row_type = _checked(type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows as a JSON schema."""
            self._row_type = row_type_of(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Reject objects that lack a field of the type."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skip unreadable messages. Use ``decode(..., on_error=...)`` to keep them."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            if self._row_type is None:
                raise InvalidProgramError("a JSON schema needs type_info(...) or json_schema(...)")
            return JsonRowDeserializationSchema(
                self._row_type,
                fail_on_missing_field=self._fail_on_missing_field,
                ignore_parse_errors=self._ignore_parse_errors,
            )


class JsonRowSerializationSchema(SerializationSchema):
    """Writes rows as JSON objects.

    >>> kind = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonRowSerializationSchema.builder().with_type_info(kind).build().serialize(("Ada", 36))
    b'{"name":"Ada","age":36}'
    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type
        self._write: Convert | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_write": None}

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        return JsonRowSerializationSchema.Builder()

    def serialize(self, value: Any) -> bytes:
        if self._write is None:
            self._write = row_writer(self._row_type)
        return json_bytes(self._write(value))

    class Builder:
        """Builds the schema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None

        def with_type_info(self, type_info: RowTypeInfo) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows."""
            self._row_type = _checked(type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            if self._row_type is None:
                raise InvalidProgramError("a JSON schema needs with_type_info(...)")
            return JsonRowSerializationSchema(self._row_type)


def _checked(type_info: Any) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidProgramError(f"JSON objects are rows: expected Types.ROW_NAMED(...), got {shorten(type_info)}")
    return type_info


class JsonReaderFormat(LineFormat):
    """Files of JSON lines for a FileSource, as rows of a type or, without a type, as dicts.

    :param ignore_parse_errors: skip unreadable lines; to keep them, read the lines as text and use
        ``decode(..., on_error=OutputTag(...))``
    """

    def __init__(self, type_info: RowTypeInfo | None = None, *, ignore_parse_errors: bool = False) -> None:
        super().__init__()
        self.skips_byte_order_mark = True
        self._schema = None if type_info is None else JsonRowDeserializationSchema(_checked(type_info))
        self._ignore_parse_errors = ignore_parse_errors

    def decode_lines(self, lines: list[bytes], path: str) -> list[Any]:
        read = json_value if self._schema is None else self._schema.deserialize
        with suppress(*POISON):  # the code below finds the broken line
            whole = [line for line in lines if line.strip()]
            return [read(line) for line in whole]
        records: list[Any] = []
        for line in lines:
            if line.strip():
                try:
                    records.append(read(line))
                except POISON as error:
                    if not self._ignore_parse_errors:
                        raise RecordFormatError(f"{path}: {error}", message=line) from None
        return records

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY() if self._schema is None else self._schema.get_produced_type()


class JsonLinesEncoder(Encoder):
    r"""Writes records as JSON lines for a FileSink: rows, dicts, lists and all values of JSON.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> JsonLinesEncoder().encode({"a": (1, None)}, stream)
    >>> stream.getvalue()
    b'{"a":[1,null]}\n'
    """

    def encode(self, value: Any, stream: BinaryIO) -> None:
        stream.write(json_bytes(plain_value(value)) + b"\n")
