"""Options of a file sink: buckets, rolling, file names, compaction."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.common.errors import InvalidProgramError
from penstock.common.serialization import BulkWriterFactory
from penstock.common.unsupported import no_java_object
from penstock.formats.file_format import FileFormat

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
]


@dataclass(slots=True)
class BucketContext:
    """The context of a bucket assigner."""

    current_processing_time: int = 0
    current_watermark: int = 0
    timestamp: int | None = None


class BucketAssigner(ABC):
    """Chooses the subdirectory of a record.

    >>> class BySensor(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"sensor={element[0]}"
    """

    get_java_object = no_java_object

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return a relative path, or an empty string for the base directory."""

    def bucket_of_batch(self, processing_time: int) -> str | None:
        """Return the bucket of all records at this processing time, if it depends on nothing else."""
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Write all files to the base directory."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Choose the bucket by the time at which a record is written. The default format has one bucket per hour.

        >>> assigner = BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
        >>> assigner.bucket_of_batch(1532278800000)
        '2018-07-22--17'
        """
        return _DateTime(format_str, timezone_id)


class _BasePath(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return ""

    def bucket_of_batch(self, processing_time: int) -> str:
        return ""


_PATTERN = re.compile(r"'([^']*)'|(yyyy|MM|dd|HH|mm|ss|SSS|yy|[A-Za-z]+)")
_DIRECTIVES = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


class _DateTime(BucketAssigner):
    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        def directive(match: re.Match[str]) -> str:
            if match[1] is not None:
                return match[1].replace("%", "%%")
            if match[2] not in _DIRECTIVES:
                known = ", ".join(_DIRECTIVES)
                raise InvalidProgramError(f"a bucket's date format supports {known} and quoted text, got {match[2]!r}")
            return _DIRECTIVES[match[2]]

        self._format = _PATTERN.sub(directive, format_str)
        self._millis = "%f" in self._format
        try:
            self._zone = None if timezone_id is None else ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError):
            raise InvalidProgramError(f"unknown time zone {timezone_id!r}") from None

    def bucket_of_batch(self, processing_time: int) -> str:
        moment = datetime.fromtimestamp(processing_time / 1000, UTC).astimezone(self._zone)
        text = self._format.replace("%f", f"{processing_time % 1000:03}") if self._millis else self._format
        return moment.strftime(text)

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return self.bucket_of_batch(context.current_processing_time)


class RollingPolicy(ABC):
    """Decides when a file is complete."""

    max_part_size: int | None = None
    rollover_interval: int | None = None
    inactivity_interval: int | None = None
    on_checkpoint: bool = False
    get_java_object = no_java_object

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128, rollover_interval: int = 60 * 1000, inactivity_interval: int = 60 * 1000
    ) -> DefaultRollingPolicy:
        """Roll by size in bytes, by age, and by the time since the last record (both in ms)."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Roll with each checkpoint, which is each micro-batch."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """Rolls by size and time: a file spans many checkpoints."""

    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        for value, what in (
            (part_size, "part size"),
            (rollover_interval, "rollover interval"),
            (inactivity_interval, "inactivity interval"),
        ):
            if value <= 0:
                raise InvalidProgramError(f"the {what} of a rolling policy must be positive, got {value}")
        self.max_part_size = part_size
        self.rollover_interval = rollover_interval
        self.inactivity_interval = inactivity_interval


class OnCheckpointRollingPolicy(RollingPolicy):
    """Rolls with each checkpoint."""

    on_checkpoint = True


@dataclass(frozen=True)
class OutputFileConfig:
    """The names of files."""

    part_prefix: str = "part"
    part_suffix: str = ""

    get_java_object = no_java_object

    def get_part_prefix(self) -> str:
        return self.part_prefix

    def get_part_suffix(self) -> str:
        return self.part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Collects prefix and suffix."""

        def __init__(self) -> None:
            self._prefix, self._suffix = "part", ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the prefix of file names."""
            self._prefix = _checked_name(prefix)
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the suffix of file names, such as ``.csv``."""
            self._suffix = _checked_name(suffix)
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self._prefix, self._suffix)


def _checked_name(text: str) -> str:
    if "/" in text:
        raise InvalidProgramError(f"a part of a file name must not contain a slash, got {text!r}")
    return text


@dataclass(frozen=True)
class FileCompactStrategy:
    """When to compact small files: after a number of checkpoints, or at a total size."""

    checkpoints: int | None = None
    size_threshold: int | None = None
    threads: int = 1

    get_java_object = no_java_object

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    class Builder:
        """Collects the settings of a strategy."""

        def __init__(self) -> None:
            self._checkpoints: int | None = None
            self._size: int | None = None
            self._threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compact after this many checkpoints."""
            if num_checkpoints_before_compaction <= 0:
                raise InvalidProgramError("compaction needs at least one checkpoint")
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact the files of a bucket when their total size reaches this many bytes."""
            if size_threshold <= 0:
                raise InvalidProgramError("the size threshold of a compaction must be positive")
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Set the number of buckets that the driver compacts at the same time; the default is 1."""
            if num_compact_threads <= 0:
                raise InvalidProgramError("compaction needs at least one thread")
            self._threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            if self._checkpoints is None and self._size is None:
                raise InvalidProgramError("a compaction strategy needs a number of checkpoints or a size threshold")
            return FileCompactStrategy(self._checkpoints, self._size, self._threads)


class FileCompactor(ABC):
    """Merges several files into one."""

    get_java_object = no_java_object

    @abstractmethod
    def compact(self, inputs: Sequence[Path], output: Path) -> None:
        """Write the content of all inputs, in order, to a new file."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Concatenate files. For row formats."""
        return _Concatenate(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Copy single files unchanged."""
        return Identical()

    @staticmethod
    def record_wise_file_compactor(reader: FileFormat, writer: BulkWriterFactory) -> FileCompactor:
        """Read records and write them again. For bulk formats such as Parquet."""
        return _RecordWise(reader, writer)


class _Concatenate(FileCompactor):
    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter

    def compact(self, inputs: Sequence[Path], output: Path) -> None:
        with output.open("wb") as out:
            for number, path in enumerate(inputs):
                if number:
                    out.write(self._delimiter)
                with path.open("rb") as file:
                    shutil.copyfileobj(file, out)


class Identical(FileCompactor):
    def compact(self, inputs: Sequence[Path], output: Path) -> None:
        (only,) = inputs
        shutil.copyfile(only, output)


class _RecordWise(FileCompactor):
    def __init__(self, reader: FileFormat, writer: BulkWriterFactory) -> None:
        self._reader = reader
        self._writer = writer

    def compact(self, inputs: Sequence[Path], output: Path) -> None:
        with output.open("wb") as out:
            writer = self._writer.create(out)
            for path in inputs:
                for records in self._reader.read(str(path), 0, self._reader.length(str(path))):
                    for record in records:
                        writer.add_element(record)
            writer.finish()
