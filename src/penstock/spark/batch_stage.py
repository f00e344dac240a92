"""A stage of a batch job: the same tasks with pages in memory, for the only batch."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.runtime.task.stage import Row
from penstock.spark import worker
from penstock.spark.data_source import to_arrow
from penstock.spark.failures import raise_encoded
from penstock.spark.worker_tuning import tune_worker


class BatchStage:
    """The function of mapInArrow: one partition is one channel."""

    def __init__(self, job_file: str, level: int) -> None:
        self._job_file = job_file
        self._level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the channel of this partition."""
        tune_worker()
        try:
            yield from to_arrow(self._run(batches))
        except BaseException as error:
            raise_encoded(error)

    def _run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        frames: list[bytes] = []
        channel: int | None = None
        for batch in batches:
            if batch.num_rows:
                channel = int(batch.column(0)[0].as_py())
                frames += batch.column(1).to_pylist()
        if channel is None:
            return
        live = worker.new_stage(self._job_file, self._level, channel, MemoryPageStore(), StageSnapshot())
        yield from live.stage.run(frames)
