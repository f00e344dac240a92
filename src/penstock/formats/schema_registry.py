"""Avro with a schema registry: messages begin with a zero byte and the id of the schema of their writer.

It uses the registry's REST API over HTTP, without a client package.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.request
from time import sleep
from typing import Any
from urllib.parse import quote

from penstock.common.errors import InvalidProgramError, JobExecutionError, RecordFormatError
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.typeinfo.avro import AvroSchema, fastavro_module
from penstock.common.types import Row
from penstock.formats.avro_records import avro_record, avro_row

__all__ = [
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "SchemaRegistry",
]

_MAGIC = 0
_HEADER = struct.Struct(">bI")
_ROUNDS = 5
_FIRST_PAUSE_SECONDS = 0.05


class SchemaRegistry:
    """A client of a registry's REST API. It caches responses, since the meaning of an id never changes.

    :param url: one address, or several separated by commas; if one is unavailable, the next is used
    :param credentials: user and password, for basic authentication
    """

    def __init__(self, url: str, credentials: tuple[str, str] | None = None, timeout_ms: int = 10_000) -> None:
        self._urls = [one.strip().rstrip("/") for one in url.split(",")]
        if not all(one.startswith(("http://", "https://")) for one in self._urls):
            raise InvalidProgramError(
                f"the address of a schema registry must be like http://localhost:8081, got {url!r}"
            )
        self._credentials = credentials
        self._timeout_ms = timeout_ms
        self._schemas: dict[int, AvroSchema] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_schemas": {}, "_ids": {}}

    def schema(self, schema_id: int) -> AvroSchema:
        """Return the schema with an id, or raise :class:`RecordFormatError` if it is unknown."""
        found = self._schemas.get(schema_id)
        if found is None:
            answer = self._ask("GET", f"/schemas/ids/{schema_id}", None)
            if answer is None:
                raise RecordFormatError(f"the schema registry at {self._urls[0]} has no schema {schema_id}")
            if answer.get("schemaType", "AVRO") != "AVRO":
                raise RecordFormatError(f"schema {schema_id} is of type {answer['schemaType']}, not Avro")
            found = self._schemas[schema_id] = AvroSchema.parse_string(answer["schema"])
        return found

    def register(self, subject: str, schema: str) -> int:
        """Return the id of a schema of a subject. A new schema is registered."""
        known = self._ids.get((subject, schema))
        if known is None:
            path = f"/subjects/{quote(subject, safe='')}/versions"
            answer = self._ask("POST", path, {"schema": schema})
            if answer is None:
                raise JobExecutionError(f"the schema registry at {self._urls[0]} has no {path}: is the address right?")
            known = self._ids[subject, schema] = int(answer["id"])
        return known

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        problem = ""
        for attempt in range(_ROUNDS):
            if attempt:
                sleep(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            for url in self._urls:
                try:
                    return self._ask_one(method, url + path, body)
                except urllib.error.HTTPError as error:
                    with error:
                        problem = f"{error.code} {error.read().decode(errors='replace')[:300]}"
                    if error.code == 404:
                        return None
                    if error.code < 500 and error.code != 429:
                        raise JobExecutionError(f"the schema registry at {url} rejected {path}: {problem}") from None
                except OSError as error:
                    problem = str(error)
        raise JobExecutionError(f"the schema registry at {', '.join(self._urls)} does not answer {path}: {problem}")

    def _ask_one(self, method: str, url: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if self._credentials is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(self._credentials).encode()).decode()
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - http or https, see above
        with urllib.request.urlopen(request, timeout=self._timeout_ms / 1000) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found


class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema):
    """Reads rows from messages that contain the id of their writer's schema.

    With a reader schema, records are converted to it by Avro's rules of evolution. Without, they stay as written.

    :param registry: a :class:`SchemaRegistry`, or its address
    """

    def __init__(
        self,
        registry: SchemaRegistry | str,
        avro_schema_string: str | None = None,
        *,
        ignore_parse_errors: bool = False,
    ) -> None:
        fastavro_module()
        self._registry = registry if isinstance(registry, SchemaRegistry) else SchemaRegistry(registry)
        self._reader = None if avro_schema_string is None else AvroSchema.parse_string(avro_schema_string)
        self._ignore = ignore_parse_errors

    @staticmethod
    def for_generic(avro_schema_string: str, registry: SchemaRegistry | str) -> DeserializationSchema:
        """Create the schema with Flink's name."""
        return ConfluentRegistryAvroDeserializationSchema(registry, avro_schema_string)

    def deserialize(self, message: bytes) -> Row | None:
        try:
            return self._read(message)
        except RecordFormatError:
            if self._ignore:
                return None
            raise

    def _read(self, message: bytes) -> Row:
        if len(message) < _HEADER.size or message[0] != _MAGIC:
            raise RecordFormatError("the message lacks the frame of a schema registry", message=message)
        _, schema_id = _HEADER.unpack_from(message)
        try:
            written = self._registry.schema(schema_id)
        except RecordFormatError as error:
            raise RecordFormatError(error.reason, message=message) from None
        wanted = self._reader or written
        stream = io.BytesIO(message[_HEADER.size :])
        try:
            record = fastavro_module().schemaless_reader(stream, written.parsed, wanted.parsed)
        except Exception as error:
            raise RecordFormatError(
                f"not an Avro record of schema {schema_id}, read as {wanted!r}: {type(error).__name__}: {error}",
                message=message,
            ) from None
        if stream.tell() != len(message) - _HEADER.size:
            raise RecordFormatError(f"extra bytes follow a record of schema {schema_id}", message=message)
        return avro_row(wanted, record)

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


class ConfluentRegistryAvroSerializationSchema(SerializationSchema):
    """Writes rows or dicts as messages that contain the id of their schema. The task registers the schema at startup.

    :param subject: the subject, usually the topic's name and ``-value``
    """

    def __init__(self, subject: str, avro_schema_string: str, registry: SchemaRegistry | str) -> None:
        fastavro_module()
        self._subject = subject
        self._text = avro_schema_string
        self._schema = AvroSchema.parse_string(avro_schema_string)
        self._registry = registry if isinstance(registry, SchemaRegistry) else SchemaRegistry(registry)

    @staticmethod
    def for_generic(subject: str, avro_schema_string: str, registry: SchemaRegistry | str) -> SerializationSchema:
        """Create the schema with Flink's name."""
        return ConfluentRegistryAvroSerializationSchema(subject, avro_schema_string, registry)

    def open(self) -> None:
        self._registry.register(self._subject, self._text)

    def serialize(self, value: Any) -> bytes:
        stream = io.BytesIO()
        stream.write(_HEADER.pack(_MAGIC, self._registry.register(self._subject, self._text)))
        try:
            fastavro_module().schemaless_writer(stream, self._schema.parsed, avro_record(value, self._schema))
        except Exception as error:
            raise RecordFormatError(f"not a record of {self._schema!r}: {error}", message=value) from None
        return stream.getvalue()
