"""The format ``csv``: one line for each row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.arrow import python_values
from penstock.core.table.type_rules import is_character, is_integer
from penstock.core.table.types import ArrayType, DataType
from penstock.runtime.table.batch import INSERT, ColumnBatch
from penstock.table.formats.base import Change, TableFormat, table_format
from penstock.table.formats.values import Convert, from_text, to_text
from penstock.table.plan.nodes.base import Field
from penstock.util.exceptions import ValidationException


@table_format("csv")
class CsvFormat(TableFormat):
    """Columns by position. An empty field is NULL, except in text columns."""

    options: ClassVar[dict[str, str | None]] = {
        "field-delimiter": ",",
        "disable-quote-character": "false",
        "quote-character": '"',
        "allow-comments": "false",
        "ignore-parse-errors": "false",
        "array-element-delimiter": ";",
        "escape-character": None,
        "null-literal": None,
        "write-bigdecimal-in-scientific-notation": "true",
    }
    file_suffix = ".csv"

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        super().__init__(fields, options)
        self._delimiter = self.given["field-delimiter"].encode().decode("unicode_escape")
        if len(self._delimiter) != 1:
            raise ValidationException(
                f"csv.field-delimiter must be a single character, got '{self.given['field-delimiter']}'"
            )
        self._quoting: Any = csv.QUOTE_NONE if self.flag("disable-quote-character") else csv.QUOTE_MINIMAL
        self._null = self.given.get("null-literal")
        between = self.given["array-element-delimiter"]
        self._readers = [_reader(one, between) for one in fields]
        self._writers = [_writer(one, between) for one in fields]

    def decode(self, message: bytes) -> Sequence[Change]:
        """Decode one line."""
        text = message.decode().rstrip("\r\n")
        if not text or (text.startswith("#") and self.flag("allow-comments")):
            return ()
        (parts,) = csv.reader(
            [text],
            delimiter=self._delimiter,
            quotechar=self.given["quote-character"],
            escapechar=self.given.get("escape-character"),
            quoting=self._quoting,
            strict=True,
        )
        if len(parts) != len(self.fields):
            raise ValueError(f"the line has {len(parts)} columns, the table {len(self.fields)}")
        return [(INSERT, [self._value(place, part) for place, part in enumerate(parts)])]

    def _value(self, place: int, part: str) -> Any:
        if part == self._null:
            return None
        try:
            return self._readers[place](part)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(f"column '{self.fields[place].name}': {error}") from error

    def encode_batch(self, batch: ColumnBatch) -> bytes:
        """Encode lines. Whole columns are converted to text. Without anything to quote, they are just joined."""
        texts = [
            _texts(column, field.type, write)
            for column, field, write in zip(batch.data.columns, self.fields, self._writers, strict=True)
        ]
        escape = self.given.get("escape-character") or "\\"
        special = "".join({self._delimiter, self.given["quote-character"], escape, "\r", "\n"})
        if len(texts) == 1 or any(_contains(one, special) for one in texts):
            return super().encode_batch(batch)
        null = self._null or ""
        lines = pc.binary_join_element_wise(
            *texts, pa.scalar(self._delimiter), null_handling="replace", null_replacement=null
        )
        return ("\n".join(lines.to_pylist()) + "\n").encode()

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Encode one line, without the line end."""
        line = io.StringIO()
        writer = csv.writer(
            line,
            delimiter=self._delimiter,
            quotechar=self.given["quote-character"],
            escapechar=self.given.get("escape-character") or ("\\" if self._quoting == csv.QUOTE_NONE else None),
            quoting=self._quoting,
            lineterminator="",
        )
        null = self._null or ""
        writer.writerow([null if one is None else write(one) for write, one in zip(self._writers, values, strict=True)])
        return line.getvalue().encode()


def _texts(column: pa.Array, type_: DataType, write: Convert) -> pa.StringArray:
    """Convert a column to text. Distinct values are written once, and only if Arrow would write them differently."""
    if is_character(type_) or is_integer(type_):
        return column.cast(pa.string())
    if pa.types.is_nested(column.type):
        return pa.array([None if one is None else write(one) for one in python_values(column, type_)], pa.string())
    distinct = column.dictionary_encode()
    texts = [None if one is None else write(one) for one in python_values(distinct.dictionary, type_)]
    return pa.array(texts, pa.string()).take(distinct.indices)


def _contains(texts: pa.StringArray, characters: str) -> bool:
    pattern = f"[{re.escape(characters)}]"
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _reader(field: Field, between: str) -> Convert:
    if isinstance(field.type, ArrayType):
        element = from_text(field.type.element_type)
        return lambda text: [element(one) for one in text.split(between)] if text else None
    read = from_text(field.type)
    is_text = read("") == "" if _reads_empty(read) else False
    return read if is_text else lambda text: None if text == "" else read(text)


def _reads_empty(read: Convert) -> bool:
    try:
        read("")
    except (ValueError, TypeError, ArithmeticError):
        return False
    return True


def _writer(field: Field, between: str) -> Convert:
    if isinstance(field.type, ArrayType):
        element = to_text(field.type.element_type)
        return lambda value: between.join("" if one is None else element(one) for one in value)
    return to_text(field.type)
