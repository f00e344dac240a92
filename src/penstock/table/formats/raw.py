"""The format ``raw``: a table with one column, whose value is the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.core.table.type_rules import is_character
from penstock.core.table.types import BinaryType, VarBinaryType
from penstock.runtime.table.batch import INSERT
from penstock.table.formats.base import Change, TableFormat, table_format
from penstock.table.plan.nodes.base import Field
from penstock.util.exceptions import ValidationException


@table_format("raw")
class RawFormat(TableFormat):
    """Bytes or text, unchanged."""

    options: ClassVar[dict[str, str | None]] = {"charset": "UTF-8", "endianness": "big-endian"}

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        super().__init__(fields, options)
        if len(fields) != 1:
            raise ValidationException(f"The 'raw' format only supports single physical column, got {len(fields)}")
        type_ = fields[0].type
        self._text = is_character(type_)
        if not self._text and not isinstance(type_, (BinaryType, VarBinaryType)):
            raise ValidationException(f"The 'raw' format reads and writes STRING and BYTES here, not {type_}")

    def decode(self, message: bytes) -> Sequence[Change]:
        """Return the message as a value."""
        return [(INSERT, [message.decode(self.given["charset"]) if self._text else message])]

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Return the value as a message."""
        (value,) = values
        if value is None:
            return b""
        return value.encode(self.given["charset"]) if self._text else bytes(value)
