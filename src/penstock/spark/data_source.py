"""All sources of a job as one Spark data source. The coordinator plans batches, the source stage reads them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from penstock.runtime.task.stage import Row
from penstock.spark import worker
from penstock.spark.batch_planning import Portion
from penstock.spark.failures import TaskFailureError, raise_encoded
from penstock.spark.plan_nodes import ROW_SCHEMA
from penstock.spark.source_server import SourceClient
from penstock.spark.stage_host import run_source
from penstock.spark.worker_tuning import tune_worker

FORMAT = "penstock"
_ARROW_SCHEMA = pa.schema(
    [pa.field("channel", pa.string(), nullable=False), pa.field("frame", pa.binary(), nullable=False)]
)
_BATCH_BYTES = 8 * 1024 * 1024

_Batches = Iterator[pa.RecordBatch]


class PenstockSource(DataSource):
    """Options: address and secret of the coordinator, the job's file, the grouping keys of the channels."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Channel and frame."""
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader for streaming jobs."""
        return SourcesReader(dict(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for batch jobs."""
        return BatchSourcesReader(dict(self.options))


class _Reading:
    """Reads a portion of a batch in a task."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._client: SourceClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None}

    def _call(self, method: str, *arguments: Any) -> Any:
        if self._client is None:
            self._client = SourceClient(self._options["address"], bytes.fromhex(self._options["secret"]))
        return self._client.call(method, *arguments)

    def _read(self, partition: InputPartition, run: Callable[[str, int, int, bytes], Iterable[Row]]) -> _Batches:
        tune_worker()
        job_file = self._options["job"]
        keys = self._options["keys"].split(",")
        portion: Portion = pickle.loads(partition.value)
        try:
            if portion.header is not None and self._options["levels"] != "0":
                header = portion.header
                yield from to_arrow(((channel, header) for channel in range(len(keys))), keys)
            rows = (row for work in portion.assignments for row in run(job_file, *work))
            yield from to_arrow(rows, keys)
        except TaskFailureError:
            raise
        except BaseException as error:
            worker.drop_source_stage(job_file)
            raise_encoded(error)


class SourcesReader(_Reading, DataSourceStreamReader):
    """The reader for streaming. Offsets come from the coordinator."""

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch."""
        offset: dict[str, Any] = self._call("initial")
        return offset

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Return the end of the next batch. The coordinator waits a little for something to do."""
        offset: dict[str, Any] = self._call("latest", start)
        return offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the portions of a batch."""
        return [InputPartition(value) for value in self._call("partitions", start, end)]

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the coordinator knows that a batch is durable when Spark asks for the next one."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run one portion in a task."""
        return self._read(partition, run_source)


class BatchSourcesReader(_Reading, DataSourceReader):
    """The reader for batch jobs: all sources from start to end."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the portions of the only batch."""
        return [InputPartition(value) for value in self._call("everything")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run one portion in a task. The batch may have any size, so nothing is collected."""
        return self._read(partition, _run_here)


def _run_here(job_file: str, vertex: int, subtask: int, work: bytes) -> Iterator[Row]:
    stage = worker.source_stage(job_file)  # first, because it registers the classes of the user's program
    content, header = pickle.loads(work)
    return stage.run([content], header, first=False)


def to_arrow(rows: Iterator[Row], keys: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Convert rows to Arrow batches, limited in bytes and in rows."""
    channels: list[str] = []
    frames: list[bytes] = []
    size = 0
    for channel, frame in rows:
        channels.append(str(channel) if keys is None else keys[channel])
        frames.append(frame)
        size += len(frame)
        if size >= _BATCH_BYTES:
            yield _arrow_batch(channels, frames)
            channels, frames, size = [], [], 0
    if frames:
        yield _arrow_batch(channels, frames)


def _arrow_batch(channels: list[str], frames: list[bytes]) -> pa.RecordBatch:
    arrays = [pa.array(channels, pa.string()), pa.array(frames, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)
