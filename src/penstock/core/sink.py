"""The contract of sinks, with an optional two-phase commit.

Each task makes a :class:`SinkWriter`. In every micro-batch it calls :meth:`SinkWriter.begin`, hands it its records,
calls :meth:`SinkWriter.flush`, then :meth:`SinkWriter.prepare_commit`. What that returns (*committables*: names of
files, ids of transactions) goes to the driver. Once the batch is durable, the :class:`Committer` makes all of it
visible. A batch that fails is written again; its first committables are then never committed, so a sink with a
committer delivers exactly once, one without at least once.

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

if TYPE_CHECKING:
    from penstock.core.functions import RuntimeContext
    from penstock.metrics import MetricGroup

__all__ = ["Committer", "DeliveryGuarantee", "Sink", "SinkWriter", "SinkWriterContext", "WriterInitContext"]


class DeliveryGuarantee(Enum):
    """How often a record reaches the outer system if something fails."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(slots=True)
class WriterInitContext:
    """What a writer is made for.

    ``sink_id`` names the sink within the job, the same on every run. ``lineage`` names the job's line of checkpoints: a
    program that is started again and continues from its checkpoint has the same one, with another ``job_id``.
    ``(lineage, sink_id, checkpoint_id, subtask_id)`` is unique, and the same when a batch is written again.
    """

    subtask_id: int
    parallelism: int
    checkpoint_id: int
    job_id: str = ""
    lineage: str = ""
    sink_id: str = ""
    attempt_number: int = 0
    processing_time: int = 0
    metric_group: MetricGroup | None = None
    runtime_context: RuntimeContext | None = None
    options: dict[str, Any] = field(default_factory=dict)


class SinkWriterContext:
    """What a writer knows about the record it gets. One object, changed from record to record."""

    __slots__ = ("_timestamp", "_watermark")

    def __init__(self, timestamp: int | None = None, watermark: int = MIN_WATERMARK) -> None:
        self._timestamp = timestamp
        self._watermark = watermark

    def timestamp(self) -> int | None:
        """The timestamp of the record, ``None`` if it has none."""
        return self._timestamp

    def current_watermark(self) -> int:
        """The sink's event-time clock."""
        return self._watermark


class SinkWriter(ABC):
    """Writes the records of one task, micro-batch after micro-batch.

    Override :meth:`write`, or :meth:`write_batch` for speed.
    """

    #: Set by the runtime before each call of :meth:`write_batch`.
    current_watermark: int = MIN_WATERMARK

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
            for value, context._timestamp in zip(values, timestamps, strict=True):
                write(value, context)

    def flush(self, end_of_input: bool) -> None:
        """Called after the last record of a micro-batch: nothing may stay in memory only."""
        return

    def prepare_commit(self) -> list[Any]:
        """What the committer has to make visible; picklable. Called after :meth:`flush`."""
        return []

    def close(self) -> None:
        """Called once at the end, also after a failure; not committed work is dropped here."""
        return


class Committer(ABC):
    """Makes written data visible. Runs on the driver."""

    @abstractmethod
    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Commits what all tasks prepared in a micro-batch. Must be idempotent: after a failure it is called again
        with the same arguments, even if everything was committed.
        """

    def close(self) -> None:
        """Called once at the end of the job."""
        return


class Sink(ABC):
    """A sink for records: what a job is given. Must be picklable."""

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """A writer, for one task."""

    def create_committer(self) -> Committer | None:
        """The committer; ``None`` if writers need no second step."""
        return None

    get_java_function = no_java_object
