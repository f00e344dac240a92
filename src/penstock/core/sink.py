"""The contract of sinks, with an optional two-phase commit.

Each task makes a :class:`SinkWriter`. In every micro-batch it calls :meth:`SinkWriter.begin`, hands it its records,
calls :meth:`SinkWriter.flush`, then :meth:`SinkWriter.prepare_commit`. What that returns (*committables*: names of
files, ids of transactions) goes to the driver. Once the batch is durable, the :class:`Committer` makes all of it
visible. A batch that fails is written again; its first committables are then never committed, so a sink with a
committer delivers exactly once, one without at least once.

There are two moments for the commit. Usually it is part of the batch: the engine completes the checkpoint when
:meth:`Committer.commit` has returned, and after a crash in between the batch runs again and is committed again under
the same checkpoint id. With :attr:`Committer.after_checkpoint` it follows the checkpoint, as in Flink: committables
wait in a durable log until the checkpoint is complete, and leave it when ``commit`` has returned. Choose this one if
what a second run of the batch prepares cannot take the place of what the first one committed.

>>> class Lines(Sink):
...     '''Collects lines; they become visible with the commit.'''
...
...     def create_writer(self, context):
...         return LinesWriter(context.subtask_id)
...
...     def create_committer(self):
...         return LinesCommitter()
>>> class LinesWriter(SinkWriter):
...     def __init__(self, subtask):
...         self.subtask, self.pending = subtask, []
...
...     def write(self, value, context):
...         self.pending.append(f"{self.subtask}: {value} at {context.timestamp()}")
...
...     def prepare_commit(self):
...         ready, self.pending = self.pending, []
...         return [ready]
>>> class LinesCommitter(Committer):
...     def commit(self, committables, checkpoint_id):
...         for lines in committables:
...             print(checkpoint_id, lines)
>>> sink = Lines()
>>> writer = sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=7))
>>> writer.write_batch(["a", "b"], [10, 20])
>>> writer.flush(end_of_input=True)
>>> sink.create_committer().commit(writer.prepare_commit(), checkpoint_id=7)
7 ['0: a at 10', '0: b at 20']
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.common.unsupported import no_java_object
from penstock.common.watermark import MIN_WATERMARK
from penstock.core.fence import Fence

if TYPE_CHECKING:
    from penstock.core.functions import RuntimeContext
    from penstock.metrics import MetricGroup

__all__ = [
    "Committer",
    "DeliveryGuarantee",
    "HandOverWriter",
    "Sink",
    "SinkWriter",
    "SinkWriterContext",
    "WriterInitContext",
]


class DeliveryGuarantee(Enum):
    """The number of times that a record may reach the outer system after a failure."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(slots=True)
class WriterInitContext:
    """The context in which a writer is created.

    ``sink_id`` names the sink within the job, the same on every run. ``job_id`` is that of the run that began the
    checkpoint directory, also after a restart. ``(job_id, sink_id, checkpoint_id, subtask_id)`` is unique, and the same
    when a batch is written again: use it to name files and transactions.

    ``epoch`` is that of the job's driver. A driver that takes over the checkpoint directory has a higher one than all
    before it; tasks of the old one may still be running. A store that can compare keeps them out by it. 0 if the job
    has no checkpoint directory.
    """

    subtask_id: int
    parallelism: int
    checkpoint_id: int
    job_id: str = ""
    sink_id: str = ""
    attempt_number: int = 0
    epoch: int = 0
    processing_time: int = 0
    metric_group: MetricGroup | None = None
    runtime_context: RuntimeContext | None = None
    options: dict[str, Any] = field(default_factory=dict)


class SinkWriterContext:
    """The context of the current record. One object, changed from record to record."""

    __slots__ = ("_watermark", "timestamp_ms")

    def __init__(self, timestamp: int | None = None, watermark: int = MIN_WATERMARK) -> None:
        self.timestamp_ms = timestamp
        self._watermark = watermark

    def timestamp(self) -> int | None:
        """The timestamp of the record, ``None`` if it has none."""
        return self.timestamp_ms

    def current_watermark(self) -> int:
        """The sink's event-time clock."""
        return self._watermark


class SinkWriter(ABC):
    """Writes the records of one task, micro-batch after micro-batch.

    Override :meth:`write`, or :meth:`write_batch` for speed.
    """

    #: Set by the runtime before each call of :meth:`write_batch`.
    current_watermark: int = MIN_WATERMARK
    #: Set by the runtime before :meth:`begin`, :meth:`write_batch` and :meth:`flush`; the same throughout a batch.
    current_processing_time: int = 0

    def begin(self, checkpoint_id: int) -> None:
        """Called before the first record of every micro-batch but the one the writer was made in."""
        return

    def write(self, value: Any, context: SinkWriterContext) -> None:
        """Writes one record."""
        raise NotImplementedError(f"{type(self).__name__} must define write() or write_batch()")

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Writes several records; ``timestamps`` is ``None`` if none of them has one."""
        context = SinkWriterContext(None, self.current_watermark)
        write = self.write
        if timestamps is None:
            for value in values:
                write(value, context)
        else:
            for value, context.timestamp_ms in zip(values, timestamps, strict=True):
                write(value, context)

    def next_wakeup(self) -> int | None:
        """The processing time at which :meth:`flush` must be called though no record may come."""
        return None

    def flush(self, end_of_input: bool) -> None:
        """Called after the last record of a micro-batch: nothing may stay in memory only."""
        return

    def prepare_commit(self) -> list[Any]:
        """Return what the committer makes visible; picklable. Called after :meth:`flush`."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """What a writer that takes over must know; picklable. Called after :meth:`prepare_commit`, and only for
        sinks that say :attr:`Sink.stateful`.
        """
        return []

    def close(self) -> None:
        """Called once at the end, also after a failure; not committed work is dropped here."""
        return


class HandOverWriter(SinkWriter):
    """Hands the records themselves to the committer."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._values += values

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return values


class Committer(ABC):
    """Makes written data visible. Runs on the driver.

    An error fails the job, which then does what its restart strategy says. If trying again may help, raise a
    :class:`~penstock.common.errors.RetryCommitError`: ``commit`` is then called again with the same arguments.
    """

    after_checkpoint: bool = False
    """Whether to commit when the checkpoint is complete, from the log, instead of just before."""
    may_commit_early: bool = False
    """For those that commit after the checkpoint: whether they can also do it before, where there is no place for a
    log, because a second run of the batch takes the place of the first.
    """
    max_retries: int = 10
    """How often a commit that asks for it is tried again before the job fails. One that follows the checkpoint is tried
    again with the next batches instead, as often as there are any, and so often at the end of the job.
    """
    retry_backoff_ms: int = 50
    """The wait before the first retry; doubled for each one after it, up to 100 times as long."""

    fence: Fence = Fence()
    """Set before :meth:`open`. The driver checks it before it calls :meth:`commit`; a commit of several steps may check
    it again, and one to a system that can compare epochs takes the driver's along.
    """

    def open(self, job_id: str, sink_id: str) -> None:
        """Called before the first commit, also after a restart; the ids are those the writers get."""
        return

    def checkpoint_complete(self, *, final: bool) -> None:
        """What was committed so far belongs to complete checkpoints and will not be committed again. Called often,
        also when nothing happened; ``final`` when the job is done.
        """
        return

    @abstractmethod
    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Commits what all tasks prepared in a micro-batch. Must be idempotent: after a failure it is called again
        with the same arguments, even if everything was committed.
        """

    def recommit(self, committables: list[Any], checkpoint_id: int) -> None:
        """:meth:`commit` of what a job that starts again finds in the log: it may have been committed before the
        crash. Only for those that commit after the checkpoint.
        """
        self.commit(committables, checkpoint_id)

    def close(self) -> None:
        """Called once at the end of the job."""
        return


class Sink(ABC):
    """A sink for records, as passed to `sink_to`. Must be picklable."""

    stateful: bool = False
    """Whether writers have state: see :meth:`SinkWriter.snapshot_state` and :meth:`restore_writer`."""
    publishes_at_once: bool = False
    """Whether the committer need not wait for a checkpoint in the continuous mode. After a failure it may get records
    again. The numbers it is called with then count calls instead of checkpoints.
    """
    needs_equal_batches: bool = False
    """Whether writers take a second batch with the same checkpoint id for a repetition of the first. In the continuous
    mode, where a checkpoint that is repeated may have other records, the records then wait on the driver until their
    checkpoint is complete, and the writers run there.
    """

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """A writer, for one task."""

    def restore_writer(self, context: WriterInitContext, state: list[Any]) -> SinkWriter:
        """A writer that continues from the state another one left with the last checkpoint."""
        return self.create_writer(context)

    def create_committer(self) -> Committer | None:
        """The committer; ``None`` if writers need no second step."""
        return None

    get_java_function = no_java_object
