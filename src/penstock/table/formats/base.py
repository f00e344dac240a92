"""The contract of table formats.

    @table_format("json")
    class JsonFormat(TableFormat):
        options = {"ignore-parse-errors": "false"}

A format is created for some columns of a table and for its options, without their prefix. Message formats decode bytes
to changes and encode changes to bytes. File formats may read and write whole files instead.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import pyarrow as pa

from penstock.common.errors import RecordFormatError, shorten
from penstock.common.serialization import BulkWriterFactory
from penstock.core.table.arrow import python_values, to_column
from penstock.formats.file_format import FileFormat
from penstock.runtime.table.batch import ColumnBatch
from penstock.table.plan.nodes.base import INSERT_ONLY, Changelog, Field, schema_of
from penstock.util.exceptions import ValidationException

MODULES = ("json", "csv", "raw", "changelog_json", "parquet", "avro")
"""The modules of this package that register formats."""

Change = tuple[int, Sequence[Any]]
"""The number of a row kind, and the values of the columns."""


class TableFormat(ABC):
    """Base class of table formats."""

    options: ClassVar[dict[str, str | None]] = {}
    """The known options and their defaults."""
    changelog: ClassVar[Changelog] = INSERT_ONLY
    """The changes that the format supports."""
    reads_columns: ClassVar[bool] = False
    """Whether the format can read only some columns of a file."""
    file_suffix: ClassVar[str] = ""

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        self.fields = tuple(fields)
        self.given = {key: value for key, value in self.options.items() if value is not None} | options

    def flag(self, key: str) -> bool:
        """Whether an option is true."""
        return self.given.get(key, "false").strip().lower() == "true"

    # Messages

    def decode(self, message: bytes) -> Sequence[Change]:
        """Decode the changes in one message."""
        raise ValidationException(f"{type(self).__name__} cannot read messages")

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Encode a change as a message."""
        raise ValidationException(f"{type(self).__name__} cannot write messages")

    def encode_batch(self, batch: ColumnBatch) -> bytes:
        """Encode changes as messages, each followed by a line end."""
        columns = [
            python_values(column, field.type) for column, field in zip(batch.data.columns, self.fields, strict=True)
        ]
        kinds = batch.kinds_or_inserts().to_pylist()
        return b"".join(
            self.encode(kind, values) + b"\n" for kind, values in zip(kinds, zip(*columns, strict=True), strict=True)
        )

    def decode_all(self, messages: Sequence[bytes]) -> list[Change]:
        """Decode the changes in several messages. Unreadable ones raise an error, or are skipped."""
        ignores = self.flag("ignore-parse-errors")
        changes: list[Change] = []
        for message in messages:
            try:
                changes += self.decode(message)
            except (ValueError, TypeError, KeyError, ArithmeticError, RecordFormatError) as error:
                if not ignores:
                    raise RecordFormatError(f"{type(self).__name__} cannot read {shorten(message)}: {error}") from error
        return changes

    # Files

    def file_format(self) -> FileFormat | None:
        """Return the format of files that are not lines of messages."""
        return None

    def bulk_writer(self) -> BulkWriterFactory | None:
        """Return the writer of files that are not lines of messages; it takes Arrow's record batches."""
        return None


def batch_of_changes(changes: Sequence[Change], fields: Sequence[Field]) -> ColumnBatch:
    """Convert changes to columns."""
    columns = [to_column([values[place] for _, values in changes], field.type) for place, field in enumerate(fields)]
    data = pa.RecordBatch.from_arrays(columns, schema=schema_of(fields))
    kinds = [kind for kind, _ in changes]
    return ColumnBatch(data, pa.array(kinds, pa.int8()) if any(kinds) else None)


_formats: dict[str, type[TableFormat]] = {}


def table_format(name: str) -> Callable[[type[TableFormat]], type[TableFormat]]:
    """Register a format."""

    def decorate(made: type[TableFormat]) -> type[TableFormat]:
        _formats[name] = made
        return made

    return decorate


@cache
def load_formats() -> None:
    """Import all modules that register formats."""
    for module in MODULES:
        import_module(f"penstock.table.formats.{module}")


def create_format(
    table: str, options: dict[str, str], fields: Sequence[Field], *, prefix: str = "", required: bool = True
) -> TableFormat | None:
    """Create the format that the options ``format`` and ``<format>.*`` describe, after checking the options."""
    load_formats()
    key = f"{prefix}format"
    name = options.get(key, options.get("format") if prefix == "value." else None)
    if name is None:
        if not required:
            return None
        raise ValidationException(
            f"Table '{table}' has no option '{key}'. Known formats: {', '.join(sorted(_formats))}"
        )
    made = _formats.get(name)
    if made is None:
        raise ValidationException(
            f"Could not find any format '{name}' for table '{table}'. Known formats: {', '.join(sorted(_formats))}"
        )
    start = f"{prefix if key in options else ''}{name}."
    given = {one.removeprefix(start): value for one, value in options.items() if one.startswith(start)}
    unknown = sorted(one for one in given if one not in made.options)
    if unknown:
        known = ", ".join(f"{start}{one}" for one in sorted(made.options)) or "none"
        raise ValidationException(
            f"Unsupported options found for format '{name}' of table '{table}': "
            f"{', '.join(start + one for one in unknown)}. Supported options: {known}"
        )
    return made(fields, given)
