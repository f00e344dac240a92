"""A cluster in this process: the same tasks, stages and state pages as on Spark, moved by a loop.

Between any two batches (of one record, if you like) the whole job can be written to bytes and continued from them.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.common.job_client import JobClient
from penstock.common.job_id import JobID
from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph, job_spec, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.alignment import WatermarkAligner
from penstock.runtime.batch_sizer import BatchSizer
from penstock.runtime.coordinator import Offset, SourceCoordinator
from penstock.runtime.frames import REPORT_EDGE, TaskReport, decode_frame
from penstock.runtime.job_blob import pack_job, unpack_job
from penstock.runtime.job_client import ThreadJobClient
from penstock.runtime.job_life import JobLife
from penstock.runtime.job_progress import JobProgress
from penstock.runtime.job_spec import JobSpec
from penstock.runtime.lease.epoch_directory import adopt_directory
from penstock.runtime.savepoint.restore import plan_restore
from penstock.runtime.savepoint.tickets import SavepointTicket
from penstock.runtime.sink_committer import SinkCommitters
from penstock.runtime.snapshots import StageSnapshot
from penstock.runtime.source_stage import SourceStage
from penstock.runtime.stage import Row, StageChannel, decode_reports
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.union_states import UnionStates
from penstock.testing.mini_running_job import MiniBatchJob, MiniRunningJob

_RECEIVING_SECONDS = 0.005
_ENDLESS_BATCH = 10_000  # records of a source that has no end: all of them would be no batch


class ManualClock:
    """Processing time that moves when told.

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
        """Move forward."""
        self.now += milliseconds


class _ChannelState:
    """What a channel keeps between batches: pages and the small part of the task states."""

    def __init__(self, blobs: dict[str, bytes] | None = None, snapshot: bytes | None = None) -> None:
        self.store = MemoryPageStore(dict(blobs or {}))
        self.snapshot = snapshot or StageSnapshot().encode()


class MiniClusterJob:
    """A running job, driven by hand.

    :param max_records: records per source and batch; None: as many as there are
    :param cold: forget all live tasks after every batch, so that everything has to come from the pages
    :param directory: what receivers and sinks keep to survive a crash of the driver; None: in memory
    :param fence: the lease on that directory, if another driver may take it over
    """

    def __init__(
        self,
        graph: JobGraph,
        clock: Callable[[], int],
        *,
        max_records: int | None = None,
        cold: bool = False,
        snapshot: bytes | None = None,
        job_id: str | None = None,
        savepoint: str | None = None,
        allow_non_restored_state: bool = False,
        directory: str | None = None,
        life: JobLife | None = None,
        fence: Fence | None = None,
    ) -> None:
        batch = graph.runs_as_batch
        self.job_id = job_id or (str(JobID()) if snapshot is None else pickle.loads(snapshot)[3])
        restore = None
        if snapshot is not None:
            for vertex in graph.source_vertices:
                vertex.split_parallelism = pickle.loads(snapshot)[2].get(vertex.operators[0].operator_id)
        elif savepoint is not None:
            restore = plan_restore(savepoint, graph.vertices, graph.edges, ignore_unclaimed=allow_non_restored_state)
        self.graph = graph
        self.life = life or JobLife(self.job_id, graph.name)
        self.stopped_with: SavepointTicket | None = None
        self.progress = JobProgress(graph)
        self._fence = fence or Fence()
        self.committers = SinkCommitters(graph.vertices, fence=self._fence)
        self._unions = UnionStates(graph.vertices)
        if snapshot is not None:
            self._unions.parts = pickle.loads(snapshot)[4]
        spec = job_spec(
            graph,
            self.job_id,
            0,
            batch=batch,
            restore=restore,
            unions=self._unions.restart(),
            skip_key_check=allow_non_restored_state,
            epoch=self._fence.epoch,
        )
        self._blob = pack_job(spec)
        self._spec = spec
        self._cold = cold or batch
        # The coordinator divides by the number of sources.
        if max_records is None and not all(vertex.operators[0].source.may_end for vertex in graph.source_vertices):
            max_records = _ENDLESS_BATCH
        sizer = BatchSizer(1 << 60 if batch or max_records is None else max_records * len(graph.source_vertices))
        self._savepoints = self.life.savepoints
        self._savepoints.serve(graph.vertices, self._wake)
        self.queries = self.life.queries
        self.coordinator = SourceCoordinator(
            graph.source_vertices,
            clock=clock,
            sizer=sizer,
            initial=None if restore is None else restore.initial_offset(),
            savepoints=self._savepoints,
            queries=self.queries,
            aligner=None if batch else WatermarkAligner(graph.source_vertices),
        )
        self.coordinator.start(None if batch else self._own_directory(directory, "received"))
        self.committers.start(self.job_id, self._own_directory(directory, "committables"))
        self.offset: Offset = self.coordinator.initial_offset()
        self._channels = {
            (level, channel): _ChannelState() for level in range(1, spec.levels + 1) for channel in range(spec.channels)
        }
        if snapshot is not None:
            self._restore(snapshot)
        self._stages: dict[tuple[int, int], StageChannel] = {}
        self._source_stage: SourceStage | None = None

    def _own_directory(self, directory: str | None, name: str) -> str | None:
        return None if directory is None else str(adopt_directory(Path(directory), name, self._fence.epoch))

    @property
    def finished(self) -> bool:
        """Whether the last batch of a bounded job was run."""
        return bool(self.offset["end"])

    @property
    def over(self) -> bool:
        """Whether no further batch is to be run: it has finished, was stopped with a savepoint, or cancelled."""
        return self.finished or self.stopped_with is not None or self.life.cancelled.is_set()

    def _wake(self) -> None:
        with self.coordinator.changed:
            self.coordinator.changed.notify_all()

    def run_batch(self) -> bool:
        """Run one batch if there is something to do; returns whether there was."""
        self.committers.checkpoint_complete(self.offset["n"])  # of a job that is continued
        batch = self.graph.runs_as_batch and not self.finished
        end = self.coordinator.plan_to_end(self.offset) if batch else self.coordinator.plan(self.offset)
        if end is None:
            return False
        self._fence.check()
        header = self.coordinator.header(end)
        rows = list(self._sources().run(self.coordinator.works(self.offset, end), header, first=True))
        for level in range(1, self._spec.levels + 1):
            rows = self._run_level(level, rows)
        reports: list[TaskReport] = []
        for _, frame in rows:
            if decode_frame(frame).edge == REPORT_EDGE:
                reports += decode_reports(frame)
        self._unions.batch(reports, end["n"])
        self.committers.commit(reports, end["n"])
        self._fence.check()
        self.offset = end
        self.coordinator.commit(end)
        self.committers.checkpoint_complete(end["n"], final=self.finished)
        self.coordinator.batch_done(reports)
        self.progress.batch(reports, end["n"], 0.0)
        ticket = self._savepoints.batch_done(reports, end["n"])
        if ticket is not None and ticket.stop:
            self.stopped_with = ticket
        self.queries.batch_done(reports, end["n"])
        return True

    def run(self) -> None:
        """Run until there is nothing to do, or the job is over."""
        while not self.over and self.run_batch():
            pass

    def run_to_end(self) -> None:
        """Run until the job is finished; waits for sources that are still receiving and can come to an end."""
        self.run()
        while not self.over and self.coordinator.may_end:
            with self.coordinator.changed:
                self.coordinator.changed.wait(_RECEIVING_SECONDS)
            self.run()

    def drain(self) -> None:
        """End event time and the job."""
        self.coordinator.drain()
        self.run()

    def savepoint(self, directory: str) -> str:
        """Run one more batch and write everything as it is at its end; returns the path of the savepoint."""
        return self._savepoint(directory, drain=False)

    def _savepoint(self, directory: str, *, drain: bool) -> str:
        ticket = self._savepoints.submit(directory, drain=drain)
        if not ticket.future.done() and not self.run_batch():
            self._savepoints.end("the job has ended: there is no state to write any more")
        return ticket.future.result()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Take a savepoint and close the job; `drain` ends event time first."""
        path = self._savepoint(directory, drain=drain)
        if not self.finished:
            self.close()
        return path

    def snapshot(self) -> bytes:
        """All state of the job: offsets, pages, clocks."""
        channels = {key: (state.store.blobs, state.snapshot) for key, state in self._channels.items()}
        splits = {v.operators[0].operator_id: v.source_parallelism for v in self.graph.source_vertices}
        return pickle.dumps((self.offset, channels, splits, self.job_id, self._unions.parts))

    def _restore(self, snapshot: bytes) -> None:
        self.offset, channels, *_ = pickle.loads(snapshot)
        self._channels = {key: _ChannelState(*state) for key, state in channels.items()}

    def close(self) -> None:
        """Close user functions, sources and sinks, also if one of them fails."""
        self.queries.committed(self.offset["n"])
        with contextlib.ExitStack() as stack:
            stack.callback(self.committers.close)
            stack.callback(self.coordinator.close)
            for stage in self._stages.values():
                stack.callback(stage.close)
            if self._source_stage is not None:
                stack.callback(self._source_stage.close)

    # -- stages -------------------------------------------------------------------------------------------------

    def _new_spec(self) -> JobSpec:
        return unpack_job(self._blob)

    def _sources(self) -> SourceStage:
        if self._source_stage is None or self._cold:
            spec = self._new_spec()
            self._source_stage = SourceStage(spec, spec.environment(MemoryPageStore()))
        return self._source_stage

    def _run_level(self, level: int, rows: list[Row]) -> list[Row]:
        by_channel: dict[int, list[bytes]] = {}
        for channel, frame in rows:
            by_channel.setdefault(channel, []).append(frame)
        out: list[Row] = []
        for channel in range(self._spec.channels):
            state = self._channels[(level, channel)]
            stage = self._stage(level, channel, state)
            out += stage.run(by_channel[channel])
            state.snapshot = stage.snapshot.encode()
        return out

    def _stage(self, level: int, channel: int, state: _ChannelState) -> StageChannel:
        stage = None if self._cold else self._stages.get((level, channel))
        if stage is None:
            spec = self._new_spec()
            snapshot = StageSnapshot.decode(state.snapshot)
            stage = StageChannel(spec, level, channel, spec.environment(state.store), snapshot)
            self._stages[(level, channel)] = stage
        return stage


class MiniCluster:
    """An executor for `StreamExecutionEnvironment(executor=MiniCluster())`.

    `execute()` runs a bounded job to its end. For more control, build the job with the environment and call
    :meth:`start` to drive it batch by batch.
    """

    def __init__(
        self, *, clock: Callable[[], int] | None = None, max_records: int | None = None, cold: bool = False
    ) -> None:
        self.clock = clock or (lambda: int(time.time() * 1000))
        self._max_records = max_records
        self._cold = cold

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
        fence: Fence | None = None,
    ) -> MiniClusterJob:
        """Start a job without running it; `snapshot` continues an earlier one, `savepoint` a perhaps changed one.

        `directory` is what receivers and sinks keep to survive a crash of the driver; `job_id` is the id that a job
        has which failed before its first snapshot; `fence` is the lease on the directory.
        """
        graph = translate(sinks, settings)
        return MiniClusterJob(
            graph,
            self.clock,
            max_records=self._max_records,
            cold=self._cold,
            snapshot=snapshot,
            job_id=job_id,
            directory=directory,
            savepoint=savepoint or settings.savepoint_path,
            allow_non_restored_state=allow_non_restored_state or settings.ignore_unclaimed_state,
            life=life,
            fence=fence,
        )

    def submit(self, sinks: list[Transformation], settings: JobSettings) -> JobClient:
        """Run a job to its end, in a thread of its own."""
        life = JobLife(str(JobID()), settings.job_name, compress_savepoints=settings.snapshot_compression)

        first = self.start(sinks, settings, job_id=life.job_id, life=life)
        if first.graph.runs_as_batch:
            return ThreadJobClient(JobID(life.job_id), MiniBatchJob(first))

        def plan(parallelism: int) -> JobGraph:
            return translate(sinks, replace(settings, parallelism=parallelism))

        def start(parallelism: int, savepoint: str) -> MiniClusterJob:
            changed = replace(settings, parallelism=parallelism, ignore_unclaimed_state=False)
            return self.start(sinks, changed, job_id=life.job_id, savepoint=savepoint, life=life)

        return ThreadJobClient(JobID(life.job_id), MiniRunningJob(first, plan, start, settings.savepoint_dir))
