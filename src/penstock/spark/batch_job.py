"""A batch job: the same job graph as one Spark batch job over bounded sources."""

from __future__ import annotations

import time
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.common.errors import PenstockError
from penstock.common.job_status import JobStatus
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.batch_sizer import BatchSizer
from penstock.runtime.coordinator import SourceCoordinator
from penstock.runtime.job_life import JobLife
from penstock.runtime.job_progress import JobProgress
from penstock.runtime.sink_committer import SinkCommitters
from penstock.spark.compiler import compile_batch
from penstock.spark.dependencies import working_directory
from penstock.spark.job_master import decode_all_reports
from penstock.spark.restarts import Restarts
from penstock.spark.session import failure_of
from penstock.spark.source_server import SourceServer
from penstock.spark.storage_failures import explain_storage
from penstock.spark.worker_pools import forget_dead_pools

_ALL = 1 << 60


class BatchJob:
    """One batch job on one Spark session; restarts run it again from the beginning."""

    def __init__(self, graph: JobGraph, spark: SparkSession, job_id: str) -> None:
        self.graph = graph
        self.job_id = job_id
        self.life = JobLife(job_id, graph.name)
        self.failure: Exception | None = None
        """What went wrong while the job was cancelled."""
        self.progress = JobProgress(graph)
        self._spark = spark
        self._cancelled = self.life.cancelled
        self._committers = SinkCommitters(graph.vertices)

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life."""
        return self.life.status

    def run(self) -> None:
        """Run to the end; raises the job's error."""
        try:
            try:
                finished = self._run_attempts(Restarts(self.graph.settings.restart_strategy))
            except BaseException:
                self.life.becomes(JobStatus.FAILING)
                self._committers.close(failed=True)
                raise
            self._committers.close()
        except BaseException:
            self.life.end(JobStatus.FAILED)
            raise
        self.life.end(JobStatus.FINISHED if finished else JobStatus.CANCELED)

    def _run_attempts(self, restarts: Restarts) -> bool:
        """Whether the job has finished; otherwise it was cancelled before."""
        self._committers.start(self.job_id, None)
        self.life.becomes(JobStatus.CREATED)
        while not self._cancelled.is_set():
            try:
                self.life.becomes(JobStatus.RUNNING)
                self._run_attempt(restarts.attempt)
            except PenstockError as failure:
                if self._cancelled.is_set():
                    self.failure = failure
                    break
                error = explain_storage(failure, None, self._spark)
                pause = restarts.pause_after(error, None)
                if pause is None:
                    raise error from None
                self.life.becomes(JobStatus.RESTARTING)
                self.progress.restarted(error)
                self._cancelled.wait(pause)
            else:
                return True
        return False

    def cancel(self) -> None:
        """Stop the running Spark job, also one that is only about to start."""
        if not self.life.cancel():
            return
        java_context: Any = self._spark.sparkContext._jsc
        java_context.sc().cancelJobGroupAndFutureJobs(self.job_id)

    def _run_attempt(self, attempt: int) -> None:
        coordinator = SourceCoordinator(
            self.graph.source_vertices, external=self.graph.external_sources, sizer=BatchSizer(_ALL)
        )
        server = SourceServer(coordinator, self._spark.sparkContext.defaultParallelism)
        try:
            coordinator.start()
            spec = job_spec(self.graph, self.job_id, attempt, batch=True)
            started = time.monotonic()
            try:
                forget_dead_pools(self._spark)
                with working_directory(self._spark.sparkContext, self.graph.settings):
                    frame = compile_batch(self._spark, spec, server, self.graph.frames)
                self._spark.sparkContext.setJobGroup(self.job_id, self.graph.name, interruptOnCancel=True)
                reports = decode_all_reports([bytes(row.frame) for row in frame.collect()])
            except (PySparkException, Py4JError, ConnectionError) as error:
                raise failure_of(self._spark, error) from None
            self._committers.commit(reports, 1)
            self._committers.checkpoint_complete(final=True)
            self.progress.batch(reports, 1, time.monotonic() - started)
        finally:
            server.close()
            coordinator.close()
