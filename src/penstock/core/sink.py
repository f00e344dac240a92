"""The contract of sinks, with an optional two-phase commit.

Each task creates a :class:`SinkWriter`. In every micro-batch, the task calls :meth:`SinkWriter.begin`, passes the
records to the writer, then calls :meth:`SinkWriter.flush` and :meth:`SinkWriter.prepare_commit`. The result
(*committables*: names of files, ids of transactions) goes to the driver. Once the batch is durable, the
:class:`Committer` makes all of it visible. A batch that fails is written again, and the committables of the failed
attempt are never committed. A sink with a committer is therefore exactly-once, one without at-least-once.

The commit happens at one of two times. Usually it is part of the batch: the engine completes the checkpoint when
:meth:`Committer.commit` returns. After a crash in between, the batch runs again and commits again under the same
checkpoint id. With :attr:`Committer.after_checkpoint`, the commit follows the checkpoint, as in Flink: committables
wait in a durable log until the checkpoint is complete, and leave it when ``commit`` returns. Choose this if the results
of a second run of the batch cannot replace what the first run committed.

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
    """How often a record may reach the external system after a failure."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(slots=True)
class WriterInitContext:
    """The context in which a writer is created.

    ``sink_id`` identifies the sink within the job and is the same on each run. ``job_id`` is that of the run that
    created the checkpoint directory, also after a restart. ``(job_id, sink_id, checkpoint_id, subtask_id)`` is unique,
    and unchanged when a batch is written again: use it to name files and transactions.

    ``epoch`` is that of the job's driver. A driver that takes over the checkpoint directory has a higher epoch than all
    earlier drivers, whose tasks may still be running. A store that can compare epochs uses it to reject those tasks. It
    is 0 if the job has no checkpoint directory.
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
    """The context of the current record. One object, updated for each record."""

    __slots__ = ("_watermark", "timestamp_ms")

    def __init__(self, timestamp: int | None = None, watermark: int = MIN_WATERMARK) -> None:
        self.timestamp_ms = timestamp
        self._watermark = watermark

    def timestamp(self) -> int | None:
        """Return the timestamp of the record, or ``None`` if it has none."""
        return self.timestamp_ms

    def current_watermark(self) -> int:
        """Return the sink's current watermark."""
        return self._watermark


class SinkWriter(ABC):
    """Writes the records of one task, one micro-batch at a time.

    Override :meth:`write`, or :meth:`write_batch` for speed.
    """

    #: The runtime sets it before each call of :meth:`write_batch`.
    current_watermark: int = MIN_WATERMARK
    #: The runtime sets it before :meth:`begin`, :meth:`write_batch` and :meth:`flush`. Constant during a batch.
    current_processing_time: int = 0

    def begin(self, checkpoint_id: int) -> None:
        """Called before the first record of each micro-batch, except the one in which the writer was created."""
        return

    def write(self, value: Any, context: SinkWriterContext) -> None:
        """Write one record."""
        raise NotImplementedError(f"{type(self).__name__} must define write() or write_batch()")

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Write several records; ``timestamps`` is ``None`` if none of them has one."""
        context = SinkWriterContext(None, self.current_watermark)
        write = self.write
        if timestamps is None:
            for value in values:
                write(value, context)
        else:
            for value, context.timestamp_ms in zip(values, timestamps, strict=True):
                write(value, context)

    def next_wakeup(self) -> int | None:
        """Return the processing time at which to call :meth:`flush` even if no record arrives."""
        return None

    def flush(self, end_of_input: bool) -> None:
        """Write all records that are still in memory. Called after the last record of a micro-batch."""
        return

    def prepare_commit(self) -> list[Any]:
        """Return picklable committables for the committer. Called after :meth:`flush`."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """Return picklable state for a writer that takes over. Called after :meth:`prepare_commit`, and only for sinks
        with :attr:`Sink.stateful`.
        """
        return []

    def close(self) -> None:
        """Called once at the end, also after a failure. Drop uncommitted work here."""
        return


class HandOverWriter(SinkWriter):
    """Passes the records themselves to the committer."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._values += values

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return values


class Committer(ABC):
    """Makes written data visible. Runs on the driver.

    An error fails the job, which then follows its restart strategy. If a retry may help, raise a
    :class:`~penstock.common.errors.RetryCommitError`; ``commit`` is then called again with the same arguments.
    """

    after_checkpoint: bool = False
    """Whether to commit from the log after the checkpoint completes, instead of just before."""
    may_commit_early: bool = False
    """For committers that commit after the checkpoint: whether they can also do it before, in places without a log,
    because a second run of the batch replaces the first one.
    """
    max_retries: int = 10
    """The maximum number of commit retries before the job fails. A commit that follows the checkpoint is retried with
    each of the next batches instead, without a limit, and this many times at the end of the job.
    """
    retry_backoff_ms: int = 50
    """The delay before the first retry. It doubles with each retry, up to 100 times the first delay."""

    fence: Fence = Fence()
    """Set before :meth:`open`. The driver checks it before it calls :meth:`commit`. A commit of several steps may check
    it again, and a commit to a system that can compare epochs sends the driver's epoch along.
    """

    def open(self, job_id: str, sink_id: str) -> None:
        """Called before the first commit, also after a restart, with the same ids as the writers."""
        return

    def checkpoint_complete(self, *, final: bool) -> None:
        """Called when all commits so far belong to complete checkpoints and will not be repeated. Called often, also
        when nothing happened; ``final`` is True at the end of the job.
        """
        return

    @abstractmethod
    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Commit what all tasks prepared in a micro-batch. It must be idempotent: after a failure it is called again
        with the same arguments, even if everything was committed.
        """

    def recommit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Commit what a restarted job finds in the log. It may have been committed before the crash. Only called on
        committers that commit after the checkpoint.
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
    """Whether the committer can commit in continuous mode without waiting for a checkpoint. After a failure, it may get
    records again. Checkpoint ids are then the numbers of its calls.
    """
    needs_equal_batches: bool = False
    """Whether writers treat a second batch with the same checkpoint id as a repetition of the first. In continuous
    mode, a repeated checkpoint may have different records. The records then wait on the driver until their checkpoint
    completes, and the writers run there.
    """

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer for one task."""

    def restore_writer(self, context: WriterInitContext, state: list[Any]) -> SinkWriter:
        """Create a writer from the state of the previous one at the last checkpoint."""
        return self.create_writer(context)

    def create_committer(self) -> Committer | None:
        """Create the committer, or return ``None`` if writers need no second step."""
        return None

    get_java_function = no_java_object
