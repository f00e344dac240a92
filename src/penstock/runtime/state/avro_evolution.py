"""Avro's rules of schema resolution: whether and how records of one schema can be read as another (rule J09).

The check compares only schemas, so an incompatible change is rejected when the job starts, not when a value is read.
fastavro does the conversion.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from penstock.common.errors import SavepointError, shorten
from penstock.common.typeinfo.avro import fastavro_module

_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED = ("record", "error", "enum", "fixed")
_MISSING = object()


def avro_mismatch(writer: Any, reader: Any) -> str | None:
    """Return why records of the writer's schema cannot be read with the reader's, or None if they can.

    >>> old = {"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}
    >>> new = {"type": "record", "name": "P", "fields": [{"name": "age", "type": "string"}]}
    >>> avro_mismatch(old, new)
    "field 'age': Avro's int cannot be read as string"
    """
    return _Resolution(writer, reader).mismatch(writer, reader)


def avro_adapter(writer: Any, reader: Any) -> Callable[[Any], Any]:
    """Return a function that converts a record of the writer's schema to the reader's."""
    avro = fastavro_module()
    old, new = avro.parse_schema(writer), avro.parse_schema(reader)

    def adapt(record: Any) -> Any:
        stream = io.BytesIO()
        try:
            avro.schemaless_writer(stream, old, record)
            stream.seek(0)
            return avro.schemaless_reader(stream, old, new)
        except Exception as error:
            raise SavepointError(
                f"{shorten(record)} in state does not match the Avro schema '{writer.get('name')}' that was declared "
                f"for it, and cannot be converted to the new schema: {type(error).__name__}: {error}"
            ) from None

    return adapt


class _Resolution:
    """Compares two schemas. Each may define names that it uses later."""

    def __init__(self, writer: Any, reader: Any) -> None:
        self._written: dict[str, Any] = {}
        self._read: dict[str, Any] = {}
        _collect_names(writer, self._written)
        _collect_names(reader, self._read)
        self._compared: set[tuple[str, str]] = set()

    def mismatch(self, writer: Any, reader: Any) -> str | None:
        writer, reader = _resolved(writer, self._written), _resolved(reader, self._read)
        if isinstance(writer, list):  # values of any branch may have been written
            return next((why for why in (self.mismatch(branch, reader) for branch in writer) if why is not None), None)
        if isinstance(reader, list):
            reasons = [self.mismatch(writer, branch) for branch in reader]
            return None if None in reasons else f"Avro's {_shown(writer)} is not among {_shown(reader)}"
        old, new = _kind(writer), _kind(reader)
        if old != new:
            return None if new in _PROMOTIONS.get(old, ()) else f"Avro's {old} cannot be read as {new}"
        if old in _NAMED:
            return self._named(old, writer, reader)
        if old == "array":
            return self.mismatch(writer["items"], reader["items"])
        if old == "map":
            return self.mismatch(writer["values"], reader["values"])
        return None

    def _named(self, kind: str, writer: Any, reader: Any) -> str | None:
        names = [_short(name) for name in [reader["name"], *reader.get("aliases", ())]]
        if _short(writer["name"]) not in names:
            return f"the {kind} '{writer['name']}' is not '{reader['name']}' (an alias would make them match)"
        if kind == "fixed":
            sizes = writer["size"], reader["size"]
            return None if sizes[0] == sizes[1] else f"fixed of {sizes[0]} bytes cannot be read as one of {sizes[1]}"
        if kind == "enum":
            gone = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
            return (
                f"the symbol '{gone[0]}' of enum '{writer['name']}' is gone"
                if gone and "default" not in reader
                else None
            )
        pair = (writer["name"], reader["name"])
        if pair in self._compared:  # a record that contains itself
            return None
        self._compared.add(pair)
        return self._fields(writer, reader)

    def _fields(self, writer: Any, reader: Any) -> str | None:
        written = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *field.get("aliases", ())]
            kind = next((written[name] for name in names if name in written), _MISSING)
            if kind is _MISSING:
                if "default" not in field:
                    return f"field '{field['name']}' was added without a default"
                continue
            reason = self.mismatch(kind, field["type"])
            if reason is not None:
                return f"field '{field['name']}': {reason}"
        return None


def _collect_names(schema: Any, names: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect_names(branch, names)
    elif isinstance(schema, dict):
        if schema.get("type") in _NAMED and "name" in schema:
            names[_short(schema["name"])] = schema
        for part in (schema.get("items"), schema.get("values"), schema.get("type")):
            if isinstance(part, (dict, list)):
                _collect_names(part, names)
        for field in schema.get("fields", ()):
            _collect_names(field["type"], names)


def _resolved(schema: Any, names: dict[str, Any]) -> Any:
    """Return the type behind a name. A type may also be wrapped as {"type": ...}."""
    if isinstance(schema, str):
        return names.get(_short(schema), schema)
    if isinstance(schema, dict) and isinstance(schema["type"], (dict, list)):
        return _resolved(schema["type"], names)
    if isinstance(schema, dict) and schema["type"] not in _NAMED:
        return names.get(_short(schema["type"]), schema)
    return schema


def _kind(schema: Any) -> str:
    return str(schema if isinstance(schema, str) else schema["type"])


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _shown(schema: Any) -> str:
    if isinstance(schema, list):
        return "[" + ", ".join(_shown(branch) for branch in schema) + "]"
    return str(schema.get("name") or schema["type"]) if isinstance(schema, dict) else str(schema)
