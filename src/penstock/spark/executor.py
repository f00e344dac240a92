"""Executes jobs on Spark: on a local embedded one, unless the user passes a session.

It imports everything that is checked and shipped before a job starts.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.common.job_client import JobClient
from penstock.common.job_id import JobID
from penstock.common.spark_execution_mode import SparkExecutionMode
from penstock.graph.job_graph import translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.job.job_client import ThreadJobClient
from penstock.spark.checkpoint_lease import refuse_if_in_use
from penstock.spark.continuous.slots import (
    check_can_run_continuously,
    slots_needed,
    slots_of,
    with_slots,
    without_optimising_compiler,
)
from penstock.spark.dependencies import ship_dependencies
from penstock.spark.features import SparkMode, check_spark_runs
from penstock.spark.package import ship_package
from penstock.spark.session import build_session, running_session, session_for, stop_session
from penstock.spark.start_notice import start_notice
from penstock.spark.streaming_job import StreamingJob

_fixed_ids: set[str] = set()


def embedded_session(settings: JobSettings) -> SparkSession:
    """Return the local Spark that all jobs of this process share. Start it on first use, and again if it was killed."""
    running = running_session()
    if running is not None:
        return running
    master = settings.configuration.get("spark.master", "local[*]")
    conf = {key: value for key, value in settings.configuration.items() if key.startswith("spark.")}
    if settings.python_executable is not None:
        conf["spark.pyspark.python"] = settings.python_executable
    with start_notice(master):
        return build_session(master=master, app_name=settings.job_name, conf=conf)


def stop_embedded_session() -> None:
    """Stop the local Spark, if there is one, and leave no process behind."""
    running = running_session()
    if running is not None:
        stop_session(running)


class SparkExecutor:
    """Submits jobs to a Spark session."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    @staticmethod
    def _next_id(settings: JobSettings) -> JobID:
        """Return the configured id for the first job of this process, and new ids for later jobs."""
        keys = ("$internal.pipeline.job-id", "pipeline.jobid")
        fixed = next((settings.configuration[key] for key in keys if key in settings.configuration), None)
        if fixed is None or fixed in _fixed_ids:
            return JobID()
        _fixed_ids.add(fixed)
        return JobID(fixed)

    def submit(self, sinks: list[Transformation], settings: JobSettings) -> JobClient:
        """Start a job and return its client."""
        graph = translate(sinks, settings)
        continuous = not graph.runs_as_batch and settings.execution_mode is SparkExecutionMode.CONTINUOUS
        streaming = SparkMode.CONTINUOUS if continuous else SparkMode.MICRO_BATCH
        check_spark_runs(SparkMode.BATCH if graph.runs_as_batch else streaming, graph.name)
        if not graph.runs_as_batch:
            refuse_if_in_use(settings)
        if continuous:
            check_can_run_continuously(graph)
            settings = without_optimising_compiler(with_slots(settings, slots_needed(graph)))
        session = self._spark or embedded_session(settings)
        if continuous:
            check_can_run_continuously(graph, slots_of(session))
        ship_package(session.sparkContext)
        ship_dependencies(session.sparkContext, settings)
        job_id = self._next_id(settings)
        if graph.runs_as_batch:
            # Not available on every Spark that can run the continuous mode.
            from penstock.spark.batch_job import BatchJob

            spark = session_for(session, shuffle_partitions=graph.channels)
            return ThreadJobClient(job_id, BatchJob(graph, spark, str(job_id)))
        return ThreadJobClient(job_id, StreamingJob(sinks, settings, session, str(job_id)))
