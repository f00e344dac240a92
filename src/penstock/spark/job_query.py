"""One attempt at a streaming job, as one streaming query of Spark.

Spark drives the query: it asks for offsets (`StreamingPlanning`), runs the stages, and delivers the tasks' reports.
Here these calls become steps of the checkpoint coordinator. When the query stops, this module finds the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.common.errors import CheckpointError, JobExecutionError, PenstockError
from penstock.runtime.checkpoint.checkpoint_coordinator import CheckpointCoordinator
from penstock.runtime.task.stage import decode_all_reports
from penstock.spark.batch_planning import StreamingPlanning
from penstock.spark.checkpoint_storage import SparkCheckpointStorage
from penstock.spark.failures import decode_failure
from penstock.spark.report_sink import start_query
from penstock.spark.session import SparkEndedError, failure_of
from penstock.spark.source_server import SourceServer
from penstock.spark.start_failures import WorkerStartError

__all__ = ["JobQuery"]

# How long the running batch of a cancelled job may take. If the job continues later, it repeats the batch.
_CANCEL_SECONDS = 3.0
_WATCH_SECONDS = 0.1


class JobQuery:
    """Runs a query to its end, or until the job is stopped."""

    def __init__(
        self, spark: SparkSession, checkpoints: CheckpointCoordinator, storage: SparkCheckpointStorage
    ) -> None:
        self._spark = spark
        self._checkpoints = checkpoints
        self._storage = storage
        self._planning = StreamingPlanning(checkpoints, spark.sparkContext.defaultParallelism)
        self._commit_failure: PenstockError | None = None
        self._started = False
        self._server = SourceServer(self._planning)

    def run(self, compiled: Callable[[SourceServer], DataFrame], name: str, on_running: Callable[[], None]) -> None:
        """Run the query. If it fails, raise its error.

        :param compiled: prepares the attempt and compiles the query
        :param on_running: called when the query has started
        """
        try:
            self._run(compiled(self._server), name, on_running)
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise self._explained(error) from None
        finally:
            self._server.close()
            self._checkpoints.close_attempt()

    def _run(self, frame: DataFrame, name: str, on_running: Callable[[], None]) -> None:
        writer = (
            frame.writeStream.outputMode("append")
            .option("checkpointLocation", self._storage.location)
            .queryName(name)
            .trigger(processingTime="0 seconds")
        )
        with start_query(self._spark, writer, self._on_batch) as query:
            self._started = True
            on_running()
            self._watch(query)
        self._checkpoints.complete_if_durable()

    def _on_batch(self, frames: list[bytes], batch_id: int) -> None:
        """Handle the reports of a batch. Spark completes the checkpoint when this returns."""
        checkpoint_id = self._storage.checkpoint_id(batch_id)
        if self._checkpoints.stopped_before(checkpoint_id):
            # DataFrames had more data when the job stopped with a savepoint. It belongs to the job that continues.
            self._planning.last_batch_complete.set()
            raise JobExecutionError("the job has stopped with a savepoint")
        try:
            self._checkpoints.commit(checkpoint_id, decode_all_reports(frames))
        except PenstockError as error:
            self._commit_failure = error
            raise

    def _watch(self, query: StreamingQuery) -> None:
        """Wait until the last checkpoint is complete, then stop the query; or wait until the query fails."""
        complete = self._planning.last_batch_complete
        try:
            while not complete.wait(_WATCH_SECONDS) and not self._cancel_timed_out:
                self._checkpoints.fence.raise_if_lost()
                if not query.isActive and not complete.is_set():
                    self._raise_failure(query)
                    return
            query.stop()
        except BaseException:
            with contextlib.suppress(PySparkException, Py4JError, OSError):
                query.stop()
            raise

    @property
    def _cancel_timed_out(self) -> bool:
        return self._checkpoints.life.seconds_since_cancelled > _CANCEL_SECONDS

    def _raise_failure(self, query: StreamingQuery) -> None:
        if self._commit_failure is not None:
            raise self._commit_failure
        if isinstance(self._server.failure, PenstockError):
            raise self._server.failure
        error = query.exception()
        if error is not None:
            raise decode_failure(str(error)) from None
        if not self._checkpoints.life.cancelled.is_set():
            raise JobExecutionError("the Spark query stopped before the job was done")

    def _explained(self, error: Exception) -> Exception:
        failure = failure_of(self._spark, error)
        if isinstance(failure, (SparkEndedError, WorkerStartError)):
            return failure
        if not self._started and self._storage.checkpoint.committed:
            return CheckpointError(
                f"Spark cannot continue from the checkpoint in {self._storage.location}, which may be damaged: "
                f"{failure}"
            )
        return failure
