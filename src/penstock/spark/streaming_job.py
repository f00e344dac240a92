"""A streaming job on Spark, through all its rescalings.

It imports the parts that it connects: the plan, savepoints, and the masters of both modes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from penstock.common.job_status import JobStatus
from penstock.common.spark_execution_mode import SparkExecutionMode
from penstock.graph.job_graph import JobGraph, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.job.executor_facts import ExecutorFacts
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.job.running_job import RunningJob, carried_progress, dispose_of_rescaling
from penstock.runtime.savepoint.restore import check_key_groups
from penstock.spark.checkpoint_lease import acquire_lease
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.continuous.master import ContinuousMaster
from penstock.spark.executors import running_executors
from penstock.spark.frame_positions import check_stateless
from penstock.spark.job_master import JobMaster
from penstock.spark.query_server import QueryServer
from penstock.spark.session import session_for

DEFAULT_QUERY_PORT = "9069"

_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_STATE_STORE_KEYS = {
    "changelog": _ROCKSDB + "changelogCheckpointing.enabled",
    "block_size_kb": _ROCKSDB + "blockSizeKB",
    "block_cache_mb": _ROCKSDB + "blockCacheSizeMB",
    "write_buffer_mb": _ROCKSDB + "writeBufferSizeMB",
    "write_buffers": _ROCKSDB + "maxWriteBufferNumber",
    "max_open_files": _ROCKSDB + "maxOpenFiles",
}


class StreamingJob(RunningJob):
    """A streaming job on Spark, with one job master and directory per parallelism."""

    def __init__(self, sinks: list[Transformation], settings: JobSettings, session: SparkSession, job_id: str) -> None:
        life = JobLife(job_id, settings.job_name, compress_savepoints=settings.snapshot_compression)
        super().__init__(life, settings.savepoint_dir)
        self._sinks = sinks
        self._settings = settings
        self._session = session
        self._discard_previous: Callable[[], None] | None = None  # the directory from which the job was rescaled
        self._fence = acquire_lease(session, settings, job_id)
        try:
            self._root = self._root_directory()
            self._query_server = _query_server(settings)
            self._master = self._first_master()
        except BaseException:
            self._fence.release()
            raise
        if self._query_server is not None:
            self._query_server.register(job_id, life.queries)

    def _root_directory(self) -> CheckpointDirectory | None:
        location = self._settings.checkpoint_dir
        return None if location is None else CheckpointDirectory(self._session, location, self._fence)

    def _first_master(self) -> JobMaster:
        """Return the master for the job as the program defines it, or as an earlier run was rescaled."""
        checkpoint, settings = self._root, self._settings
        parallelism: int | None = None
        if checkpoint is not None:
            checkpoint, parallelism = checkpoint.newest()
            if parallelism is not None:
                settings = self._settings = replace(settings, parallelism=parallelism)
                settings = replace(settings, savepoint_path=None)
        if checkpoint is not None and parallelism is not None:
            self._discard_previous = self._tidying(checkpoint, parallelism)
        return self._new_master(translate(self._sinks, settings), checkpoint)

    def _tidying(self, checkpoint: CheckpointDirectory, parallelism: int) -> Callable[[], None]:
        """Return a function that removes the directory from before a rescale, after the job's first checkpoint."""
        assert self._root is not None
        left = self._root.left_behind(checkpoint)
        wanted = self.life.savepoints.names  # of future rescalings: none of them is older than that
        return partial(
            self._root.tidy, checkpoint, parallelism, [name for name in left if name.rpartition("/")[2] not in wanted]
        )

    def _new_master(
        self,
        graph: JobGraph,
        checkpoint: CheckpointDirectory | None,
        *,
        progress: JobProgress | None = None,
        same_program: bool = False,
        on_running: Callable[[], None] | None = None,
    ) -> JobMaster:
        master = ContinuousMaster if graph.settings.execution_mode is SparkExecutionMode.CONTINUOUS else JobMaster
        return master(
            graph,
            session_for(self._session, shuffle_partitions=graph.channels, conf=_conf(graph.settings)),
            self.life,
            checkpoint,
            progress=progress,
            fence=self._fence,
            same_program=same_program,
            on_running=on_running,
            on_first_checkpoint=self._on_first_checkpoint,
        )

    def _on_first_checkpoint(self) -> None:
        discard, self._discard_previous = self._discard_previous, None
        if discard is not None:
            discard()

    def executors(self) -> list[ExecutorFacts]:
        """The executors of its Spark."""
        return running_executors(self._session)

    @property
    def is_restoring(self) -> bool:
        """Whether the job was rescaled, and has not completed a checkpoint since."""
        return self._discard_previous is not None

    @property
    def query_port(self) -> int | None:
        """The port of the queryable state server, or None."""
        return None if self._query_server is None else self._query_server.port

    def _release(self, status: JobStatus) -> None:
        if self._query_server is not None:
            self._query_server.unregister(self.life.job_id)
        if self._root is None:
            self._on_first_checkpoint()  # without a checkpoint directory, the job cannot continue from there later
        disposable = self._root is not None and is_disposable(self._settings.checkpoint_retention, status)
        self._fence.release(remove=self._root.remove if self._root is not None and disposable else None)

    def _check_savepoint(self) -> None:
        check_stateless(self._master.graph)

    # -- rescaling ----------------------------------------------------------------------------------------------

    @property
    def _lasting_directory(self) -> str | None:
        return self._settings.checkpoint_dir or self._settings.savepoint_dir

    def _check_parallelism(self, parallelism: int) -> None:
        graph = translate(self._sinks, replace(self._settings, parallelism=parallelism))
        check_key_groups(self._master.graph.vertices, graph.vertices, graph.edges)

    def _successor(self, parallelism: int, savepoint: str, on_running: Callable[[], None]) -> JobMaster:
        """Create the master that starts from the savepoint with which the old one stopped, in its own directory."""
        self._settings = replace(self._settings, parallelism=parallelism)
        settings = replace(self._settings, savepoint_path=savepoint, ignore_unclaimed_state=False)
        graph = translate(self._sinks, settings)
        progress = carried_progress(self._master.progress)
        if self._root is None:
            self._discard_previous = partial(dispose_of_rescaling, savepoint)
            return self._new_master(graph, None, progress=progress, same_program=True, on_running=on_running)
        name = f"rescaled-{os.urandom(4).hex()}"  # a new name: a crash may have left another one half finished
        checkpoint = self._root.below(name)
        master = self._new_master(graph, checkpoint, progress=progress, same_program=True, on_running=on_running)
        master.claim(checkpoint)
        # From here on, a restarted driver continues there. Before, it continues the old job. Nothing is lost, since the
        # savepoint was that job's last checkpoint.
        current, _ = self._root.newest()
        current.continue_in(name, parallelism)
        self._discard_previous = self._tidying(checkpoint, parallelism)
        return master


def is_disposable(retention: str | None, status: JobStatus) -> bool:
    """Whether checkpoints are deleted with the job (rules DD10 to DD12).

    >>> is_disposable("DELETE_ON_CANCELLATION", JobStatus.CANCELED), is_disposable(None, JobStatus.CANCELED)
    (True, False)
    """
    if retention == "NO_EXTERNALIZED_CHECKPOINTS":
        return True
    return retention == "DELETE_ON_CANCELLATION" and status is JobStatus.CANCELED


def _query_server(settings: JobSettings) -> QueryServer | None:
    if settings.configuration.get("queryable-state.enable", "false").strip().lower() != "true":
        return None
    return QueryServer.on_port(int(settings.configuration.get("queryable-state.proxy.ports", DEFAULT_QUERY_PORT)))


def _conf(settings: JobSettings) -> dict[str, str]:
    """Return Spark's settings from the job's configuration, or derived from it."""
    conf = {
        key: value
        for key, value in settings.configuration.items()
        if key.startswith("spark.sql.") and key != "spark.sql.shuffle.partitions"  # the number of channels
    }
    if settings.retained_checkpoints is not None:
        conf["spark.sql.streaming.minBatchesToRetain"] = str(max(2, settings.retained_checkpoints))
    for name, value in settings.state_store.items():
        conf[_STATE_STORE_KEYS[name]] = str(value).lower()
    return conf
