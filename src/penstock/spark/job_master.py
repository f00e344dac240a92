"""The job master: runs a job's query, commits its sinks batch by batch, and decides what a failure means."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.common.errors import (
    CheckpointError,
    InvalidProgramError,
    JobExecutionError,
    PenstockError,
    SavepointError,
)
from penstock.common.job_status import JobStatus
from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.alignment import WatermarkAligner
from penstock.runtime.batch_sizer import BatchSizer
from penstock.runtime.coordinator import SourceCoordinator
from penstock.runtime.frames import REPORT_EDGE, TaskReport, decode_frame
from penstock.runtime.job_life import JobLife
from penstock.runtime.job_progress import JobProgress
from penstock.runtime.lease.epoch_directory import adopt_directory
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.savepoint.restore import RestorePlan, plan_restore
from penstock.runtime.savepoint.storage import absolute
from penstock.runtime.savepoint.tickets import SavepointTicket
from penstock.runtime.sink_committer import SinkCommitters
from penstock.runtime.stage import decode_reports
from penstock.runtime.union_states import UnionStates
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.compiler import compile_streaming, snapshot
from penstock.spark.dependencies import working_directory
from penstock.spark.failures import decode_failure
from penstock.spark.frame_positions import FramePositions
from penstock.spark.local_directory import local_directory
from penstock.spark.report_sink import start_query
from penstock.spark.restarts import Restarts
from penstock.spark.session import SparkEndedError, failure_of
from penstock.spark.source_server import SourceServer
from penstock.spark.start_failures import WorkerStartError
from penstock.spark.worker_pools import forget_dead_pools

_CONCURRENT_UPDATE = "CONCURRENT_STREAM_LOG_UPDATE"
# How long the running batch of a cancelled job may take. What it has done is done again if the job goes on.
_CANCEL_SECONDS = 3.0


class JobMaster:
    """One job on one Spark session, at one parallelism."""

    def __init__(
        self,
        graph: JobGraph,
        spark: SparkSession,
        life: JobLife,
        checkpoint: CheckpointDirectory | None = None,
        progress: JobProgress | None = None,
        fence: Fence | None = None,
    ) -> None:
        self.graph = graph
        self.life = life
        self.progress = progress or JobProgress(graph)
        self.savepoints = life.savepoints
        self.savepoints.serve(graph.vertices, self._wake)
        self.stopped_with: SavepointTicket | None = None
        self.on_running: Callable[[], None] | None = None
        self.on_first_commit: Callable[[], None] | None = None
        """Called once, when a batch of this master or of one before in the same directory is durable."""
        self.same_program = False
        """Whether it is surely this program that has written the state."""
        self._checkpoint = checkpoint
        self._spark = spark
        self._parallelism = spark.sparkContext.defaultParallelism
        self._fence = fence or Fence()
        self._committers = SinkCommitters(graph.vertices, fence=self._fence)
        self._cancelled = life.cancelled
        self._server: SourceServer | None = None
        self._coordinator: SourceCoordinator | None = None
        self._commit_failure: PenstockError | None = None
        self._temporary: str | None = None
        self._lasting_id = life.job_id
        self._base = 0
        self._first_batch_only = False
        self._stopped_at = 0
        self._directory: CheckpointDirectory | None = None
        self._unions = UnionStates(graph.vertices)
        self._query_started = False
        self._damage_seen_at: int | None = None
        self._ended = False  # whether the last batch is durable
        self._awaited: int | None = None  # the checkpoint that Spark is completing
        self._outrun_at: int | None = -1

    # -- life cycle ---------------------------------------------------------------------------------------------

    def run(self) -> JobStatus:
        """Run to the end, restarting as the restart strategy says, and say what it was; raises the job's error."""
        restarts = Restarts(self.graph.settings.restart_strategy)
        try:
            checkpoint = self._checkpoint_directory()
            restore = self.prepare(checkpoint)
            self._start_committers(checkpoint.location)
            self._directory = checkpoint
            self._unions = UnionStates(self.graph.vertices, checkpoint.union_files)
            self.life.becomes(JobStatus.CREATED)
            while True:
                try:
                    self._place_frames(restarts.attempt, checkpoint, restore)
                    if not self._cancelled.is_set():
                        self._run_attempt(restarts.attempt, checkpoint, restore)
                    break
                except PenstockError as error:
                    self._raise_if_fenced()
                    if self._cancelled.is_set() or self._is_damaged(error):
                        raise
                    if self._was_outrun(error):
                        continue
                    pause = restarts.pause_after(error, self.progress.checkpoint_id)
                    if pause is None:
                        raise
                    self.life.becomes(JobStatus.RESTARTING)
                    self.progress.restarted(error)
                    if self._cancelled.wait(pause):
                        break
        except BaseException:
            self.life.becomes(JobStatus.FAILING)
            self._let_go(failed=True)
            raise
        self._let_go(failed=False)
        return self._outcome()

    def _raise_if_fenced(self) -> None:
        """What another driver does to the files of this one shows as errors of any kind: say what it is."""
        with contextlib.suppress(CheckpointError):
            self._fence.check()

    def _was_outrun(self, error: PenstockError) -> bool:
        """Whether the driver before this one, paused right before a step of Spark's, has made the step after all.

        The batch is then as that driver has planned or completed it: go on from there.
        """
        if _CONCURRENT_UPDATE not in str(error) or self._outrun_at == self.progress.checkpoint_id:
            return False
        self._outrun_at = self.progress.checkpoint_id
        awaited, self._awaited = self._awaited, None
        if awaited is not None and self._committed_checkpoint() >= awaited:
            self._committers.completed_by_the_driver_before(awaited)
        return True

    def _let_go(self, *, failed: bool) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        self._committers.close(failed=failed)

    def _outcome(self) -> JobStatus:
        """Whether the job was cancelled before its end. One that is cancelled when all is done has finished."""
        ticket = self.stopped_with
        if ticket is not None and not self._ended:
            self.stopped_with = None
            ticket.fail(SavepointError(f"job '{self.graph.name}' was cancelled before its last batch was committed"))
        if not self._ended or (ticket is not None and ticket.cancel):
            return JobStatus.CANCELED
        return JobStatus.FINISHED if ticket is None or ticket.parallelism is None else JobStatus.RESTARTING

    def _is_damaged(self, error: PenstockError) -> bool:
        """Whether what the job continues from is wrong, so that it would only fail again.

        A reader that was ended together with its process may look like a damaged file, so it gets a second chance.
        """
        seen, self._damage_seen_at = self._damage_seen_at, None
        if not isinstance(error, (CheckpointError, SavepointError)):
            return False
        self._damage_seen_at = self.progress.checkpoint_id
        return seen == self._damage_seen_at

    def cancel(self) -> None:
        """The job's life says that it is cancelled: stop after the running batch, or without it if it takes long."""
        if self._server is not None:
            self._server.stop()

    def _start_committers(self, checkpoint: str) -> None:
        directory = self._own_directory(checkpoint, "committables")  # "commits" is Spark's own
        if directory is None:
            self._committers.check_durable(checkpoint)
        self._committers.start(self._lasting_id, directory)

    def _own_directory(self, checkpoint: str, name: str) -> str | None:
        """A directory for this driver's files, beside the checkpoint if that is on this machine or mounted here."""
        parent = local_directory(checkpoint)
        return None if parent is None else str(adopt_directory(parent, name, self._fence.epoch))

    def _checkpoint_directory(self) -> CheckpointDirectory:
        if self._checkpoint is None:
            check_one_machine(self._spark)
            self._temporary = tempfile.mkdtemp(prefix="penstock-checkpoint-")
            return CheckpointDirectory(self._spark, self._temporary)
        return self._checkpoint

    def prepare(self, checkpoint: CheckpointDirectory) -> RestorePlan | None:
        """Make sure that the job can go on from where it is told to."""
        settings = self.graph.settings
        plan: RestorePlan | None = None
        if settings.savepoint_path is not None and not checkpoint.committed:
            plan = plan_restore(
                settings.savepoint_path,
                self.graph.vertices,
                self.graph.edges,
                ignore_unclaimed=settings.ignore_unclaimed_state,
            )
        if plan is not None:
            FramePositions(self.graph, checkpoint).check(plan.manifest, plan.location)
        base = 0 if plan is None else plan.manifest.checkpoint_id
        savepoint = None if settings.savepoint_path is None else absolute(settings.savepoint_path)
        record = checkpoint.claim(self.graph, savepoint, base, self.life.job_id)
        checkpoint.check_logs(self.graph.channels)
        self._base = record.base
        if self.graph.frames:
            positions = FramePositions(self.graph, checkpoint)
            self.savepoints.outside = lambda checkpoint_id, directory: positions.save(
                checkpoint_id - record.base - 1, directory, compress=settings.snapshot_compression
            )
        self._lasting_id = record.job_id
        if plan is None and record.savepoint is not None:  # it started there, but never got through its first batch
            plan = plan_restore(record.savepoint, self.graph.vertices, self.graph.edges, ignore_unclaimed=True)
        return plan

    def _place_frames(self, attempt: int, checkpoint: CheckpointDirectory, restore: RestorePlan | None) -> None:
        """A job that continues from a savepoint reads DataFrames from where they were then: see `FramePositions`."""
        location = checkpoint.started_from
        if not self.graph.frames or location is None:
            return
        manifest = read_manifest(location)
        positions = FramePositions(self.graph, checkpoint)
        read = positions.is_read(manifest)
        for vertex in self.graph.source_vertices:
            if vertex.operators[0].operator_id in read:
                nothing = self.graph.frames[vertex.id].limit(0)
                snapshot(self._spark, nothing, vertex.operators[0].operator_id, checkpoint.location)
        if positions.needs_placing(manifest):
            if not checkpoint.committed:
                self._run_attempt(attempt, checkpoint, restore, first_batch_only=True)
            if not checkpoint.committed:
                return  # cancelled before it began
            positions.place(manifest, location)
        checkpoint.frames_placed()

    def _wake(self) -> None:
        coordinator = self._coordinator
        if coordinator is not None:
            with coordinator.changed:
                coordinator.changed.notify_all()

    # -- one attempt --------------------------------------------------------------------------------------------

    def _run_attempt(
        self,
        attempt: int,
        checkpoint: CheckpointDirectory,
        restore: RestorePlan | None,
        *,
        first_batch_only: bool = False,
    ) -> None:
        """Run the query; or only the first batch of it, without DataFrames, in which tasks load their state."""
        settings = self.graph.settings
        self._first_batch_only = first_batch_only
        location = checkpoint.location
        fixed = settings.configuration.get("penstock.batch.max-records")
        coordinator = SourceCoordinator(
            self.graph.source_vertices,
            external=self.graph.external_sources,
            sizer=BatchSizer(int(fixed) if fixed else None),
            initial=None if restore is None else restore.initial_offset(),
            savepoints=None if first_batch_only else self.savepoints,
            queries=self.life.queries,
            aligner=WatermarkAligner(self.graph.source_vertices),
        )
        last = checkpoint.last_batch if self.graph.frames else None
        coordinator.last_checkpoint = 0 if last is None else self._base + last + 1
        self._coordinator = coordinator
        self._commit_failure = None
        self._query_started = False
        server = self._server = SourceServer(coordinator, self._parallelism, self._fence)
        server.on_committed = self._on_committed
        try:
            self._fence.check()
            forget_dead_pools(self._spark)
            coordinator.start(self._own_directory(location, "received"))
            self._run_query(attempt, location, server, restore)
        except (PySparkException, Py4JError, ConnectionError) as error:
            failure = failure_of(self._spark, error)
            if isinstance(failure, (SparkEndedError, WorkerStartError)):
                raise failure from None
            if not self._query_started and self._directory is not None and self._directory.committed:
                raise CheckpointError(
                    f"Spark cannot go on from the checkpoint in {location}, which may be damaged: {failure}"
                ) from None
            raise failure from None
        finally:
            server.close()
            coordinator.close()

    def _run_query(self, attempt: int, checkpoint: str, server: SourceServer, restore: RestorePlan | None) -> None:
        settings = self.graph.settings
        spec = job_spec(self.graph, self._lasting_id, attempt, batch=False, restore=restore, epoch=self._fence.epoch)
        spec.unions, spec.life = self._unions.begin(self._committed_checkpoint()), self._unions.life
        spec.trusts_keys = settings.ignore_unclaimed_state or self.same_program
        frames = {} if self._first_batch_only else self.graph.frames
        with working_directory(self._spark.sparkContext, settings):
            frame = compile_streaming(self._spark, spec, server, frames, checkpoint, self._base)
        writer = (
            frame.writeStream.outputMode("append")
            .option("checkpointLocation", checkpoint)
            .queryName(f"{settings.job_name} {self.life.job_id[:8]}-{attempt}")
            .trigger(processingTime="0 seconds")
        )
        with start_query(self._spark, writer, self._on_batch) as query:
            self._query_started = True
            if self._cancelled.is_set() or self.stopped_with is not None:
                server.stop()
            if self.life.becomes(JobStatus.RUNNING) and self.on_running is not None and not self._first_batch_only:
                tell, self.on_running = self.on_running, None
                tell()
            self._watch(query, server)
        self._ended = not self._first_batch_only and self._last_is_durable(server)

    def _last_is_durable(self, server: SourceServer) -> bool:
        """Whether the job has come to its end, or to a savepoint that stops it, and Spark has committed that batch."""
        if server.boundary.is_set():
            return server.ended or self.stopped_with is not None
        # It was cancelled, and the query stopped before Spark asked for another batch: perhaps it got that far.
        coordinator = self._coordinator
        last = None if coordinator is None else coordinator.carried_out
        if coordinator is None or last is None or not (last["end"] or self.stopped_with is not None):
            return False
        if self._committed_checkpoint() < max(last["n"], self._stopped_at):
            return False
        self._on_committed(final=True)
        coordinator.commit(last)
        return True

    def _watch(self, query: StreamingQuery, server: SourceServer) -> None:
        """Wait for the last commit, then stop the query; or for its failure."""
        try:
            while not server.boundary.wait(0.1) and not self._cannot_wait:
                self._fence.raise_if_lost()
                if not query.isActive and not server.boundary.is_set():
                    self._raise_failure(query, server)
                    return
            query.stop()
        except BaseException:
            _stop_quietly(query)
            raise

    @property
    def _cannot_wait(self) -> bool:
        return self.life.seconds_since_cancelled > _CANCEL_SECONDS

    def _raise_failure(self, query: StreamingQuery, server: SourceServer) -> None:
        if self._commit_failure is not None:
            raise self._commit_failure
        if isinstance(server.failure, PenstockError):
            raise server.failure
        error = query.exception()
        if error is not None:
            raise decode_failure(str(error)) from None
        if not self._cancelled.is_set():
            raise JobExecutionError("the Spark query stopped before the job was done")

    def _committed_checkpoint(self) -> int:
        assert self._directory is not None
        last = self._directory.last_batch
        return self._base if last is None else self._base + last + 1

    def _on_committed(self, *, final: bool = False) -> None:
        """Spark asks for a batch: all before are durable."""
        self._awaited = None
        self._committers.checkpoint_complete(final=final)
        if self._first_batch_only:  # the savepoint is needed until the positions of DataFrames were taken from it
            return
        if self.on_first_commit is not None and self._directory is not None and self._directory.committed:
            tell, self.on_first_commit = self.on_first_commit, None
            tell()

    # -- batches ------------------------------------------------------------------------------------------------

    def _on_batch(self, frames: list[bytes], batch_id: int) -> None:
        """Spark calls this for every batch, when its tasks are done: the commit."""
        checkpoint_id = self._base + batch_id + 1
        if self.stopped_with is not None and checkpoint_id > self._stopped_at:
            self._refuse_batch()
        reports = decode_all_reports(frames)
        try:
            self._unions.batch(reports, checkpoint_id)
            self._committers.commit(reports, checkpoint_id)
        except PenstockError as error:
            self._commit_failure = error
            raise
        self._after_commit(reports, checkpoint_id)
        self._hand_to_spark(checkpoint_id)

    def _hand_to_spark(self, checkpoint_id: int) -> None:
        """All that is left is Spark's own commit."""
        try:
            self._fence.check()
        except PenstockError as error:
            self._commit_failure = error
            raise
        self._awaited = checkpoint_id

    def _refuse_batch(self) -> None:
        """DataFrames had more when the job stopped with a savepoint: it belongs to whoever continues from there."""
        self._on_committed(final=True)
        if self._server is not None:
            self._server.boundary.set()
        raise JobExecutionError("the job has stopped with a savepoint")

    def _after_commit(self, reports: list[TaskReport], checkpoint_id: int) -> None:
        coordinator = self._coordinator
        assert coordinator is not None
        seconds = coordinator.seconds_since_plan()
        coordinator.batch_done(reports)
        if self.graph.frames:
            coordinator.last_checkpoint = checkpoint_id
        self.progress.batch(reports, checkpoint_id, seconds)
        coordinator.sizer.observe(self.progress.last_source_records, seconds)
        self.life.queries.batch_done(reports, checkpoint_id)
        ticket = self.savepoints.batch_done(reports, checkpoint_id)
        if ticket is not None and ticket.stop:
            self.stopped_with, self._stopped_at = ticket, checkpoint_id
        if self._server is not None and (self.stopped_with is not None or self._first_batch_only):
            self._server.stop()


def check_one_machine(spark: SparkSession) -> None:
    """A temporary checkpoint is on the driver's disk: executors on other machines would each write to their own."""
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


def decode_all_reports(frames: list[bytes]) -> list[TaskReport]:
    """What the tasks of a batch tell the driver."""
    reports: list[TaskReport] = []
    for data in frames:
        if decode_frame(data).edge == REPORT_EDGE:
            reports += decode_reports(data)
    return reports


def _stop_quietly(query: StreamingQuery) -> None:
    with contextlib.suppress(PySparkException, Py4JError, OSError):
        query.stop()
