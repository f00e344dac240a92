"""FileSink: writes records to files, exactly-once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import BulkWriterFactory, Encoder
from penstock.connectors.file_system.local_path import local_path
from penstock.connectors.file_system.sink_committer import FileSinkCommitter
from penstock.connectors.file_system.sink_options import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.connectors.file_system.sink_writer import FileSinkOptions, FileSinkWriter
from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext
from penstock.formats.records import RecordFormat

__all__ = ["FileSink", "StreamingFileSink"]


class FileSink(Sink):
    """Writes records to files in buckets, which are subdirectories. By default there is one for each hour.

    A file becomes visible when the file and its checkpoint are complete, and contains each record once. Row formats
    continue a file over many checkpoints until the rolling policy completes it. Bulk formats complete a file with each
    checkpoint; small files can be compacted.

    >>> sink = FileSink.for_row_format("/tmp/out", Encoder.simple_string_encoder()).build()

    The constructor is equivalent to the builders.

    >>> from penstock.formats.records import Json
    >>> sink = FileSink("/tmp/out", format=Json())
    """

    stateful = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: RecordFormat[Any] | Encoder | BulkWriterFactory,  # noqa: A002 - what readers and writers of files call it
        buckets: BucketAssigner | None = None,
        roll: RollingPolicy | None = None,
        names: OutputFileConfig | None = None,
        compact: tuple[FileCompactStrategy, FileCompactor] | None = None,
    ) -> None:
        """:param path: a directory
        :param format: ``Json()``, ``Csv(Order)``, ``Text()``, an Encoder, or a BulkWriterFactory such as Parquet's
        :param buckets: the bucket assigner; the default is one bucket per hour
        :param roll: when a file of a row format is complete
        :param names: prefix and suffix of file names
        :param compact: when and how to merge small files into large ones
        """
        chosen: Any = format.encoder() if isinstance(format, RecordFormat) else format
        make = FileSink.for_bulk_format if isinstance(chosen, BulkWriterFactory) else FileSink.for_row_format
        builder: FileSink.BaseBuilder = make(path, chosen)
        if buckets is not None:
            builder.with_bucket_assigner(buckets)
        if roll is not None:
            builder.with_rolling_policy(roll)
        if names is not None:
            builder.with_output_file_config(names)
        if compact is not None:
            builder.enable_compact(*compact)
        self.configure(builder.settings)

    def configure(self, settings: FileSinkSettings) -> None:
        """Apply all settings. For builders."""
        self._strategy = settings.strategy
        self._compactor = settings.compactor
        self._options = FileSinkOptions(
            settings.base_path,
            settings.encoder,
            settings.bulk,
            settings.assigner,
            settings.policy,
            settings.names,
            compacted=settings.strategy is not None,
            check_interval=settings.check_interval,
        )

    @staticmethod
    def of(settings: FileSinkSettings) -> FileSink:
        """Create a sink with the settings of a builder."""
        sink = FileSink.__new__(FileSink)
        sink.configure(settings)
        return sink

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Create a builder for a format that writes records one by one, such as lines."""
        if not isinstance(encoder, Encoder):
            raise InvalidProgramError(f"a row format must be an Encoder, got {shorten(encoder)}")
        return FileSink.RowFormatBuilder(FileSinkSettings(local_path(base_path), encoder=encoder))

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Create a builder for a format that is complete only at the end of a file, such as Parquet."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise InvalidProgramError(f"a bulk format must be a BulkWriterFactory, got {shorten(writer_factory)}")
        settings = FileSinkSettings(local_path(base_path), bulk=writer_factory, policy=OnCheckpointRollingPolicy())
        return FileSink.BulkFormatBuilder(settings)

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return FileSinkWriter(self._options, context, None)

    def restore_writer(self, context: WriterInitContext, state: list[Any]) -> SinkWriter:
        return FileSinkWriter(self._options, context, state)

    def create_committer(self) -> Committer:
        return FileSinkCommitter(
            self._options.base_path, self._options.names.part_prefix, self._strategy, self._compactor
        )

    def get_transformer(self) -> None:
        """Return None. PyFlink uses this for compaction; here the committer compacts."""
        return

    class BaseBuilder:
        """Collects the settings."""

        def __init__(self, settings: FileSinkSettings) -> None:
            self._settings = settings

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Set how often to look for files to roll, in ms. By default, files roll as soon as they are due."""
            if interval <= 0:
                raise InvalidProgramError(f"the interval must be positive, got {interval}")
            self._settings = replace(self._settings, check_interval=interval)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Set the assigner that chooses the subdirectory of a record."""
            if not isinstance(bucket_assigner, BucketAssigner):
                raise InvalidProgramError(f"expected a BucketAssigner, got {shorten(bucket_assigner)}")
            self._settings = replace(self._settings, assigner=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Set the names of files."""
            self._settings = replace(self._settings, names=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the policy that decides when a file is complete."""
            if not isinstance(rolling_policy, RollingPolicy):
                raise InvalidProgramError(f"expected a RollingPolicy, got {shorten(rolling_policy)}")
            if self._settings.bulk is not None and not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                raise InvalidProgramError(
                    "a bulk format completes its files with each checkpoint: the only rolling policy is "
                    "RollingPolicy.on_checkpoint_rolling_policy(); use enable_compact() for larger files"
                )
            self._settings = replace(self._settings, policy=rolling_policy)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Merge small files into large ones. Small files stay hidden until then."""
            self._settings = replace(self._settings, strategy=strategy, compactor=compactor)
            return self

        def disable_compact(self) -> Self:
            """Do not compact: show files as they are written."""
            self._settings = replace(self._settings, strategy=None, compactor=None)
            return self

        @property
        def settings(self) -> FileSinkSettings:
            """Return the current settings."""
            return self._settings

        def build(self) -> FileSink:
            return FileSink.of(self._settings)

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink for a format that writes records one by one."""

    class BulkFormatBuilder(BaseBuilder):
        """Builds a sink for a format that is complete only at the end of a file."""


@dataclass(frozen=True)
class FileSinkSettings:
    """The settings of a builder."""

    base_path: str
    encoder: Encoder | None = None
    bulk: BulkWriterFactory | None = None
    assigner: BucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    policy: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    names: OutputFileConfig = field(default_factory=OutputFileConfig)
    strategy: FileCompactStrategy | None = None
    compactor: FileCompactor | None = None
    check_interval: int = 1


Builder = TypeVar("Builder", bound=FileSink.BaseBuilder)


class StreamingFileSink(FileSink):
    """The older name of FileSink, used with ``add_sink``."""

    class DefaultRowFormatBuilder(FileSink.RowFormatBuilder):
        """Builds a sink for a format that writes records one by one."""

    class DefaultBulkFormatBuilder(FileSink.BulkFormatBuilder):
        """Builds a sink for a format that is complete only at the end of a file."""
