"""The source stage for a user's Spark DataFrame: each partition is a source."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext

from penstock.runtime.exchange.frames import BatchHeader, SplitStatus
from penstock.runtime.source.source_stage import FRAME_SPLIT
from penstock.spark import worker
from penstock.spark.data_source import to_arrow
from penstock.spark.failures import raise_encoded
from penstock.spark.worker_tuning import tune_worker


class FrameStage:
    """The function that mapInArrow runs on a DataFrame."""

    def __init__(self, job_file: str, vertex_id: int, keys: list[str], base: int = 0) -> None:
        self._job_file = job_file
        self._vertex_id = vertex_id
        self._keys = keys
        self._base = base  # checkpoint ids continue from here

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the source chain over one partition."""
        tune_worker()
        try:
            context = TaskContext.get()
            assert context is not None
            batch_id = context.getLocalProperty("streaming.sql.batchId")
            header = BatchHeader(
                checkpoint_id=self._base + int(batch_id or 0) + 1,
                now=int(time.time() * 1000),
                splits={self._vertex_id: {FRAME_SPLIT: SplitStatus(0)}},
                secondary=True,
            )
            stage = worker.source_stage(self._job_file)
            rows = stage.run_frame(self._vertex_id, context.partitionId(), header, batches)
            yield from to_arrow(rows, self._keys)
        except BaseException as error:
            worker.drop_source_stage(self._job_file)
            raise_encoded(error)
