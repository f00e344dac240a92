"""FileSource: the records of files, either a fixed set or including files that arrive later."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Duration, Time, to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.file_system.enumerator import FileEnumerator, FileSplit
from penstock.connectors.file_system.local_path import local_path
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.formats.file_format import BulkFormat, FileFormat, StreamFormat
from penstock.formats.records import RecordFormat

__all__ = ["FileEnumeratorProvider", "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider"]


T = TypeVar("T")

Length = Time | Duration | timedelta | int | str


class FileEnumeratorProvider(Enum):
    """Decides whether to read large files in several parts at once."""

    SPLITTABLE = "splittable"
    NON_SPLITTABLE = "non-splittable"

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        return FileEnumeratorProvider.SPLITTABLE

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        return FileEnumeratorProvider.NON_SPLITTABLE


class FileSplitAssignerProvider(Enum):
    """Assigns splits to readers. Accepted for compatibility: a split always goes to the task with the fewest splits."""

    LOCALITY_AWARE = "locality-aware"

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        return FileSplitAssignerProvider.LOCALITY_AWARE


class FileSource(Source[T], Generic[T]):
    r"""Reads the records of files and directories. It ignores names that begin with ``.`` or ``_``.

    Files are read once, in the order of their modification times. Write a file elsewhere and move it in when it is
    complete. A task reads one file to its end before it takes the next, so one task reads all files in order. Several
    tasks each take the next file (or part of a large one) when they are free. A restarted job resumes at its position
    in each file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from penstock.common import WatermarkStrategy
    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> from penstock.testing import MiniCluster
    >>> directory = Path(tempfile.mkdtemp())
    >>> _ = (directory / "in.txt").write_text("one\ntwo\n")
    >>> source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()
    >>> env = StreamExecutionEnvironment(executor=MiniCluster())
    >>> list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())
    ['one', 'two']

    The constructor is equivalent to the builder.

    >>> list(env.from_source(FileSource(directory, format=StreamFormat.text_line_format())).collect())
    ['one', 'two']
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        format: RecordFormat[T] | FileFormat[T],  # noqa: A002 - what readers and writers of files call it
        watch_every: Length | None = None,
        enumerator: FileEnumeratorProvider = FileEnumeratorProvider.SPLITTABLE,
        reread_modified: bool = False,
    ) -> None:
        """:param paths: files and directories
        :param format: ``Json(Order)``, ``Csv(Order)``, ``Text()`` or a format for files
        :param watch_every: how often to look for new files; without it, the source is bounded
        """
        if not paths:
            raise InvalidProgramError("a file source needs the path of a file or a directory")
        self._format = format.file_format() if isinstance(format, RecordFormat) else _checked(format, FileFormat)
        self._paths = [local_path(path) for path in paths]
        self._interval_ms = None if watch_every is None else _positive(watch_every)
        if watch_every is None:
            existing_paths(self._paths)
        self._enumerator = enumerator
        self._reread_modified = reread_modified

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Create a builder for files that are read record by record, such as text."""
        return FileSourceBuilder(_checked(stream_format, StreamFormat), paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Create a builder for files that are read in blocks, such as Parquet."""
        return FileSourceBuilder(_checked(bulk_format, BulkFormat), paths)

    def get_boundedness(self) -> Boundedness:
        """Return whether the source is bounded: it is unless it monitors directories."""
        return Boundedness.BOUNDED if self._interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation:
        return self._format.get_produced_type()

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return FileEnumerator(
            self._paths,
            self._format,
            parallelism,
            interval=None if self._interval_ms is None else self._interval_ms / 1000,
            splittable=self._enumerator is FileEnumeratorProvider.SPLITTABLE,
            reread_modified=self._reread_modified,
        )

    def create_reader(self) -> SourceReader:
        return _FileReader(self._format)

    def initial_offset(self, split: SourceSplit) -> int:
        assert isinstance(split, FileSplit)
        return split.start


class _FileReader(SourceReader):
    def __init__(self, file_format: FileFormat) -> None:
        self._format = file_format

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        assert isinstance(split, FileSplit)
        for records in self._format.read(split.path, start_offset, end_offset):
            yield records, None


class FileSourceBuilder:
    """Collects the settings of a FileSource."""

    def __init__(self, file_format: FileFormat, paths: tuple[str | os.PathLike[str], ...]) -> None:
        if not paths:
            raise InvalidProgramError("a file source needs the path of a file or a directory")
        self._format = file_format
        self._paths = [local_path(path) for path in paths]
        self._interval_ms: int | None = None
        self._enumerator = FileEnumeratorProvider.SPLITTABLE
        self._reread_modified = False

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Look for new files at this interval. The source never ends."""
        self._interval_ms = _positive(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read only the files that exist when the job starts."""
        self._interval_ms = None
        return self

    def reread_modified_files(self) -> FileSourceBuilder:
        """Read a file again from the start if its modification time changes while directories are monitored."""
        self._reread_modified = True
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Set whether to read large files in several parts at once."""
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted for compatibility."""
        return self

    def build(self) -> FileSource:
        return FileSource(
            *self._paths,
            format=self._format,
            watch_every=self._interval_ms,
            enumerator=self._enumerator,
            reread_modified=self._reread_modified,
        )


def _positive(interval: Length) -> int:
    millis = to_millis(interval)
    if millis <= 0:
        raise InvalidProgramError(f"the discovery interval must be positive, got {millis} ms")
    return millis


def existing_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Check local paths: a missing one is an error when the job is defined."""
    found = [local_path(path) for path in paths]
    for path in found:
        if not Path(path).exists():
            raise InvalidProgramError(f"the file or directory {path!r} does not exist")
    return found


def _checked(file_format: Any, kind: Any) -> FileFormat:
    if not isinstance(file_format, kind):
        hint = ": use, for example, Csv(Order), Json(Order) or Text()" if kind is FileFormat else ""
        raise InvalidProgramError(f"expected a {kind.__name__}, got {shorten(file_format)}{hint}")
    assert isinstance(file_format, FileFormat)
    return file_format
