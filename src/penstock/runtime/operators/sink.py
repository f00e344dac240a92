"""The sink operator: a SinkWriter in the task; what it prepares is committed by the driver with the batch."""

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

    :param as_function: the sink was given to ``add_sink()``: plans show it in one piece, as they show a SinkFunction
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
        """Create the writer; it lives as long as the task."""
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
        """The writer, told about the batch it writes in."""
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
        """Writers may look at it."""
        self.current_watermark = watermark
        assert self._writer is not None
        self._writer.current_watermark = watermark

    def restart(self) -> None:
        """Another split, another clock."""
        if self._writer is not None:
            self._writer.current_watermark = MIN_WATERMARK

    def end_batch(self) -> None:
        """Everything written must be on its way before the commit."""
        self._flush(end_of_input=False)

    def end_input(self) -> None:
        """The last flush."""
        self._flush(end_of_input=True)

    def _flush(self, *, end_of_input: bool) -> None:
        try:
            self._current_writer().flush(end_of_input)
        except Exception as error:
            raise user_error(self.context, error, "flush") from None

    def next_wakeup(self) -> int | None:
        """When the writer wants to be flushed."""
        assert self._writer is not None
        return self._writer.next_wakeup()

    def prepare_commit(self) -> list[Any]:
        """Committables of this batch."""
        assert self._writer is not None
        try:
            return list(self._writer.prepare_commit())
        except Exception as error:
            raise user_error(self.context, error, "prepare_commit") from None

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Keep the writer's state with the batch."""
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
