"""Converts rows to fastavro's records and back, by the schema, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from penstock.common.typeinfo.avro import AvroSchema
from penstock.common.types import Row, RowKind, make_row, share_names

Convert = Callable[[Any], Any]

_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")


def avro_row(schema: AvroSchema, record: dict[str, Any]) -> Row:
    """Convert a decoded record to a row. Nested records become rows, too."""
    row: Row = _row_reader(schema)(record)
    return row


def avro_record(value: Any, schema: AvroSchema) -> Any:
    """Convert a row, a tuple or a dict for fastavro. A datetime without a time zone is always taken as UTC."""
    return _record_writer(schema)(value)


@lru_cache(maxsize=256)
def _row_reader(schema: AvroSchema) -> Convert:
    return _Converters(_reading_record).of_record(schema.parsed)


@lru_cache(maxsize=256)
def _record_writer(schema: AvroSchema) -> Convert:
    return _Converters(_writing_record, timestamp=_in_utc).of_record(schema.parsed)


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _reading_record(names: tuple[str, ...], fields: dict[str, Convert]) -> Convert:
    def read(record: Any) -> Row:
        values = [fields[name](record.get(name)) if name in fields else record.get(name) for name in names]
        return make_row(names, values, RowKind.INSERT)

    return read


def _writing_record(names: tuple[str, ...], fields: dict[str, Convert]) -> Convert:
    def write(value: Any) -> Any:
        if isinstance(value, Row):
            record = dict(zip(_names_in(value, names), value._values, strict=True))
        elif isinstance(value, (tuple, list)):
            record = dict(zip(names, value, strict=True))
        elif fields and isinstance(value, dict):
            record = dict(value)
        else:
            return value
        for name, convert in fields.items():
            if name in record:
                record[name] = convert(record[name])
        return record

    return write


def _names_in(row: Row, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the schema's names for the values of a row: its own names, otherwise by position.

    A row of a type without names has the fields f0, f1, ... If a name has a different position in the schema, the
    fields are mixed up, which is an error.
    """
    own = row._fields
    if own is None or own == names:
        return names
    if all(name in names for name in own):
        return own
    if len(own) != len(names) or any(name in names and name != here for name, here in zip(own, names, strict=True)):
        raise ValueError(f"the row has the fields {', '.join(own)}, expected {', '.join(names)}")
    return names


class _Converters:
    """Creates a converter for each part of a schema that needs one."""

    def __init__(
        self, make_record: Callable[[tuple[str, ...], dict[str, Convert]], Convert], timestamp: Convert | None = None
    ) -> None:
        self._make_record = make_record
        self._timestamp = timestamp
        self._records: dict[str, Convert] = {}  # by name: other parts may refer to a record, also from within
        self._names: set[str] = set()

    def of_record(self, schema: dict[str, Any]) -> Convert:
        """Return the converter of a record and its parts."""
        name = schema["name"]
        self._names.add(name)
        fields: dict[str, Convert] = {}
        for field in schema["fields"]:
            convert = self._of(field["type"])
            if convert is not None:
                fields[field["name"]] = convert
        made = self._records[name] = self._make_record(share_names(field["name"] for field in schema["fields"]), fields)
        return made

    def _of(self, kind: Any) -> Convert | None:
        if isinstance(kind, list):
            return self._of_union([part for part in kind if part != "null"])
        if isinstance(kind, str):
            return partial(self._of_named, kind) if kind in self._names else None
        if kind.get("logicalType") in _TIMESTAMPS:
            return self._timestamp
        if kind["type"] in ("record", "error"):
            return self.of_record(kind)
        if kind["type"] in ("array", "map"):
            return self._of_elements(kind)
        return None

    def _of_named(self, name: str, value: Any) -> Any:
        """Convert a named record. When this is called, all converters exist."""
        return self._records[name](value)

    def _of_elements(self, kind: dict[str, Any]) -> Convert | None:
        element = self._of(kind["items"] if kind["type"] == "array" else kind["values"])
        if element is None:
            return None
        if kind["type"] == "array":
            return lambda value: [element(part) for part in value]
        return lambda value: {name: element(part) for name, part in value.items()}

    def _of_union(self, parts: list[Any]) -> Convert | None:
        """Return the converter of a union: one type and null, or several types that the value distinguishes."""
        converters = [(part, self._of(part)) for part in parts]
        if len(parts) == 1:
            only = converters[0][1]
            return None if only is None else (lambda value: None if value is None else only(value))
        records = [convert for part, convert in converters if convert is not None and self._is_record(part)]
        maps = any(isinstance(part, dict) and part["type"] == "map" for part in parts)
        record = records[0] if len(records) == 1 and not maps else None
        timestamp = self._timestamp
        if record is None and timestamp is None:
            return None

        def convert(value: Any) -> Any:
            if record is not None and isinstance(value, (Row, dict)):
                return record(value)
            return timestamp(value) if timestamp is not None and isinstance(value, datetime) else value

        return convert

    def _is_record(self, part: Any) -> bool:
        return part in self._names if isinstance(part, str) else part["type"] in ("record", "error")
