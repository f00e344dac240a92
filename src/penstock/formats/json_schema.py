"""Derives row types from JSON schemas. It supports the part that describes the structure of records."""

from __future__ import annotations

import json
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types

_FORMATS = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}


def row_type_of(json_schema: str) -> RowTypeInfo:
    """Return the row type that a JSON schema describes.

    >>> row_type_of('{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}')
    RowTypeInfo(a: BigInteger, b: String)
    """
    try:
        schema = json.loads(json_schema)
    except ValueError as error:
        raise InvalidProgramError(f"the JSON schema is not JSON: {error}") from None
    found = _type_of(schema, schema)
    if not isinstance(found, RowTypeInfo):
        raise InvalidProgramError("the JSON schema must describe an object")
    return found


def _type_of(schema: dict[str, Any], root: dict[str, Any]) -> TypeInformation:
    if "$ref" in schema:
        return _type_of(_resolve(schema["$ref"], root), root)
    kind = schema.get("type")
    if isinstance(kind, list):  # ["string", "null"]: all fields are optional anyway
        kinds = [part for part in kind if part != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "object":
        properties = schema.get("properties", {})
        return Types.ROW_NAMED(list(properties), [_type_of(part, root) for part in properties.values()])
    if kind == "array":
        return Types.LIST(_type_of(schema.get("items", {}), root))
    simple = {
        "string": _FORMATS.get(schema.get("format", ""), Types.STRING),
        "integer": Types.BIG_INT,
        "number": Types.BIG_DEC,
        "boolean": Types.BOOLEAN,
    }
    if kind not in simple:
        raise InvalidProgramError(f"the JSON schema has an unsupported type: {schema!r}")
    return simple[kind]()


def _resolve(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    found: Any = root
    if not reference.startswith("#/"):
        raise InvalidProgramError(f"the JSON schema refers to another document: {reference!r}")
    for step in reference[2:].split("/"):
        if step not in found:
            raise InvalidProgramError(f"the JSON schema refers to a missing definition: {reference!r}")
        found = found[step]
    result: dict[str, Any] = found
    return result
