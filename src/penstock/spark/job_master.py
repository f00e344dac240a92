"""The job master: runs a job at one parallelism, attempt after attempt, and handles failures.

It imports the parts that it connects: the plan, the coordinators, restarts, and their implementation on Spark.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from penstock.common.errors import CheckpointError, InvalidProgramError, PenstockError, SavepointError
from penstock.common.job_status import JobStatus
from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.checkpoint.checkpoint_coordinator import CheckpointCoordinator
from penstock.runtime.checkpoint.checkpoint_storage import COMMITTABLES
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.savepoint.savepoint_queue import SavepointTicket
from penstock.runtime.source.alignment import WatermarkAligner
from penstock.runtime.source.batch_sizer import BatchSizer, StepSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.checkpoint_storage import SparkCheckpointStorage
from penstock.spark.dependencies import working_directory
from penstock.spark.restarts import Restarts
from penstock.spark.storage_failures import explain_storage
from penstock.spark.worker_pools import forget_dead_pools

if TYPE_CHECKING:
    from penstock.spark.source_server import SourceServer

__all__ = ["JobMaster", "check_one_machine"]

_CONCURRENT_UPDATE = "CONCURRENT_STREAM_LOG_UPDATE"


class JobMaster:
    """One job on one Spark session, at one parallelism.

    :param checkpoint: the directory of its checkpoints; None means a temporary directory
    :param same_program: whether the state certainly comes from this same program
    :param on_running: called once, when the job runs
    :param on_first_checkpoint: called once, when a checkpoint of the job is complete in its directory
    """

    stepped = False
    """Whether there are several steps per checkpoint."""

    def __init__(
        self,
        graph: JobGraph,
        spark: SparkSession,
        life: JobLife,
        checkpoint: CheckpointDirectory | None = None,
        *,
        progress: JobProgress | None = None,
        fence: Fence | None = None,
        same_program: bool = False,
        on_running: Callable[[], None] | None = None,
        on_first_checkpoint: Callable[[], None] | None = None,
    ) -> None:
        self.graph = graph
        self.life = life
        self.progress = progress or JobProgress(graph)
        self.checkpoints = CheckpointCoordinator(
            graph.vertices,
            life,
            self.progress,
            fence=fence,
            on_first_checkpoint=on_first_checkpoint,
            stepped=self.stepped,
        )
        self._spark = spark
        self._checkpoint = checkpoint
        self._same_program = same_program
        self._on_running = on_running
        self._damage_seen_at: int | None = None
        self._outrun_at: int | None = None

    @property
    def stopped_with(self) -> SavepointTicket | None:
        """The savepoint with which the job has stopped."""
        return self.checkpoints.stopped_with

    def cancel(self) -> None:
        """Stop after the running batch, or earlier if it takes long: the job was cancelled."""
        self.checkpoints.stop()

    def run(self) -> JobStatus:
        """Run to the end, with restarts as the restart strategy allows. Return the final status."""
        with contextlib.ExitStack() as stack:
            try:
                self._run(self._checkpoint or self._temporary_checkpoint(stack))
            except BaseException:
                self.life.transition_to(JobStatus.FAILING)
                self.checkpoints.close(failed=True)
                raise
            self.checkpoints.close()
        return self.checkpoints.outcome()

    def _temporary_checkpoint(self, stack: contextlib.ExitStack) -> CheckpointDirectory:
        check_one_machine(self._spark)
        path = tempfile.mkdtemp(prefix="penstock-checkpoint-")
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        return CheckpointDirectory(self._spark, path)

    def _run(self, checkpoint: CheckpointDirectory) -> None:
        restarts = Restarts(self.graph.settings.restart_strategy)
        storage = self.claim(checkpoint)
        if storage.directory(COMMITTABLES) is None:
            self.checkpoints.committers.check_durable(storage.location)
        self.checkpoints.start(storage.job_id, storage)
        self.life.transition_to(JobStatus.CREATED)
        while True:
            try:
                storage.check()
                self._place_frames(restarts.attempt, storage)
                if not self.life.cancelled.is_set():
                    self._run_attempt(restarts.attempt, storage)
            except PenstockError as failure:
                self._raise_if_fenced()
                if self.life.cancelled.is_set():
                    raise
                if self._was_overtaken(failure):
                    continue
                error = explain_storage(failure, checkpoint.local_path, self._spark)
                damaged = self._is_damaged(error)
                pause = None if damaged else restarts.pause_after(error, self.progress.checkpoint_id)
                if pause is None:
                    raise error from None
                self.life.transition_to(JobStatus.RESTARTING)
                self.progress.restarted(error)
                if self.life.cancelled.wait(pause):
                    return
            else:
                return

    def claim(self, checkpoint: CheckpointDirectory) -> SparkCheckpointStorage:
        """Claim a checkpoint directory for the job."""
        return SparkCheckpointStorage.claim(
            checkpoint, self.graph, self.life.job_id, epoch=self.checkpoints.fence.epoch
        )

    def _raise_if_fenced(self) -> None:
        """Raise the actual reason of an error: another driver's changes to the files can cause any error."""
        with contextlib.suppress(CheckpointError):
            self.checkpoints.fence.check()

    def _was_overtaken(self, error: PenstockError) -> bool:
        """Whether the previous driver, paused just before a step of Spark, has completed this step after all.

        The batch is then as that driver planned or completed it, and this driver continues from there.
        """
        if _CONCURRENT_UPDATE not in str(error) or self._outrun_at == self.progress.checkpoint_id:
            return False
        self._outrun_at = self.progress.checkpoint_id
        self.checkpoints.adopt_checkpoint_of_previous_driver()
        return True

    def _is_damaged(self, error: PenstockError) -> bool:
        """Whether the job cannot continue from its checkpoint, so that it would fail again.

        A reader that was ended with its process may look like a damaged file, so it gets a second chance.
        """
        seen, self._damage_seen_at = self._damage_seen_at, None
        if not isinstance(error, (CheckpointError, SavepointError)):
            return False
        self._damage_seen_at = self.progress.checkpoint_id
        return seen == self._damage_seen_at

    # -- one attempt --------------------------------------------------------------------------------------------

    def _run_attempt(self, attempt: int, storage: SparkCheckpointStorage, *, loading_only: bool = False) -> None:
        """Run the query. With `loading_only`, run only its first batch, without DataFrames, to load state."""
        # Not available on every Spark that can run the continuous mode.
        from penstock.spark.compiler import compile_streaming
        from penstock.spark.job_query import JobQuery

        settings, frames = self.graph.settings, {} if loading_only else self.graph.frames

        def compiled(server: SourceServer) -> DataFrame:
            forget_dead_pools(self._spark)
            unions = self.checkpoints.open(self._new_sources(storage), loading_only=loading_only)
            spec = job_spec(
                self.graph,
                storage.job_id,
                attempt,
                batch=False,
                restore=storage.restore,
                unions=unions,
                skip_key_check=settings.ignore_unclaimed_state or self._same_program,
                epoch=self.checkpoints.fence.epoch,
            )
            with working_directory(self._spark.sparkContext, settings):
                return compile_streaming(self._spark, spec, server, frames, storage.location, storage.base)

        name = f"{settings.job_name} {self.life.job_id[:8]}-{attempt}"
        query = JobQuery(self._spark, self.checkpoints, storage)
        query.run(compiled, name, lambda: self._attempt_started(loading_only=loading_only))

    def _new_sources(self, storage: SparkCheckpointStorage) -> SourceCoordinator:
        fixed = self.graph.settings.configuration.get("penstock.batch.max-records")
        sizer = StepSizer if self.stepped else BatchSizer
        return SourceCoordinator(
            self.graph.source_vertices,
            external=self.graph.external_sources,
            sizer=sizer(int(fixed) if fixed else None),
            initial=None if storage.restore is None else storage.restore.initial_offset(),
            aligner=WatermarkAligner(self.graph.source_vertices),
            stepped=self.stepped,
        )

    def _attempt_started(self, *, loading_only: bool) -> None:
        if self.life.cancelled.is_set():
            self.checkpoints.stop()
        if self.life.transition_to(JobStatus.RUNNING) and not loading_only and self._on_running is not None:
            notify, self._on_running = self._on_running, None
            notify()

    def _place_frames(self, attempt: int, storage: SparkCheckpointStorage) -> None:
        """Continue DataFrames at the positions of a savepoint: see `FramePositions`."""
        checkpoint, positions = storage.checkpoint, storage.positions
        location = checkpoint.started_from
        if not self.graph.frames or location is None:
            return
        from penstock.spark.compiler import snapshot

        manifest = read_manifest(location)
        read = positions.is_read(manifest)
        for vertex in self.graph.source_vertices:
            if vertex.operators[0].operator_id in read:
                nothing = self.graph.frames[vertex.id].limit(0)
                snapshot(self._spark, nothing, vertex.operators[0].operator_id, checkpoint.location)
        if positions.needs_placing(manifest):
            if not checkpoint.committed:
                self._run_attempt(attempt, storage, loading_only=True)
            if not checkpoint.committed:
                return  # cancelled before it began
            positions.place(manifest, location)
        checkpoint.frames_placed()


def check_one_machine(spark: SparkSession) -> None:
    """Reject a temporary checkpoint with remote executors: each machine would write to its own disk."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return
    java_context: Any = context._jsc
    here = {"localhost", "127.0.0.1", str(context.getConf().get("spark.driver.host"))}
    elsewhere = {str(info.host()) for info in java_context.sc().statusTracker().getExecutorInfos()} - here
    if elsewhere:
        raise InvalidProgramError(
            f"the job has no checkpoint directory, and executors on other machines ({', '.join(sorted(elsewhere))}): "
            "name a directory that all of them share (execution.checkpointing.dir)"
        )
