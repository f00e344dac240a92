"""A batch job: the same job graph as one Spark batch job over bounded sources.

It imports the parts that it connects: plan, coordinators and Spark.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.common.errors import PenstockError
from penstock.common.job_status import JobStatus
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch, CheckpointCoordinator
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.job.executor_facts import ExecutorFacts
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.source.batch_sizer import BatchSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.task.stage import decode_all_reports
from penstock.spark.batch_planning import WholeInput
from penstock.spark.compiler import compile_batch
from penstock.spark.dependencies import working_directory
from penstock.spark.executors import running_executors
from penstock.spark.restarts import Restarts
from penstock.spark.session import failure_of
from penstock.spark.source_server import SourceServer
from penstock.spark.storage_failures import explain_storage
from penstock.spark.worker_pools import forget_dead_pools

_ALL = 1 << 60


class BatchJob:
    """One batch job on one Spark session. A restart runs it again from the start."""

    def __init__(self, graph: JobGraph, spark: SparkSession, job_id: str) -> None:
        self.graph = graph
        self.job_id = job_id
        self.life = JobLife(job_id, graph.name)
        self.failure: Exception | None = None
        """The error of a job that failed after it had been cancelled."""
        self.progress = JobProgress(graph)
        self._spark = spark
        self._cancelled = self.life.cancelled
        self._checkpoints = CheckpointCoordinator(graph.vertices, self.life, self.progress)

    @property
    def status(self) -> JobStatus:
        """The current status."""
        return self.life.status

    def executors(self) -> list[ExecutorFacts]:
        """The executors of its Spark."""
        return running_executors(self._spark)

    def run(self) -> None:
        """Run to the end. Raise the job's error."""
        try:
            try:
                finished = self._run_attempts(Restarts(self.graph.settings.restart_strategy))
            except BaseException:
                self.life.transition_to(JobStatus.FAILING)
                self._checkpoints.close(failed=True)
                raise
            self._checkpoints.close()
        except BaseException as error:
            self.progress.failed(error)
            self.life.end(JobStatus.FAILED)
            raise
        self.life.end(JobStatus.FINISHED if finished else JobStatus.CANCELED)

    def _run_attempts(self, restarts: Restarts) -> bool:
        """Run attempts. Return whether the job has finished; otherwise it was cancelled."""
        self._checkpoints.start(self.job_id, MemoryCheckpointStorage())
        self.life.transition_to(JobStatus.CREATED)
        while not self._cancelled.is_set():
            try:
                self.life.transition_to(JobStatus.RUNNING)
                self._run_attempt(restarts.attempt)
            except PenstockError as failure:
                if self._cancelled.is_set():
                    self.failure = failure
                    break
                error = explain_storage(failure, None, self._spark)
                pause = restarts.pause_after(error, None)
                if pause is None:
                    raise error from None
                self.life.transition_to(JobStatus.RESTARTING)
                self.progress.restarted(error)
                self._cancelled.wait(pause)
            else:
                return True
        return False

    def cancel(self) -> None:
        """Stop the running Spark job, or one that is about to start."""
        if not self.life.cancel():
            return
        java_context: Any = self._spark.sparkContext._jsc
        java_context.sc().cancelJobGroupAndFutureJobs(self.job_id)

    def _run_attempt(self, attempt: int) -> None:
        checkpoints = self._checkpoints
        checkpoints.open(
            SourceCoordinator(self.graph.source_vertices, external=self.graph.external_sources, sizer=BatchSizer(_ALL))
        )
        try:
            checkpoints.run_to_end(_SparkBatchEngine(self.graph, self._spark, self.job_id, attempt))
        finally:
            checkpoints.close_attempt()


class _SparkBatchEngine:
    """Runs the one batch of a batch job as one Spark job."""

    def __init__(self, graph: JobGraph, spark: SparkSession, job_id: str, attempt: int) -> None:
        self._graph = graph
        self._spark = spark
        self._job_id = job_id
        self._attempt = attempt

    def run(self, batch: Batch) -> list[TaskReport]:
        """Run the job and wait for the reports of its tasks."""
        context = self._spark.sparkContext
        server = SourceServer(WholeInput(lambda: batch, context.defaultParallelism))
        spec = job_spec(self._graph, self._job_id, self._attempt, batch=True)
        try:
            forget_dead_pools(self._spark)
            with working_directory(context, self._graph.settings):
                frame = compile_batch(self._spark, spec, server, self._graph.frames)
            context.setJobGroup(self._job_id, self._graph.name, interruptOnCancel=True)
            return decode_all_reports([bytes(row.frame) for row in frame.collect()])
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise failure_of(self._spark, error) from None
        finally:
            server.close()

    def make_durable(self, batch: Batch) -> None:
        """Nothing to store: a failed batch job restarts from the start."""
