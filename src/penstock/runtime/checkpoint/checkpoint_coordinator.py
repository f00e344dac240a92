"""The life of a checkpoint, from its plan to the notification that it is complete.

Every batch completes a checkpoint. It goes through the same steps on every engine:

1. `plan`: decide how far the sources are read. The engine logs the offset before it runs the batch.
2. `begin`: tell the tasks what to do, and attach requested savepoints and state queries.
3. The engine runs the batch and brings back the reports of its tasks.
4. `commit`: store union list states, commit the sinks, complete the savepoint, and learn from the reports.
5. The engine makes the batch durable. Now the checkpoint is complete.
6. `complete`: commit the sinks that wait for the checkpoint, and notify sources and queries.

A crash before step 5 repeats the batch from step 2 with the same offsets. The fence stops a driver that another one has
replaced: after step 1 (before the offset is logged), before the first sink commits, and before step 5.

An engine that runs batches on request implements `BatchEngine`. Spark's streaming query drives itself, and calls the
steps from its hooks: see `penstock.spark.job_query`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.common.errors import SavepointError
from penstock.common.job_status import JobStatus
from penstock.core.fence import Fence
from penstock.runtime.checkpoint.checkpoint_storage import COMMITTABLES, RECEIVED, CheckpointStorage
from penstock.runtime.checkpoint.sink_committer import SinkCommitters
from penstock.runtime.exchange.frames import BatchHeader, TaskReport
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.savepoint_queue import SavepointTicket
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.source.source_stage import SourceWork
from penstock.runtime.task.union_states import UnionStart, UnionStates

__all__ = ["Batch", "BatchEngine", "CheckpointCoordinator"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The step from one offset to the next, ready to run."""

    start: Offset
    end: Offset
    header: BatchHeader
    assignments: list[SourceWork]


class BatchEngine(Protocol):
    """Runs the batches of a job."""

    def run(self, batch: Batch) -> list[TaskReport]:
        """Run a batch, and return the reports of all tasks."""

    def make_durable(self, batch: Batch) -> None:
        """Complete the checkpoint: from now on, state and offset of the batch survive a crash."""


class CheckpointCoordinator:
    """The checkpoints of a job at one parallelism, across all attempts.

    :param on_first_checkpoint: called once, when a checkpoint of this job is complete in its storage
    :param stepped: the engine takes several steps from one checkpoint to the next (`penstock.spark.continuous`)
    """

    def __init__(
        self,
        vertices: list[JobVertex],
        life: JobLife,
        progress: JobProgress,
        *,
        fence: Fence | None = None,
        on_first_checkpoint: Callable[[], None] | None = None,
        stepped: bool = False,
    ) -> None:
        self.life = life
        self.progress = progress
        self.fence = fence or Fence()
        self.committers = SinkCommitters(vertices, fence=self.fence, stepped=stepped)
        self.stopped_with: SavepointTicket | None = None
        """The savepoint with which the job has stopped."""
        self.ended = False
        """Whether the last checkpoint of the job, or that of its final savepoint, is complete."""
        self._vertices = vertices
        self._on_first_checkpoint = on_first_checkpoint
        self._storage: CheckpointStorage | None = None
        self._unions = UnionStates(vertices)
        self._stopped_at = 0
        # -- of one attempt
        self._sources: SourceCoordinator | None = None
        self._loading_only = False
        self._stopping = False
        self._batch: Batch | None = None
        self._began = 0.0
        self._awaited: int | None = None  # the checkpoint that is committed, but not complete yet
        self._unplanned = 0  # the last checkpoint, if the engine runs batches of DataFrames without a plan
        self._notified = 0  # the last checkpoint whose completion the sources know
        self._notify_again: Offset | None = None
        life.savepoints.serve(vertices, self.wake)

    # -- life cycle ---------------------------------------------------------------------------------------------

    def start(self, job_id: str, storage: CheckpointStorage) -> None:
        """Open the committers and their logs. `job_id` is the permanent id of the job for sinks."""
        self._storage = storage
        self._unions = UnionStates(self._vertices, storage.union_files)
        self.committers.start(job_id, storage.directory(COMMITTABLES))

    def open(self, sources: SourceCoordinator, *, loading_only: bool = False) -> UnionStart:
        """Begin an attempt after the last complete checkpoint, and return the union list states to start with.

        :param loading_only: the attempt ends with the batch in which tasks load restored state, and takes no savepoint
        """
        self.fence.check()
        self._sources = sources
        self._loading_only, self._stopping = loading_only, False
        self._batch = None
        last = self.storage.last_checkpoint()
        self._unplanned = last if sources.has_external else 0
        self._notified, self._notify_again = sources.initial_offset.checkpoint_id, None
        sources.start(self.storage.directory(RECEIVED))
        return self._unions.begin(last)

    def close_attempt(self) -> None:
        """Close the sources. The committers stay open for the next attempt."""
        if self._sources is not None:
            self._sources.close()

    def close(self, *, failed: bool = False) -> None:
        """Close the committers."""
        self.committers.close(failed=failed)

    @property
    def storage(self) -> CheckpointStorage:
        """The storage of checkpoints."""
        assert self._storage is not None, "start() was not called"
        return self._storage

    @property
    def sources(self) -> SourceCoordinator:
        """The sources of the current attempt."""
        assert self._sources is not None, "open() was not called"
        return self._sources

    @property
    def batch(self) -> Batch | None:
        """The current or last batch of this attempt."""
        return self._batch

    def wake(self) -> None:
        """Plan a batch soon: something other than a source needs one."""
        if self._sources is not None:
            self._sources.wake()

    def stop(self) -> None:
        """Plan no further batch in this attempt."""
        self._stopping = True
        self.wake()

    @property
    def stopping(self) -> bool:
        """Whether no further batch is planned in this attempt."""
        return self._stopping or self.stopped_with is not None

    # -- the life of one checkpoint -----------------------------------------------------------------------------

    @property
    def requested(self) -> bool:
        """Whether a savepoint or a state query waits for a checkpoint."""
        return (not self._loading_only and self.life.savepoints.pending) or self.life.queries.pending

    def plan(
        self,
        start: Offset,
        *,
        checkpoint_id: int | None = None,
        requested: bool | None = None,
        durable: Offset | None = None,
    ) -> Offset | None:
        """Step 1: return the offset that the next batch leads to, or None if there is nothing to do.

        :param checkpoint_id: the checkpoint of the batch; None means the one after `start`
        :param requested: whether a batch is needed even without input; None means if a request waits for a checkpoint
        :param durable: the offset of the last complete checkpoint, if several batches lead to a checkpoint
        """
        savepoints = None if self._loading_only else self.life.savepoints
        end = self.sources.plan(
            start,
            checkpoint_id=checkpoint_id or max(start.checkpoint_id, self._unplanned) + 1,
            drain=savepoints is not None and savepoints.draining,
            requested=self.requested if requested is None else requested,
            durable=durable,
        )
        if self._notify_again is not None:
            self.sources.commit(self._notify_again)
            self._notify_again = None
        if end is not None and durable is None:
            self.fence.check()
        return end

    def begin(self, start: Offset, end: Offset) -> Batch:
        """Step 2: return what the tasks have to do. Beginning a batch again gives the same header."""
        self._began = time.monotonic()
        if self._batch is not None and self._batch.end == end:
            header = self._batch.header
        else:
            header = self.sources.header(end)
            if not self._loading_only and self.life.savepoints.pending:
                header.savepoint = self.life.savepoints.attach(self.sources.with_forgotten_splits(end))
            header.queries = self.life.queries.attach(end.checkpoint_id)
        self._batch = Batch(start, end, header, self.sources.assignments(start, end))
        return self._batch

    def begin_step(self, start: Offset, end: Offset, step: int, completed: int, *, checkpoint: bool) -> Batch:
        """Step 2 for one of several batches that lead to a checkpoint.

        :param step: the number of the batch in this attempt, from 1
        :param completed: the checkpoint that has become complete since the last step, or 0
        :param checkpoint: whether tasks write their state at the end of this batch
        """
        if checkpoint:
            self.fence.check()
            batch = self.begin(start, end)
        else:
            self._began = time.monotonic()
            batch = Batch(start, end, self.sources.header(end), self.sources.assignments(start, end))
        batch.header.checkpoint, batch.header.step, batch.header.completed = checkpoint, step, completed
        return batch

    def end_step(self, checkpoint_id: int, reports: list[TaskReport], step: int) -> None:
        """End a batch without a checkpoint: commit the sinks that publish at once, and learn from the reports."""
        self.committers.publish(reports, step)
        self._learn(checkpoint_id, reports, checkpoint=False)

    def commit(self, checkpoint_id: int, reports: list[TaskReport], *, step: int = 0) -> None:
        """Step 4: publish the results of the tasks. If this raises an error, the batch must not become durable."""
        self.storage.check()
        self.committers.publish(reports, step)
        self._unions.batch(reports, checkpoint_id)
        self.committers.commit(reports, checkpoint_id)
        if self.sources.has_external:
            self._unplanned = checkpoint_id
        self._learn(checkpoint_id, reports)
        self.life.queries.checkpoint_committed(checkpoint_id, reports)
        self._complete_savepoint(checkpoint_id, reports)
        if self._loading_only:
            self.stop()
        self.fence.check()
        self._awaited = checkpoint_id

    def _learn(self, checkpoint_id: int, reports: list[TaskReport], *, checkpoint: bool = True) -> None:
        """Record the progress, and adapt the size of the next batch."""
        seconds = time.monotonic() - self._began
        self.sources.observe(reports)
        self.progress.batch(reports, checkpoint_id, seconds, checkpoint=checkpoint)
        if self._batch is not None:
            self.progress.committed = self._batch.end
            self.progress.pending = self.sources.pending_records(self._batch.end)
        self.sources.sizer.observe(self.progress.last_source_records, seconds)

    def _complete_savepoint(self, checkpoint_id: int, reports: list[TaskReport]) -> None:
        ticket = self.life.savepoints.checkpoint_committed(checkpoint_id, reports, self.storage.source_positions)
        if ticket is None:
            return
        self.progress.checkpoints.savepoint_taken(checkpoint_id, ticket.request.location)
        if ticket.stop:
            self.stopped_with, self._stopped_at = ticket, checkpoint_id

    def complete(self, offset: Offset) -> None:
        """Step 6: everything up to this offset is durable. Engines may repeat this while there is nothing to plan."""
        self._awaited = None
        final = offset.is_last or self.stopping
        complete = max(offset.checkpoint_id, self._unplanned)
        self.committers.checkpoint_complete(complete, final=final)
        if offset.checkpoint_id > self._notified:
            self.sources.commit(offset)
            self._notified = offset.checkpoint_id
            # Before its first plan, a source may not know the splits yet: notify it again then.
            self._notify_again = None if self.sources.is_restored else offset
        self.life.queries.checkpoint_complete(complete)
        if self._loading_only:
            return
        self.ended = offset.is_last or self.stopped_with is not None
        if self._on_first_checkpoint is not None and complete > self.storage.base:
            notify, self._on_first_checkpoint = self._on_first_checkpoint, None
            notify()

    def complete_if_durable(self) -> None:
        """Complete the last batch if it became durable although the engine was stopped during it."""
        batch = self._batch
        if self.ended or batch is None or not (batch.end.is_last or self.stopped_with is not None):
            return
        if self.storage.last_checkpoint() >= max(batch.end.checkpoint_id, self._stopped_at):
            self.complete(batch.end)

    def adopt_checkpoint_of_previous_driver(self) -> None:
        """Complete a checkpoint that the previous driver, not this one, made durable.

        That driver was paused just before it. Its run of the batch counts, so commit what its sinks have prepared.
        """
        awaited, self._awaited = self._awaited, None
        if awaited is not None and self.storage.last_checkpoint() >= awaited:
            self.committers.completed_by_the_driver_before(awaited)

    def stopped_before(self, checkpoint_id: int) -> bool:
        """Whether the job has stopped with a savepoint at an earlier checkpoint, so that this one must not happen."""
        return self.stopped_with is not None and checkpoint_id > self._stopped_at

    # -- driving an engine --------------------------------------------------------------------------------------

    def run_batch(self, engine: BatchEngine, start: Offset) -> bool:
        """Run one checkpoint through all its steps. Return False if there is nothing to do."""
        self.complete(start)
        end = self.plan(start)
        if end is None:
            return False
        self._run(engine, self.begin(start, end))
        return True

    def run_to_end(self, engine: BatchEngine) -> None:
        """Run one batch that reads all sources to their end."""
        self._run(engine, self.begin_whole_input())

    def begin_whole_input(self) -> Batch:
        """Do steps 1 and 2 for a batch that reads all sources to their end."""
        start = self.sources.initial_offset
        end = self.sources.plan_to_end(start)
        self.fence.check()
        return self.begin(start, end)

    def _run(self, engine: BatchEngine, batch: Batch) -> None:
        reports = engine.run(batch)
        self.commit(batch.end.checkpoint_id, reports)
        engine.make_durable(batch)
        self.complete(batch.end)

    # -- the end of the job -------------------------------------------------------------------------------------

    def outcome(self) -> JobStatus:
        """Return the final status of the job, or RESTARTING if it continues at another parallelism.

        A job that is cancelled after its last checkpoint has completed is FINISHED.
        """
        ticket = self.stopped_with
        if ticket is not None and not self.ended:
            self.stopped_with = None
            name = self.life.job_name
            ticket.fail(SavepointError(f"job '{name}' was cancelled before its last checkpoint was complete"))
        if not self.ended or (ticket is not None and ticket.cancel):
            return JobStatus.CANCELED
        return JobStatus.FINISHED if ticket is None or ticket.parallelism is None else JobStatus.RESTARTING
