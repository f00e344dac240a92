"""The format ``json``: one object for each row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

from penstock.core.table.types import DecimalType
from penstock.runtime.table.batch import INSERT
from penstock.table.formats.base import Change, TableFormat, table_format
from penstock.table.formats.values import from_json, to_json
from penstock.table.plan.nodes.base import Field
from penstock.util.exceptions import ValidationException


@table_format("json")
class JsonFormat(TableFormat):
    """Fields by name. A missing field is NULL, unless ``fail-on-missing-field`` is set."""

    options: ClassVar[dict[str, str | None]] = {
        "fail-on-missing-field": "false",
        "ignore-parse-errors": "false",
        "timestamp-format.standard": "SQL",
        "map-null-key.mode": "FAIL",
        "map-null-key.literal": "null",
        "encode.decimal-as-plain-number": "false",
        "encode.ignore-null-fields": "false",
    }
    file_suffix = ".json"

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        super().__init__(fields, options)
        standard = self.given["timestamp-format.standard"].upper()
        if standard not in ("SQL", "ISO-8601"):
            raise ValidationException(f"json.timestamp-format.standard must be SQL or ISO-8601, got '{standard}'")
        iso = standard == "ISO-8601"
        self._readers = [(one.name, from_json(one.type)) for one in fields]
        self._writers = [(one.name, to_json(one.type, iso=iso)) for one in fields]
        self._exact = any(isinstance(one.type, DecimalType) for one in fields)
        self._strict = self.flag("fail-on-missing-field")
        if self._strict and self.flag("ignore-parse-errors"):
            raise ValidationException("json.fail-on-missing-field and json.ignore-parse-errors cannot both be true")
        self._without_null = self.flag("encode.ignore-null-fields")

    def decode(self, message: bytes) -> Sequence[Change]:
        """Decode one object, or an array of objects."""
        if not message.strip():
            return ()
        found = self.parse(message)
        return [(INSERT, self.row(one)) for one in (found if isinstance(found, list) else [found])]

    def parse(self, message: bytes) -> Any:
        """Return the JSON value of a message."""
        return json.loads(message, parse_float=Decimal) if self._exact else json.loads(message)

    def row(self, found: Any) -> list[Any]:
        """Return the values of an object."""
        if not isinstance(found, dict):
            raise TypeError(f"expected an object, got {type(found).__name__}")
        values = []
        for name, convert in self._readers:
            if self._strict and name not in found:
                raise KeyError(f"Could not find field with name '{name}'")
            try:
                values.append(convert(found.get(name)))
            except (ValueError, TypeError, ArithmeticError) as error:
                raise ValueError(f"field '{name}': {error}") from error
        return values

    def value(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return a row as an object."""
        found = {name: convert(one) for (name, convert), one in zip(self._writers, values, strict=True)}
        return {name: one for name, one in found.items() if one is not None} if self._without_null else found

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Encode one object on one line."""
        return json.dumps(self.value(values), ensure_ascii=False, separators=(",", ":")).encode()
