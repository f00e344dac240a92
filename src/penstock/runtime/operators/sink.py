"""The sink operator: runs a SinkWriter in the task. The driver commits its committables with the batch."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.sink import Sink, SinkWriter, WriterInitContext
from penstock.core.state import ListStateDescriptor
from penstock.runtime.operators.deferred_sink import sink_in_steps
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import Timestamps, Values

_WRITER_STATE = ListStateDescriptor("sink-writer")


class SinkOperator(StreamOperator):
    """Runs one writer of a sink.

    :param as_function: the sink was passed to ``add_sink()``; plans show it as one node, like a SinkFunction
    """

    def __init__(self, sink: Sink, *, as_function: bool = False) -> None:
        self.sink = sink
        self.as_function = as_function
        self.stateful = sink.stateful
        self._writer: SinkWriter | None = None

    def user_functions(self) -> list[Any]:
        """The sink."""
        return [self.sink]

    def open(self) -> None:
        """Create the writer. It lives as long as the task."""
        context = self.context
        init = WriterInitContext(
            subtask_id=context.subtask,
            parallelism=context.parallelism,
            checkpoint_id=context.job.checkpoint_id,
            job_id=context.job.job_id,
            sink_id=context.operator_id,
            attempt_number=context.job.attempt,
            epoch=context.job.epoch,
            processing_time=context.processing_time(),
            metric_group=context.metrics,
            runtime_context=context.runtime_context,
        )
        self._checkpoint_id = context.job.checkpoint_id
        sink = sink_in_steps(self.sink) if context.job.stepped else self.sink
        try:
            if self.stateful and context.operator_state.restored:
                state = list(context.operator_state.get_list_state(_WRITER_STATE).get())
                self._writer = sink.restore_writer(init, state)
            else:
                self._writer = sink.create_writer(init)
        except Exception as error:
            raise user_error(context, error, "create_writer") from None

    def _current_writer(self) -> SinkWriter:
        """Return the writer, after announcing the current batch to it."""
        writer = self._writer
        assert writer is not None
        writer.current_processing_time = self.context.processing_time()
        checkpoint_id = self.context.job.checkpoint_id
        if checkpoint_id != self._checkpoint_id:
            self._checkpoint_id = checkpoint_id
            writer.begin(checkpoint_id)
        return writer

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Write a batch."""
        try:
            self._current_writer().write_batch(values, timestamps)
        except Exception as error:
            raise user_error(self.context, error, "write") from None

    def process_watermark(self, watermark: int) -> None:
        """Advance the watermark that writers can read."""
        self.current_watermark = watermark
        assert self._writer is not None
        self._writer.current_watermark = watermark

    def restart(self) -> None:
        """Reset the clock: the next split has its own."""
        if self._writer is not None:
            self._writer.current_watermark = MIN_WATERMARK

    def end_batch(self) -> None:
        """Flush: all written records must be sent before the commit."""
        self._flush(end_of_input=False)

    def end_input(self) -> None:
        """Flush for the last time."""
        self._flush(end_of_input=True)

    def _flush(self, *, end_of_input: bool) -> None:
        try:
            self._current_writer().flush(end_of_input)
        except Exception as error:
            raise user_error(self.context, error, "flush") from None

    def next_wakeup(self) -> int | None:
        """Return when the writer needs a flush."""
        assert self._writer is not None
        return self._writer.next_wakeup()

    def prepare_commit(self) -> list[Any]:
        """Return the committables of this batch."""
        assert self._writer is not None
        try:
            return list(self._writer.prepare_commit())
        except Exception as error:
            raise user_error(self.context, error, "prepare_commit") from None

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Store the writer's state with the batch."""
        if not self.stateful:
            return
        assert self._writer is not None
        try:
            state = self._writer.snapshot_state(checkpoint_id)
        except Exception as error:
            raise user_error(self.context, error, "snapshot_state") from None
        self.context.operator_state.get_list_state(_WRITER_STATE).update(state)

    def close(self) -> None:
        """Close the writer."""
        if self._writer is not None:
            try:
                self._writer.close()
            except Exception as error:
                raise user_error(self.context, error, "close") from None
