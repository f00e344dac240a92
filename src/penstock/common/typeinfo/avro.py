"""Records of an Avro schema, as dicts. Schemas need the package fastavro (extra ``avro``)."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo.basic import PickledBytesTypeInfo

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo", "fastavro_module"]


def fastavro_module() -> Any:
    """Return the package fastavro, or raise an error that says how to install it."""
    try:
        import fastavro
    except ImportError:
        raise InvalidProgramError("Avro needs the package fastavro: pip install 'penstock[avro]'") from None
    return fastavro


class AvroSchema:
    """A schema of records.

    >>> schema = AvroSchema.parse_string(
    ...     '{"type": "record", "name": "Person", "fields": [{"name": "age", "type": "int"}]}'
    ... )
    >>> schema
    AvroSchema(Person: age)
    """

    def __init__(self, definition: Any) -> None:
        if not isinstance(definition, dict) or definition.get("type") != "record":
            raise InvalidProgramError("an Avro schema of a stream must describe a record")
        self.definition = definition
        try:
            self.parsed: dict[str, Any] = fastavro_module().parse_schema(definition)
        except InvalidProgramError:
            raise
        except Exception as error:
            raise InvalidProgramError(f"not an Avro schema: {type(error).__name__}: {error}") from None

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Parse a schema from JSON."""
        try:
            return AvroSchema(json.loads(json_schema))
        except json.JSONDecodeError as error:
            raise InvalidProgramError(f"the Avro schema is not JSON: {error}") from None

    @staticmethod
    def parse_file(file_path: str | os.PathLike[str]) -> AvroSchema:
        """Parse a schema from a file."""
        return AvroSchema.parse_string(Path(file_path).read_text(encoding="utf-8"))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The field names of the record."""
        return tuple(field["name"] for field in self.parsed["fields"])

    def __repr__(self) -> str:
        return f"AvroSchema({self.definition['name']}: {', '.join(self.names)})"


class GenericRecordAvroTypeInfo(PickledBytesTypeInfo):
    """Records of a schema, as dicts. As the type of a state, it may evolve by Avro's rules of schema resolution."""

    __slots__ = ("_avro_schema",)

    def __init__(self, schema: AvroSchema) -> None:
        super().__init__()
        self._avro_schema = schema

    @property
    def avro_schema(self) -> AvroSchema:
        """The schema."""
        return self._avro_schema

    def _identity(self) -> tuple[Any, ...]:
        return (json.dumps(self._avro_schema.definition, sort_keys=True),)
