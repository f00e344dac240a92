"""The writer of a file sink: one file in progress per bucket."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from penstock.connectors.file_system.part_files import (
    IN_PROGRESS,
    PENDING,
    UNCOMPACTED,
    InProgress,
    Numbering,
    PartFile,
    Pending,
    Superseded,
    continue_file,
    hidden_files,
    new_attempt,
    sink_tag,
    sink_writes,
    sync,
)
from penstock.connectors.file_system.sink_options import (
    BucketAssigner,
    BucketContext,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.core.sink import SinkWriter, WriterInitContext


@dataclass(frozen=True)
class FileSinkOptions:
    """All settings of a file sink."""

    base_path: str
    encoder: Encoder | None
    bulk: BulkWriterFactory | None
    assigner: BucketAssigner
    policy: RollingPolicy
    names: OutputFileConfig
    compacted: bool = False
    check_interval: int = 1


class _Bucket:
    """A file in progress."""

    def __init__(self, file: PartFile, stream: BinaryIO, attempt: str, bulk: BulkWriter | None, created: int) -> None:
        self.file = file
        self.stream = stream
        self.attempt = attempt
        self.bulk = bulk
        self.created = created
        self.modified = created

    def discard(self) -> None:
        """Release the file, in any state."""
        if self.bulk is not None:
            with suppress(Exception):
                self.bulk.finish()
        self.stream.close()


class FileSinkWriter(SinkWriter):
    """Writes records into the files of their buckets; complete files become committables."""

    def __init__(self, options: FileSinkOptions, context: WriterInitContext, state: list[Any] | None) -> None:
        self._options = options
        self._tag = sink_tag(context.job_id, context.sink_id)
        self._numbering = Numbering(context.subtask_id, context.parallelism)
        self._base = Path(options.base_path)
        self._attempt = new_attempt()
        self._buckets: dict[str, _Bucket] = {}
        self._pending: list[Pending] = []
        self._superseded: list[Path] = []
        self._obsolete: list[Path] = []  # the committer removes them: it knows whether its driver still owns the job
        self._context = BucketContext()
        self.current_processing_time = context.processing_time
        with sink_writes(self._base):
            self._base.mkdir(parents=True, exist_ok=True)
            if state is not None:
                self._restore(state, context.checkpoint_id)
            else:
                self._clean_up([])

    # -- taking over --------------------------------------------------------------------------------------------

    def _restore(self, state: list[Any], checkpoint_id: int) -> None:
        for entry in state:
            if isinstance(entry, Superseded):
                self._obsolete.append(Path(entry.path))
        left = [entry for entry in state if isinstance(entry, InProgress)]
        own = [entry for entry in state if isinstance(entry, Numbering) and entry.belongs_to(self._numbering)]
        for entry in left:
            self._continue(entry)
            if not own:  # from a subtask before a change of parallelism: several may have had the same bucket
                self._roll(entry.bucket)
        self._numbering = own[0] if own else replace(self._numbering, since=checkpoint_id)
        self._clean_up(left)

    def _continue(self, left: InProgress) -> None:
        path = continue_file(left, self._attempt, compacted=self._options.compacted)
        bucket = _Bucket(left.file, path.open("ab"), self._attempt, None, left.created)
        bucket.modified = left.modified
        self._buckets[left.bucket] = bucket

    def _clean_up(self, state: list[InProgress]) -> None:
        """Find the files of failed attempts. Files in the checkpoint are needed until the next one completes.

        This removes nothing: tasks of a replaced driver may still be running, and the next driver may need a file that
        is useless to them.
        """
        needed = [left.file.path(stage, left.attempt) for left in state for stage in (IN_PROGRESS, PENDING)]
        self._superseded = [path for path in needed if path.exists()]
        own = {bucket.file.path(IN_PROGRESS, bucket.attempt) for bucket in self._buckets.values()}
        kept = {*needed, *own, *(Path(pending.source) for pending in self._pending)}
        for path in hidden_files(self._base, self._options.names.part_prefix, self._tag, self._numbering.writer):
            if path not in kept:
                self._obsolete.append(path)

    # -- records ------------------------------------------------------------------------------------------------

    def begin(self, checkpoint_id: int) -> None:
        """Mark files as obsolete: after the previous checkpoint, no restart needs those of the one before it."""
        self._obsolete += self._superseded
        self._superseded.clear()

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        with sink_writes(self._base):
            self._write_batch(values, timestamps)

    def _write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        common = self._options.assigner.bucket_of_batch(self.current_processing_time)
        if common is not None:
            self._write(common, values)
            return
        context, assign = self._context, self._options.assigner.get_bucket_id
        context.current_processing_time = self.current_processing_time
        context.current_watermark = self.current_watermark
        by_bucket: dict[str, list[Any]] = {}
        for position, value in enumerate(values):
            context.timestamp = None if timestamps is None else timestamps[position]
            by_bucket.setdefault(assign(value, context), []).append(value)
        for name, part in by_bucket.items():
            self._write(name, part)

    def _write(self, name: str, values: Sequence[Any]) -> None:
        options = self._options
        bucket = self._buckets.get(name) or self._open(name)
        bucket.modified = self.current_processing_time
        if bucket.bulk is not None:
            add = bucket.bulk.add_element
            for value in values:
                add(value)
            return
        limit = options.policy.max_part_size
        assert options.encoder is not None
        encode, stream = options.encoder.encode, bucket.stream
        for value in values:
            if limit is not None and stream.tell() > limit:
                self._roll(name)
                stream = self._open(name).stream
            encode(value, stream)

    def _open(self, name: Any) -> _Bucket:
        if not isinstance(name, str) or name.startswith("/") or ".." in Path(name).parts:
            raise InvalidProgramError(f"a bucket must be a path below the sink's directory, got {shorten(name)}")
        directory = self._base / name
        directory.mkdir(parents=True, exist_ok=True)
        names = self._options.names
        number = self._numbering
        part = f"{names.part_prefix}-{self._tag}-{number.writer}-{number.next}{names.part_suffix}"
        self._numbering = replace(number, next=number.next + 1)
        file = PartFile(str(directory), part)
        stream = file.path(IN_PROGRESS, self._attempt).open("wb")
        bulk = None if self._options.bulk is None else self._options.bulk.create(stream)
        bucket = self._buckets[name] = _Bucket(file, stream, self._attempt, bulk, self.current_processing_time)
        return bucket

    # -- complete files -----------------------------------------------------------------------------------------

    def _roll(self, name: str) -> None:
        bucket = self._buckets[name]
        if bucket.bulk is not None:
            bucket.bulk.finish()
        sync(bucket.stream)
        bucket.stream.close()
        del self._buckets[name]
        pending = bucket.file.path(PENDING, bucket.attempt)
        bucket.file.path(IN_PROGRESS, bucket.attempt).rename(pending)
        final = bucket.file.final
        target = final.with_name(UNCOMPACTED + final.name) if self._options.compacted else final
        self._pending.append(Pending(str(pending), str(target)))

    def _is_complete(self, bucket: _Bucket) -> bool:
        policy, now = self._options.policy, self.current_processing_time
        now -= now % self._options.check_interval  # the last check
        return (
            policy.on_checkpoint
            or (policy.max_part_size is not None and bucket.stream.tell() > policy.max_part_size)
            or (policy.rollover_interval is not None and now - bucket.created >= policy.rollover_interval)
            or (policy.inactivity_interval is not None and now - bucket.modified >= policy.inactivity_interval)
        )

    def flush(self, end_of_input: bool) -> None:
        with sink_writes(self._base):
            for name, bucket in list(self._buckets.items()):
                if end_of_input or self._is_complete(bucket):
                    self._roll(name)
                else:
                    sync(bucket.stream)
        if end_of_input:
            self._obsolete += self._superseded

    def next_wakeup(self) -> int | None:
        policy = self._options.policy
        if policy.rollover_interval is None or policy.inactivity_interval is None:
            return None
        times = [
            min(bucket.created + policy.rollover_interval, bucket.modified + policy.inactivity_interval)
            for bucket in self._buckets.values()
        ]
        if not times:
            return None
        interval = self._options.check_interval
        return -(-min(times) // interval) * interval

    def prepare_commit(self) -> list[Any]:
        pending = self._pending + [Pending.to_remove(path) for path in self._obsolete]
        self._pending, self._obsolete = [], []
        return pending

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        files = [
            InProgress(name, bucket.file, bucket.attempt, bucket.stream.tell(), bucket.created, bucket.modified)
            for name, bucket in self._buckets.items()
        ]
        return [self._numbering, *files, *(Superseded(str(path)) for path in self._superseded)]

    def close(self) -> None:
        """Keep the files, because the checkpoint may need them."""
        for bucket in self._buckets.values():
            bucket.discard()

    def __del__(self) -> None:
        """Close the files: a worker may drop a task without closing it."""
        for bucket in getattr(self, "_buckets", {}).values():
            bucket.discard()
