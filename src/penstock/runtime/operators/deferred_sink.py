"""Sinks that recognize a repeated batch by its checkpoint id, in an engine that runs several steps per checkpoint.

After a failure, such an engine divides the input into other steps, so a repeated checkpoint may contain other records.
The records therefore go to the driver, which keeps them in the commit log. When the checkpoint is complete, the sink's
own writers run on the driver and receive the content of the log. If they receive it twice, it is the same content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext

__all__ = ["sink_in_steps"]


def sink_in_steps(sink: Sink) -> Sink:
    """Return the sink to run in an engine that takes several steps per checkpoint."""
    return _DeferredSink(sink) if sink.needs_equal_batches else sink


class _DeferredSink(Sink):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _CollectingWriter(context)

    def create_committer(self) -> Committer:
        return _DeliveringCommitter(self._sink)


class _CollectingWriter(SinkWriter):
    """Keeps the records of a checkpoint."""

    def __init__(self, context: WriterInitContext) -> None:
        self._place = context.subtask_id, context.parallelism
        self._values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._values += values

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return [(*self._place, self.current_processing_time, values)] if values else []


class _DeliveringCommitter(Committer):
    after_checkpoint = True

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._ids = "", ""
        self._writers: dict[int, SinkWriter] = {}

    def open(self, job_id: str, sink_id: str) -> None:
        self._ids = job_id, sink_id

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        for subtask, parallelism, now, values in committables:
            try:
                writer = self._writer(subtask, parallelism, checkpoint_id)
                writer.current_processing_time = now
                writer.write_batch(values, None)
                writer.flush(end_of_input=False)
            except BaseException:
                self._drop(subtask)  # it may have kept some of the records
                raise

    def _writer(self, subtask: int, parallelism: int, checkpoint_id: int) -> SinkWriter:
        writer = self._writers.get(subtask)
        if writer is not None:
            writer.begin(checkpoint_id)
            return writer
        job_id, sink_id = self._ids
        context = WriterInitContext(
            subtask_id=subtask,
            parallelism=parallelism,
            checkpoint_id=checkpoint_id,
            job_id=job_id,
            sink_id=sink_id,
            epoch=self.fence.epoch,
        )
        writer = self._writers[subtask] = self._sink.create_writer(context)
        return writer

    def _drop(self, subtask: int) -> None:
        writer = self._writers.pop(subtask, None)
        if writer is not None:
            writer.close()

    def close(self) -> None:
        for subtask in list(self._writers):
            self._drop(subtask)
