"""A cluster in this process: the same tasks, stages and state pages as on Spark, with a loop that moves frames.

Between any two batches (of a single record, if you like), the whole job can be encoded as bytes and continued from
them.

It imports the parts that it connects: plan, coordinators, stages and storage.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.common.errors import UnsupportedFeatureError
from penstock.common.job_client import JobClient
from penstock.common.job_id import JobID
from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph, job_spec, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.checkpoint.checkpoint_coordinator import CheckpointCoordinator
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.checkpoint.sink_committer import SinkCommitters
from penstock.runtime.job.job_client import ThreadJobClient
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.restore import RestorePlan, plan_restore
from penstock.runtime.savepoint.savepoint_queue import SavepointTicket
from penstock.runtime.source.alignment import WatermarkAligner
from penstock.runtime.source.batch_sizer import BatchSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.task.job_blob import pack_job
from penstock.runtime.task.queries import QueryBoard
from penstock.testing.mini_engine import ChannelState, MiniEngine
from penstock.testing.mini_running_job import MiniBatchJob, MiniRunningJob
from penstock.testing.python_files import add_python_files, add_requirements, unpack_archives

_RECEIVING_SECONDS = 0.005
_ENDLESS_BATCH = 10_000  # records per batch of an unbounded source
_ALL = 1 << 60


class ManualClock:
    """Processing time that advances only on request.

    >>> clock = ManualClock(100)
    >>> clock.advance(50)
    >>> clock()
    150
    """

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        """Advance the time."""
        self.now += milliseconds


@dataclass(slots=True)
class _JobSnapshot:
    """Everything that is needed to continue a job."""

    offset: Offset
    channels: dict[tuple[int, int], tuple[dict[str, bytes], bytes]]  # pages and snapshot
    splits: dict[str, int]  # the number of tasks into which sources were split, by operator id
    job_id: str
    unions: dict[int, bytes]  # by checkpoint id

    def encode(self) -> bytes:
        return pickle.dumps((self.offset.to_json(), self.channels, self.splits, self.job_id, self.unions))

    @staticmethod
    def decode(data: bytes) -> _JobSnapshot:
        offset, channels, splits, job_id, unions = pickle.loads(data)
        return _JobSnapshot(Offset.from_json(offset), channels, splits, job_id, dict(unions))


class MiniClusterJob:
    """A running job, driven batch by batch.

    :param max_records: records per source and batch; None means all available records
    :param keeps_running: wait for more records from sources that never end, until the job is cancelled
    :param cold: drop all live tasks after every batch, so that everything is read from the pages
    :param directory: where receivers and sinks store what must survive a crash of the driver; None means in memory
    :param fence: the lease on that directory, if another driver may take it over
    :param working_directory: where functions run, if not in the directory of this process
    """

    stepped = False
    """Whether there are several steps per checkpoint."""

    def __init__(
        self,
        graph: JobGraph,
        clock: Callable[[], int],
        *,
        max_records: int | None = None,
        cold: bool = False,
        keeps_running: bool = False,
        snapshot: bytes | None = None,
        job_id: str | None = None,
        savepoint: str | None = None,
        allow_non_restored_state: bool = False,
        directory: str | None = None,
        life: JobLife | None = None,
        progress: JobProgress | None = None,
        fence: Fence | None = None,
        working_directory: str | None = None,
    ) -> None:
        before = None if snapshot is None else _JobSnapshot.decode(snapshot)
        fence = fence or Fence()
        restore: RestorePlan | None = None
        if before is not None:
            for vertex in graph.source_vertices:
                vertex.split_parallelism = before.splits.get(vertex.operators[0].operator_id)
        elif savepoint is not None:
            restore = plan_restore(savepoint, graph.vertices, graph.edges, ignore_unclaimed=allow_non_restored_state)
        resumed = None if before is None else before.offset
        if self.stepped:
            resumed = self._last_complete(directory, fence, graph)
        if resumed is not None:
            restore = None
        self.graph = graph
        self.keeps_running = keeps_running
        self.job_id = job_id or (str(JobID()) if before is None else before.job_id)
        self.life = life or JobLife(self.job_id, graph.name)
        self.progress = progress or JobProgress(graph)
        self.checkpoints = CheckpointCoordinator(
            graph.vertices, self.life, self.progress, fence=fence, stepped=self.stepped
        )
        storage = MemoryCheckpointStorage(
            directory,
            last_checkpoint=0 if resumed is None else resumed.checkpoint_id,
            unions=None if before is None else before.unions,
            keeps_received=not graph.runs_as_batch,
            epoch=fence.epoch,
        )
        self.checkpoints.start(self.job_id, storage)
        self._unions = storage.union_files.files
        unions = self.checkpoints.open(self._new_sources(clock, max_records, restore))
        spec = job_spec(
            graph,
            self.job_id,
            0,
            batch=graph.runs_as_batch,
            restore=restore,
            unions=unions,
            skip_key_check=allow_non_restored_state,
            epoch=fence.epoch,
            stepped=self.stepped,
        )
        offset = resumed or self.coordinator.initial_offset
        if self.stepped:
            if working_directory is not None:
                raise UnsupportedFeatureError("add_python_archive() needs a job with micro-batches on the mini cluster")
            self._start_tasks(pack_job(spec), offset, storage)
            return
        self.engine = MiniEngine(
            pack_job(spec),
            offset,
            storage,
            {} if before is None else {key: ChannelState(*state) for key, state in before.channels.items()},
            cold=cold or graph.runs_as_batch,
            working_directory=working_directory,
        )

    def _last_complete(self, directory: str | None, fence: Fence, graph: JobGraph) -> Offset | None:
        """For an engine with steps: return the offset of the last complete checkpoint, if any."""
        raise NotImplementedError

    def _start_tasks(self, job: bytes, offset: Offset, storage: MemoryCheckpointStorage) -> None:
        """Start the tasks of an engine with steps."""
        raise NotImplementedError

    def _new_sources(
        self, clock: Callable[[], int], max_records: int | None, restore: RestorePlan | None
    ) -> SourceCoordinator:
        vertices, batch = self.graph.source_vertices, self.graph.runs_as_batch
        if max_records is None and not all(vertex.operators[0].source.may_end for vertex in vertices):
            max_records = _ENDLESS_BATCH
        # The coordinator divides the limit by the number of sources.
        limit = _ALL if batch or max_records is None else max_records * len(vertices)
        return SourceCoordinator(
            vertices,
            clock=clock,
            sizer=BatchSizer(limit),
            initial=None if restore is None else restore.initial_offset(),
            aligner=None if batch else WatermarkAligner(vertices),
            stepped=self.stepped,
        )

    @property
    def coordinator(self) -> SourceCoordinator:
        """The job's sources."""
        return self.checkpoints.sources

    @property
    def committers(self) -> SinkCommitters:
        """The job's sinks."""
        return self.checkpoints.committers

    @property
    def queries(self) -> QueryBoard:
        """The state queries of the job."""
        return self.life.queries

    @property
    def stopped_with(self) -> SavepointTicket | None:
        """The savepoint with which the job has stopped."""
        return self.checkpoints.stopped_with

    @property
    def offset(self) -> Offset:
        """The current offset of the job."""
        return self.engine.offset

    @property
    def finished(self) -> bool:
        """Whether the last batch of a bounded job has run."""
        return self.offset.is_last

    @property
    def over(self) -> bool:
        """Whether no further batch will run: the job has finished, was stopped with a savepoint, or was cancelled."""
        return self.finished or self.stopped_with is not None or self.life.cancelled.is_set()

    def run_batch(self) -> bool:
        """Run one batch if there is something to do, and return whether there was."""
        if self.graph.runs_as_batch and not self.finished:
            self.checkpoints.run_to_end(self.engine)
            return True
        return self.checkpoints.run_batch(self.engine, self.offset)

    def run(self) -> None:
        """Run until there is nothing to do, or the job has ended."""
        while not self.over and self.run_batch():
            pass

    def run_to_end(self) -> None:
        """Run until the job has finished. Wait for sources that are still receiving and can end."""
        self.run()
        while not self.over and (self.keeps_running or self.coordinator.may_end):
            self.coordinator.wait_for_change(_RECEIVING_SECONDS)
            self.run()

    def drain(self) -> None:
        """End event time and the job."""
        self.coordinator.drain()
        self.run()

    def savepoint(self, directory: str) -> str:
        """Run one more batch and write all state at its end. Return the path of the savepoint."""
        return self._savepoint(directory, drain=False)

    def _savepoint(self, directory: str, *, drain: bool) -> str:
        ticket = self.life.savepoints.submit(directory, drain=drain)
        if not ticket.future.done() and not self.run_batch():
            self.life.savepoints.end("the job has ended: its state can no longer be written")
        return ticket.future.result()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Take a savepoint and close the job. `drain` first ends event time."""
        path = self._savepoint(directory, drain=drain)
        if not self.finished:
            self.close()
        return path

    def snapshot(self) -> bytes:
        """Encode all state of the job: offsets, pages, clocks."""
        return _JobSnapshot(
            self.offset,
            {key: (state.store.blobs, state.snapshot) for key, state in self.engine.channels.items()},
            {v.operators[0].operator_id: v.source_parallelism for v in self.graph.source_vertices},
            self.job_id,
            self._unions,
        ).encode()

    def close(self) -> None:
        """Close user functions, sources and sinks, even if one of them fails."""
        self.queries.checkpoint_complete(self.offset.checkpoint_id)
        with contextlib.ExitStack() as stack:
            stack.callback(self.checkpoints.close)
            stack.callback(self.checkpoints.close_attempt)
            stack.callback(self.engine.close)


class MiniCluster:
    """An executor for `StreamExecutionEnvironment(executor=MiniCluster())`.

    `execute()` runs a bounded job to its end. For more control, build the job with the environment and call
    :meth:`start` to drive it batch by batch. A job whose sources never end stops when they have no more records, which
    suits tests. With `keeps_running`, it waits for more records until it is cancelled.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] | None = None,
        max_records: int | None = None,
        cold: bool = False,
        keeps_running: bool = False,
    ) -> None:
        self.clock = clock or (lambda: int(time.time() * 1000))
        self._max_records = max_records
        self._cold = cold
        self._keeps_running = keeps_running

    def start(
        self,
        sinks: list[Transformation],
        settings: JobSettings,
        *,
        snapshot: bytes | None = None,
        directory: str | None = None,
        job_id: str | None = None,
        savepoint: str | None = None,
        allow_non_restored_state: bool = False,
        life: JobLife | None = None,
        progress: JobProgress | None = None,
        fence: Fence | None = None,
    ) -> MiniClusterJob:
        """Start a job without running it. `snapshot` continues an earlier job, `savepoint` a possibly changed one.

        `directory` is where receivers and sinks store what must survive a crash of the driver, and `fence` is the lease
        on it. `job_id` is the id of a job that failed before its first snapshot.
        """
        add_python_files(settings.python_files)
        add_requirements(settings.python_requirements)
        graph = translate(sinks, settings)
        return self._job_class(graph)(
            graph,
            self.clock,
            max_records=self._max_records,
            cold=self._cold,
            keeps_running=self._keeps_running,
            snapshot=snapshot,
            job_id=job_id,
            directory=directory,
            savepoint=savepoint or settings.savepoint_path,
            allow_non_restored_state=allow_non_restored_state or settings.ignore_unclaimed_state,
            life=life,
            progress=progress,
            fence=fence,
            working_directory=unpack_archives(settings.python_archives),
        )

    def _job_class(self, graph: JobGraph) -> type[MiniClusterJob]:
        return MiniClusterJob

    def submit(self, sinks: list[Transformation], settings: JobSettings) -> JobClient:
        """Run a job to its end, in its own thread."""
        life = JobLife(str(JobID()), settings.job_name, compress_savepoints=settings.snapshot_compression)
        first = self.start(sinks, settings, job_id=life.job_id, life=life)
        if first.graph.runs_as_batch:
            return ThreadJobClient(JobID(life.job_id), MiniBatchJob(first))

        def plan(parallelism: int) -> JobGraph:
            return translate(sinks, replace(settings, parallelism=parallelism))

        def start(parallelism: int, savepoint: str, progress: JobProgress) -> MiniClusterJob:
            changed = replace(settings, parallelism=parallelism, ignore_unclaimed_state=False)
            return self.start(sinks, changed, job_id=life.job_id, savepoint=savepoint, life=life, progress=progress)

        return ThreadJobClient(JobID(life.job_id), MiniRunningJob(first, plan, start, settings.savepoint_dir))
