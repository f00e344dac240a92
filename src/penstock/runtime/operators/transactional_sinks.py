"""The older kinds of transactional sinks, run as sinks with writer and committer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.errors import RetryCommitError
from penstock.core.functions import CheckpointCommitter, GenericWriteAheadSink, SinkFunction, TwoPhaseCommitSinkFunction
from penstock.core.functions.base import Function
from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext
from penstock.metrics import MetricGroup
from penstock.runtime.operators.operator import JobInfo
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext


def transactional_sink(function: Any) -> Sink | None:
    """Return the sink for a function that takes part in checkpoints, and None for any other function."""
    if isinstance(function, TwoPhaseCommitSinkFunction):
        return TwoPhaseCommitSink(function)
    if isinstance(function, GenericWriteAheadSink):
        return WriteAheadSink(function)
    return None


class _RecordContext(SinkFunction.Context):
    """The `context` of invoke."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.watermark = 0
        self.current_timestamp: int | None = None

    def current_processing_time(self) -> int:
        return self._now()

    def current_watermark(self) -> int:
        return self.watermark

    def timestamp(self) -> int | None:
        return self.current_timestamp


def _open_on_driver(function: Function, job_id: str, name: str) -> None:
    context = StreamingRuntimeContext(
        operator_name=name,
        subtask=0,
        parallelism=1,
        max_parallelism=1,
        job=JobInfo(job_id=job_id),
        metrics=MetricGroup(),
        states=None,
    )
    function.set_runtime_context(context)
    function.open(context)


class TwoPhaseCommitSink(Sink):
    """Runs a TwoPhaseCommitSinkFunction. The state of a writer is the transaction that is open after the checkpoint.
    The next attempt aborts it (rule U10).
    """

    stateful = True

    def __init__(self, function: TwoPhaseCommitSinkFunction[Any]) -> None:
        self.function = function

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _TwoPhaseWriter(self.function, context, [])

    def restore_writer(self, context: WriterInitContext, state: list[Any]) -> SinkWriter:
        return _TwoPhaseWriter(self.function, context, state)

    def create_committer(self) -> Committer:
        return _TwoPhaseCommitter(self.function)


class _TwoPhaseWriter(SinkWriter):
    def __init__(self, function: TwoPhaseCommitSinkFunction[Any], context: WriterInitContext, left: list[Any]) -> None:
        self._function = function
        self._context = _RecordContext(lambda: self.current_processing_time)
        self._written = False
        if context.runtime_context is not None:
            function.set_runtime_context(context.runtime_context)
            function.open(context.runtime_context)
        for transaction in left:
            function.recover_and_abort(transaction)
        self._transaction: Any = function.begin_transaction()

    def begin(self, checkpoint_id: int) -> None:
        self._written = False

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        context, invoke, transaction = self._context, self._function.invoke, self._transaction
        context.watermark = self.current_watermark
        self._written = True
        for position, value in enumerate(values):
            context.current_timestamp = None if timestamps is None else timestamps[position]
            invoke(transaction, value, context)

    def flush(self, end_of_input: bool) -> None:
        if end_of_input:
            self._function.finish_processing(self._transaction)
            # Its output counts like records, even if the last records were in an earlier batch.
            self._written |= type(self._function).finish_processing is not TwoPhaseCommitSinkFunction.finish_processing

    def prepare_commit(self) -> list[Any]:
        """Keep a transaction without records for the next batch: an idle sink commits nothing."""
        if not self._written:
            return []
        self._written = False
        transaction = self._transaction
        self._function.pre_commit(transaction)
        self._transaction = self._function.begin_transaction()
        return [transaction]

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return [self._transaction]

    def close(self) -> None:
        self._function.abort(self._transaction)
        self._function.close()


class _TwoPhaseCommitter(Committer):
    after_checkpoint = True

    def __init__(self, function: TwoPhaseCommitSinkFunction[Any]) -> None:
        self._function = function
        self._opened = False
        self._job_id = ""

    def open(self, job_id: str, sink_id: str) -> None:
        self._job_id = job_id

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        self._commit_all(committables, self._function.commit)

    def recommit(self, committables: list[Any], checkpoint_id: int) -> None:
        self._commit_all(committables, self._function.recover_and_commit)

    def _commit_all(self, transactions: list[Any], commit: Callable[[Any], None]) -> None:
        if not self._opened:  # the driver needs its copy only now
            _open_on_driver(self._function, self._job_id, type(self._function).__name__)
            self._opened = True
        for transaction in transactions:
            commit(transaction)

    def close(self) -> None:
        if self._opened:
            self._function.close()


class WriteAheadSink(Sink):
    """Runs a GenericWriteAheadSink. The commit log is its log, and each committable is the segment of one subtask."""

    def __init__(self, function: GenericWriteAheadSink) -> None:
        self.function = function

    def __getstate__(self) -> dict[str, Any]:
        return {"function": None}  # tasks only collect: a sink for external systems need not be picklable

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _SegmentWriter(context)

    def create_committer(self) -> Committer:
        return _SegmentCommitter(self.function)


class _SegmentWriter(SinkWriter):
    def __init__(self, context: WriterInitContext) -> None:
        self._subtask = context.subtask_id
        self._values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._values += values

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return [(self._subtask, self.current_processing_time, values)] if values else []


class _SegmentCommitter(Committer):
    after_checkpoint = True

    def __init__(self, function: GenericWriteAheadSink) -> None:
        self._function = function
        self._committer: CheckpointCommitter | None = function.committer
        self._opened = False
        self._ids = ("", "")
        self._sent: set[tuple[int, int]] = set()  # segments of checkpoints that wait for another subtask

    def open(self, job_id: str, sink_id: str) -> None:
        self._ids = (self._function.job_id or job_id, sink_id)

    def _open(self) -> None:
        job_id, sink_id = self._ids
        _open_on_driver(self._function, job_id, type(self._function).__name__)
        if self._committer is not None:
            self._committer.set_job_id(job_id)
            self._committer.set_operator_id(sink_id)
            self._committer.create_resource()
            self._committer.open()
        self._opened = True

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Deliver each segment, then record its delivery (rule WA03)."""
        if not self._opened:
            self._open()
        refused = 0
        for subtask, timestamp, values in committables:
            if self._is_sent(subtask, checkpoint_id):
                continue
            if self._function.send_values(values, checkpoint_id, timestamp):
                self._sent.add((subtask, checkpoint_id))
                if self._committer is not None:
                    self._committer.commit_checkpoint(subtask, checkpoint_id)
            else:
                refused += 1
        if refused:
            raise RetryCommitError(f"send_values() returned False for {refused} segment(s)")
        self._sent.clear()

    def _is_sent(self, subtask: int, checkpoint_id: int) -> bool:
        if (subtask, checkpoint_id) in self._sent:
            return True
        return self._committer is not None and self._committer.is_checkpoint_committed(subtask, checkpoint_id)

    def close(self) -> None:
        if self._opened:
            if self._committer is not None:
                self._committer.close()
            self._function.close()
