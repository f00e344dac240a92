"""Avro records in columns, in the layout of Parquet's own Avro support.

A field that is always null has no column. A union of several types is a struct with one member per type, ``member0``,
``member1``, ..., of which at most one is set.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from fastavro.validation import validate

from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.typeinfo.avro import AvroSchema
from penstock.common.types import Row

__all__ = ["AvroColumns"]

Convert = Callable[[Any], Any]

_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
}


class AvroColumns:
    """The columns of a schema, and the conversion of records to and from their values."""

    def __init__(self, schema: AvroSchema) -> None:
        record = schema.parsed
        named = _named_types(record)
        self.schema = pa.schema(_arrow_fields(record, {}))
        self._avro_schema = schema
        self._write = _Writers(named).of_record(record)
        self._read = _Readers(named).of_record(record)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroColumns, (self._avro_schema,)

    def to_columns(self, record: Any) -> Any:
        """Convert a record: expand its unions and drop fields that are always null."""
        return record if self._write is None else self._write(record)

    def from_columns(self, record: dict[str, Any]) -> dict[str, Any]:
        """Convert the values of columns back to an Avro record."""
        return record if self._read is None else self._read(record)


def _branches(kind: Any) -> list[Any]:
    """Return the types of a union without null."""
    return [part for part in kind if part != "null"]


def _is_null(kind: Any) -> bool:
    return not _branches(kind) if isinstance(kind, list) else kind == "null"


def _arrow_type(kind: Any, named: dict[str, Any]) -> Any:
    if isinstance(kind, list):
        branches = _branches(kind)
        if len(branches) == 1:
            return _arrow_type(branches[0], named)
        return pa.struct([pa.field(f"member{n}", _arrow_type(part, named)) for n, part in enumerate(branches)])
    name = kind if isinstance(kind, str) else kind["type"]
    if isinstance(kind, dict):
        if kind.get("logicalType") in _LOGICAL:
            return _LOGICAL[kind["logicalType"]]
        if kind.get("logicalType") == "decimal":
            return pa.decimal128(kind["precision"], kind.get("scale", 0))
        if name == "record":
            return named.setdefault(kind["name"], pa.struct(_arrow_fields(kind, named)))
        if name == "array":
            return pa.list_(_arrow_type(kind["items"], named))
        if name == "map":
            return pa.map_(pa.string(), _arrow_type(kind["values"], named))
        if name == "fixed":
            return named.setdefault(kind["name"], pa.binary(kind["size"]))
        if name == "enum":
            named[kind["name"]] = _ARROW[name]
    found = named.get(name, _ARROW.get(name))
    if found is None:
        raise InvalidProgramError(f"the Avro type {kind!r} has no column type")
    return found


def _arrow_fields(record: dict[str, Any], named: dict[str, Any]) -> list[Any]:
    fields = record["fields"]
    return [pa.field(one["name"], _arrow_type(one["type"], named)) for one in fields if not _is_null(one["type"])]


def _named_types(kind: Any) -> dict[str, Any]:
    """Return the named types of a schema by name."""
    if isinstance(kind, list):
        return {name: found for part in kind for name, found in _named_types(part).items()}
    if not isinstance(kind, dict):
        return {}
    found = {kind["name"]: kind} if "name" in kind and kind["type"] in ("record", "enum", "fixed") else {}
    for part in [kind.get("items"), kind.get("values"), *(one["type"] for one in kind.get("fields", ()))]:
        found.update(_named_types(part))
    return found


class _Converters:
    """Creates a converter for each part of a schema that needs one, and None for the others."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named

    def of_record(self, record: dict[str, Any]) -> Convert | None:
        """Return the converter of a record, or None if its columns equal its fields."""
        fields = {one["name"]: self._of(one["type"]) for one in record["fields"] if not _is_null(one["type"])}
        null = [one["name"] for one in record["fields"] if _is_null(one["type"])]
        if not null and not any(fields.values()):
            return None
        return self._record([one["name"] for one in record["fields"]], fields)

    def _of(self, kind: Any) -> Convert | None:
        if isinstance(kind, str):
            kind = self._named.get(kind, kind)
        if isinstance(kind, list):
            branches = _branches(kind)
            converters = [self._of(part) for part in branches]
            return _optional(converters[0]) if len(branches) == 1 else self._union(branches, converters)
        if isinstance(kind, str):
            return None
        if kind["type"] == "record":
            return self.of_record(kind)
        element = self._of(kind.get("items", kind.get("values", "null")))
        if element is None:
            return None
        if kind["type"] == "array":
            return lambda values: [element(value) for value in values]
        return lambda values: {key: element(value) for key, value in values.items()}

    def _record(self, names: list[str], fields: dict[str, Convert | None]) -> Convert:
        raise NotImplementedError

    def _union(self, branches: list[Any], converters: list[Convert | None]) -> Convert:
        raise NotImplementedError


def _optional(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


class _Writers(_Converters):
    def _record(self, names: list[str], fields: dict[str, Convert | None]) -> Convert:
        def write(record: Any) -> Any:
            if isinstance(record, Row):
                record = dict(zip(record._fields or names, record._values, strict=True))
            elif isinstance(record, (tuple, list)):
                record = dict(zip(names, record, strict=True))
            return {
                name: record.get(name) if convert is None else convert(record.get(name))
                for name, convert in fields.items()
            }

        return write

    def _union(self, branches: list[Any], converters: list[Convert | None]) -> Convert:
        checks = [partial(self._is_one, part) for part in branches]

        def write(value: Any) -> Any:
            if value is None:
                return None
            for number, (check, convert) in enumerate(zip(checks, converters, strict=True)):
                if check(value):
                    return {f"member{number}": value if convert is None else convert(value)}
            raise RecordFormatError(f"the value does not fit any type of its union, {branches}", message=value)

        return write

    def _is_one(self, kind: Any, value: Any) -> bool:
        return bool(validate(value, self._named.get(kind, kind) if isinstance(kind, str) else kind, raise_errors=False))


class _Readers(_Converters):
    def _record(self, names: list[str], fields: dict[str, Convert | None]) -> Convert:
        converters = [(name, fields.get(name)) for name in names]

        def read(record: Any) -> Any:
            return {
                name: record.get(name) if convert is None else convert(record.get(name)) for name, convert in converters
            }

        return read

    def _union(self, branches: list[Any], converters: list[Convert | None]) -> Convert:
        members = [(f"member{number}", convert) for number, convert in enumerate(converters)]

        def read(value: Any) -> Any:
            for name, convert in members if value else ():
                if value[name] is not None:
                    return value[name] if convert is None else convert(value[name])
            return None

        return read
