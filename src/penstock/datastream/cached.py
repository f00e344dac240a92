"""Streams whose records are cached: a later job reads them instead of computing them again."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.ranges import RangeEnumerator, RangeSplit
from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.datastream.data_stream import DataStream
from penstock.graph.job_graph import translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import SinkTransformation, SourceTransformation, Transformation
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.records.serialization import dumps

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["CachedDataStream", "sinks_of_caches"]

T = TypeVar("T")

_RECORDS = "records"


class CachedDataStream(DataStream[T]):
    """A bounded stream. The first BATCH job that computes it to its end caches its records.

    Later streams that start from it, and the jobs that contain them, read the cache. The cache is on the driver's disk
    until the program ends or you call :meth:`invalidate`. As in Flink, only batch jobs fill it. In STREAMING mode, the
    stream is computed again, with the same result.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self.directory = tempfile.mkdtemp(prefix="penstock-cache-")
        weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)
        self._kept: SourceTransformation | None = None
        super().__init__(env, transformation)
        env.caches.append(self)

    @property
    def _transformation(self) -> Transformation:
        """Return the transformation that computes the stream or, once the cache is filled, a source that reads the
        cache.
        """
        if self._kept is None and self.is_kept:
            self._kept = SourceTransformation(
                name=f"Cache: {self.computed.name}",
                source=_CacheSource(self.directory),
                output_type=self.computed.output_type,
            )
        return self.computed if self._kept is None else self._kept

    @_transformation.setter
    def _transformation(self, transformation: Transformation) -> None:
        self.computed = transformation

    @property
    def is_kept(self) -> bool:
        """Whether a job has cached the records."""
        return Path(self.directory, _RECORDS).exists()

    def invalidate(self) -> None:
        """Drop the cached records: the next job computes and caches the stream again."""
        self._env.check_open()
        Path(self.directory, _RECORDS).unlink(missing_ok=True)
        self._kept = None


def sinks_of_caches(
    caches: Sequence[CachedDataStream], sinks: list[Transformation], settings: JobSettings
) -> list[Transformation]:
    """Return the additional sinks of a job that fill the caches of the streams it computes."""
    missing = [stream for stream in caches if not stream.is_kept]
    if not missing or not translate(sinks, settings).runs_as_batch:
        return []
    computed: set[int] = set()
    waiting = list(sinks)
    while waiting:
        transformation = waiting.pop()
        if transformation.id not in computed:
            computed.add(transformation.id)
            waiting += transformation.inputs
    return [
        SinkTransformation(
            name=f"Sink: Cache of {stream.computed.name}",
            input=stream.computed,
            operator=SinkOperator(_CacheSink(stream.directory)),
        )
        for stream in missing
        if stream.computed.id in computed
    ]


class _CacheSink(Sink):
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _CacheWriter(context.subtask_id)

    def create_committer(self) -> Committer:
        return _CacheCommitter(self.directory)


class _CacheWriter(SinkWriter):
    def __init__(self, subtask: int) -> None:
        self._subtask = subtask
        self._chunks: list[bytes] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._chunks.append(dumps((list(values), None if timestamps is None else list(timestamps)), "a cached record"))

    def prepare_commit(self) -> list[Any]:
        chunks, self._chunks = self._chunks, []
        return [(self._subtask, chunks)]


class _CacheCommitter(Committer):
    """Commits once: a batch job commits all its records together."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        parts: dict[int, list[bytes]] = {}
        for subtask, chunks in committables:
            parts.setdefault(subtask, []).extend(chunks)
        with contextlib.suppress(FileNotFoundError):  # the stream has been released
            temporary = self.directory / f"{_RECORDS}.tmp"
            temporary.write_bytes(pickle.dumps([parts[subtask] for subtask in sorted(parts)]))
            temporary.replace(self.directory / _RECORDS)


@dataclass(frozen=True)
class _CacheSplit(RangeSplit):
    """The records that one task wrote. The task that reads the split gets the records with it."""

    chunks: tuple[bytes, ...] = ()


class _CacheSource(Source):
    """Offsets count chunks in the order in which they were written."""

    def __init__(self, directory: str) -> None:
        self._path = Path(directory, _RECORDS)

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _CacheEnumerator(pickle.loads(self._path.read_bytes()))

    def create_reader(self) -> SourceReader:
        return _CacheReader()

    def initial_offset(self, split: SourceSplit) -> int:
        return 0


class _CacheEnumerator(RangeEnumerator):
    def __init__(self, parts: list[list[bytes]]) -> None:
        super().__init__([_CacheSplit(str(number), 0, len(part)) for number, part in enumerate(parts)])
        self._parts = parts

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        assert isinstance(split, _CacheSplit)
        return replace(split, chunks=tuple(self._parts[int(split.split_id)][start_offset:end_offset]))


class _CacheReader(SourceReader):
    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        assert isinstance(split, _CacheSplit)
        for chunk in split.chunks:
            yield pickle.loads(chunk)
