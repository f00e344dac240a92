"""The connector ``filesystem``: files in a directory, optionally with partition columns in the names of subdirectories.

This module imports one module for each format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from penstock.connectors.file_system.local_path import local_path
from penstock.connectors.file_system.sink import FileSink
from penstock.connectors.file_system.sink_options import (
    DefaultRollingPolicy,
    OutputFileConfig,
)
from penstock.connectors.file_system.source import FileSource
from penstock.core.sink import Sink
from penstock.core.source import Source
from penstock.core.table.types import DataTypes
from penstock.formats.file_format import FileFormat, LineFormat
from penstock.runtime.operators.operator import StreamOperator
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSink, TableSource, connector
from penstock.table.connectors.file_columns import FileColumns
from penstock.table.connectors.file_rows import BytesOfPart, ColumnsOfPart, DirectoryOfPart, FilePartsOperator
from penstock.table.formats.base import Change, TableFormat, batch_of_changes, create_format
from penstock.table.formats.values import from_text, to_text
from penstock.table.plan.nodes.base import Field
from penstock.table.table_config import milliseconds
from penstock.util.exceptions import ValidationException

_DEFAULT_PARTITION = "__DEFAULT_PARTITION__"


class LinesOfMessages(LineFormat):
    """Files whose lines are the messages of a format."""

    def __init__(self, table_format: TableFormat) -> None:
        super().__init__()
        self._format = table_format

    def decode_lines(self, lines: list[bytes], path: str) -> Any:
        """Decode lines to a batch of rows."""
        changes: list[Change] = self._format.decode_all([line for line in lines if line])
        return batch_of_changes(changes, self._format.fields) if changes else []


class FilesTableSource(TableSource):
    """Reads the existing files, or also new ones."""

    def __init__(self, table: ResolvedTable, interval: int | None) -> None:
        self._table = table
        self._interval = interval
        self._stored, self._partitions = _columns(table)
        self._format = _format(table, self._stored)
        if not self._format.changelog.insert_only:
            self.changelog = self._format.changelog

    def create(self) -> Source:
        """Create the source."""
        table = self._table
        inner: FileFormat = self._format.file_format() or LinesOfMessages(self._format)
        path = local_path(table.options["path"])
        if not Path(path).exists() and self._interval is None:
            raise ValidationException(f"The path '{path}' of table '{table.name}' does not exist.")
        default = table.option("partition.default-name", _DEFAULT_PARTITION)
        columns = FileColumns(
            inner,
            path,
            table.fields,
            {one.name: from_text(one.type) for one in self._partitions},
            [key for key, _ in table.metadata],
            default or _DEFAULT_PARTITION,
        )
        return FileSource(path, format=columns, watch_every=self._interval)

    def project(self, columns: Sequence[int]) -> TableSource | None:
        """Read only some columns, if the format supports this. Metadata columns are computed anyway."""
        table, width = self._table, len(self._table.fields)
        wanted = [column for column in columns if column < width]
        if not self._format.reads_columns or not wanted or len(columns) - len(wanted) < len(table.metadata):
            return None
        fields = tuple(table.fields[column] for column in wanted)
        names = {field.name for field in fields}
        keys = tuple(key for key in table.partition_keys if key in names)
        if len(keys) == len(fields):
            return None
        return FilesTableSource(replace(table, fields=fields, partition_keys=keys, primary_key=()), self._interval)


class FilesTableSink(TableSink):
    """Accepts inserts. Files become visible when a checkpoint completes."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table
        self._stored, self._partitions = _columns(table)
        self._format = _format(table, self._stored)
        self.accepts = "insert" if self._format.changelog.insert_only else "all"

    def conversion(self) -> StreamOperator | None:
        """Return the operator that converts batches of rows to parts of files."""
        table = self._table
        names = [field.name for field in table.fields]
        return FilePartsOperator(
            self._format,
            [names.index(field.name) for field in self._stored],
            [(one.name, names.index(one.name), one.type, to_text(one.type)) for one in self._partitions],
            table.option("partition.default-name", _DEFAULT_PARTITION) or _DEFAULT_PARTITION,
            in_columns=self._format.bulk_writer() is not None,
        )

    def create(self) -> Sink:
        """Create the sink."""
        table = self._table
        path = local_path(table.options["path"])
        config = OutputFileConfig.builder().with_part_suffix(self._format.file_suffix).build()
        bulk = self._format.bulk_writer()
        if bulk is not None:
            bulk_builder = FileSink.for_bulk_format(path, ColumnsOfPart(bulk))
            return bulk_builder.with_bucket_assigner(DirectoryOfPart()).with_output_file_config(config).build()
        row_builder = FileSink.for_row_format(path, BytesOfPart())
        policy = DefaultRollingPolicy(
            part_size=_bytes(table.option("sink.rolling-policy.file-size", "128MB") or "128MB"),
            rollover_interval=milliseconds(table.option("sink.rolling-policy.rollover-interval", "30 min") or ""),
            inactivity_interval=milliseconds(table.option("sink.rolling-policy.inactivity-interval", "30 min") or ""),
        )
        builder = row_builder.with_bucket_assigner(DirectoryOfPart()).with_rolling_policy(policy)
        return builder.with_output_file_config(config).build()


def _columns(table: ResolvedTable) -> tuple[list[Field], list[Field]]:
    """Return the columns in the files, and those in the names of directories."""
    known = {field.name: field for field in table.fields}
    for key in table.partition_keys:
        if key not in known:
            raise ValidationException(f"Partition column '{key}' is not a physical column of table '{table.name}'.")
    stored = [field for field in table.fields if field.name not in table.partition_keys]
    return stored, [known[key] for key in table.partition_keys]


def _format(table: ResolvedTable, fields: Sequence[Field]) -> TableFormat:
    made = create_format(table.name, table.options, fields)
    assert made is not None
    return made


def _bytes(text: str) -> int:
    number = "".join(character for character in text if character.isdigit())
    unit = text.strip()[len(number) :].strip().lower().removesuffix("b")
    factors = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    if not number or unit not in factors:
        raise ValidationException(f"'{text}' is not a size: write, for example, '128MB'")
    return int(number) * factors[unit]


@connector("filesystem")
class FilesystemFactory(ConnectorFactory):
    """``'connector' = 'filesystem'``"""

    required: ClassVar[Sequence[str]] = ("path",)
    options: ClassVar[dict[str, str | None]] = {
        "source.monitor-interval": None,
        "partition.default-name": _DEFAULT_PARTITION,
        "sink.rolling-policy.file-size": "128MB",
        "sink.rolling-policy.rollover-interval": "30 min",
        "sink.rolling-policy.inactivity-interval": "30 min",
        "sink.rolling-policy.check-interval": "1 min",
    }
    formats: ClassVar[bool] = True
    metadata: ClassVar[dict[str, Any]] = {
        "file.path": DataTypes.STRING(nullable=False),
        "file.name": DataTypes.STRING(nullable=False),
        "file.size": DataTypes.BIGINT(nullable=False),
        "file.modification-time": DataTypes.TIMESTAMP_LTZ(3, nullable=False),
    }

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source."""
        interval = table.option("source.monitor-interval")
        return FilesTableSource(table, None if interval is None else milliseconds(interval))

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        return FilesTableSink(table)
