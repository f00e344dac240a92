"""The source coordinator plans batches: how far to read each split, the processing time, and the end of the sources.

It runs on the driver and is created for every attempt of the job. A plan is an `Offset`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from penstock.common.errors import shorten
from penstock.core.source import Source, SourceSplit, SplitEnumerator, planned_records
from penstock.runtime.exchange.frames import BatchHeader, SplitStatus, TaskReport
from penstock.runtime.operators.user_errors import source_errors
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.plan.offset import Offset, Positions, SplitPosition, SplitState
from penstock.runtime.source.alignment import WatermarkAligner
from penstock.runtime.source.batch_sizer import BatchSizer
from penstock.runtime.source.coordinated_source import (
    CoordinatedSource,
    idle_timeout_of,
    readers,
    subtask_for_new_split,
    with_subtasks,
)
from penstock.runtime.source.source_stage import SourceWork, SplitRange
from penstock.runtime.source.split_order import SplitQueue

__all__ = ["CoordinatedSource", "SourceCoordinator"]

ACTIVE, IDLE, FINISHED, GONE = SplitState
_NEW = SplitPosition(None)

_PLANNING_SECONDS = 0.005


class SourceCoordinator:
    """All sources of a job.

    :param external: source vertices that the engine feeds itself, and whether they are bounded
    :param stepped: whether many batches lead to one checkpoint
    :param initial: where to begin; None is the beginning of all sources
    """

    def __init__(
        self,
        vertices: list[JobVertex],
        *,
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
        sizer: BatchSizer | None = None,
        external: Mapping[int, bool] | None = None,
        initial: Offset | None = None,
        aligner: WatermarkAligner | None = None,
        stepped: bool = False,
    ) -> None:
        self._stepped = stepped
        self._clock = clock
        self.sizer = sizer or BatchSizer()
        self.initial_offset = initial or Offset()
        self._aligner = aligner if aligner is not None and aligner.is_needed else None
        self._external = external or {}
        self.sources: list[CoordinatedSource] = []
        for vertex in vertices:
            if vertex.id in self._external:
                continue
            source: Source = vertex.operators[0].source
            with source_errors(vertex.operators[0].name, "creating its enumerator"):
                enumerator = source.create_enumerator(vertex.source_parallelism)
            self.sources.append(CoordinatedSource(vertex, source, enumerator, idle_timeout_of(vertex)))
        self._wakeup: int | None = 0  # restored tasks may wait for a time that has passed: ask them
        self._durable = self.initial_offset
        self._draining = False
        self._closed = False
        self._lock = threading.Lock()
        self._change = False
        self.changed = threading.Condition()
        """Notified when there may be something to plan."""

    # -- life cycle ---------------------------------------------------------------------------------------------

    def start(self, directory: str | None = None) -> None:
        """Start all enumerators. `directory` is for data that they need after a crash of the driver."""
        for source in self.sources:
            with source.guard("starting"):
                source.enumerator.use_clock(self._clock)
                if self._stepped:
                    source.enumerator.use_steps(self.wake)
                if directory is not None:
                    source.enumerator.use_directory(f"{directory}/{source.key}")
                source.enumerator.start()

    def close(self) -> None:
        """Close all enumerators, even if one of them fails."""
        self._closed = True
        with ExitStack() as stack:
            for source in reversed(self.sources):
                stack.enter_context(source.guard("closing"))
                stack.callback(source.enumerator.close)

    def observe(self, reports: list[TaskReport]) -> None:
        """Learn from the reports of a batch for the next plan."""
        if self._aligner is not None:
            with self._lock:
                self._aligner.observe(reports)
        wakeups = [report.next_wakeup for report in reports if report.next_wakeup is not None]
        self.wake_at(min(wakeups, default=None))

    def wake_at(self, time_ms: int | None) -> None:
        """Set the earliest processing time at which a task needs a batch."""
        with self.changed:
            self._wakeup = time_ms
            self.changed.notify_all()

    def drain(self) -> None:
        """End the job with one more batch, which has the final watermark."""
        self._draining = True
        self.wake()

    def wake(self) -> None:
        """Plan again: there may be something to read."""
        with self.changed:
            self._change = True
            self.changed.notify_all()

    def wait_for_change(self, seconds: float) -> None:
        """Wait until there may be something to plan since the last call, at most for this time."""
        with self.changed:
            if not self._change:
                self.changed.wait(seconds)
            self._change = False

    @property
    def has_external(self) -> bool:
        """Whether the engine feeds some sources itself."""
        return bool(self._external)

    @property
    def is_restored(self) -> bool:
        """Whether a batch has been planned, so that all enumerators know their positions."""
        return all(source.restored for source in self.sources)

    def pending_records(self, end: Offset) -> dict[str, dict[str, int]]:
        """Return how far behind the sources are, where known: records by source and split."""
        return {
            source.key: {
                split_id: pending
                for split_id, at in end.of_source(source.key).items()
                if not at.state.is_finished
                and (pending := source.enumerator.pending_records(split_id, at.offset)) is not None
            }
            for source in self.sources
            if type(source.enumerator).pending_records is not SplitEnumerator.pending_records
        }

    @property
    def may_end(self) -> bool:
        """Whether all sources can end, so that it makes sense to wait for the end."""
        return all(source.source.may_end for source in self.sources)

    # -- planning -----------------------------------------------------------------------------------------------

    def plan(
        self,
        start: Offset,
        *,
        checkpoint_id: int | None = None,
        drain: bool = False,
        requested: bool = False,
        durable: Offset | None = None,
    ) -> Offset | None:
        """Return the next offset, or None if there is nothing to do now.

        :param checkpoint_id: of the next batch; None means one more than that of `start`
        :param drain: whether the next batch is the last one
        :param requested: whether a batch is needed even without input
        :param durable: the offset of the last complete checkpoint; None means `start`
        """
        with self._lock:
            self._durable = durable or start
            return self._plan(start, checkpoint_id or start.checkpoint_id + 1, drain=drain, requested=requested)

    def plan_to_end(self, start: Offset) -> Offset:
        """Plan the batch of a batch job: to the end of all sources, even of rate-limited and receiving ones."""
        end = start
        starts: dict[str, dict[str, Any]] = {}
        while not end.is_last and not self._closed:
            further = self.plan(end)
            if further is None:
                self.wait_for_change(_PLANNING_SECONDS)
                continue
            for key, new in further.starts.items():
                starts.setdefault(key, {}).update(new)
            end = further
        return replace(end, checkpoint_id=start.checkpoint_id + 1, starts=starts)

    def _plan(self, start: Offset, checkpoint_id: int, *, drain: bool, requested: bool) -> Offset | None:
        if start.is_last:
            return None
        now = max(self._clock(), start.processing_time)
        progress = start.checkpoint_id == 0
        splits: Positions = {}
        starts: dict[str, dict[str, Any]] = {}
        if self._aligner is not None:
            self._aligner.begin(start.alignment, _splits_up_to(ACTIVE, start.splits), now)
        for source in self.sources:
            with source.guard("planning a batch"):
                before = with_subtasks(source, start.of_source(source.key))
                after, new = self._advance(source, before, now)
            splits[source.key] = after
            if new:
                starts[source.key] = new
            progress = progress or any(at != before.get(name) for name, at in after.items() if at.state != GONE)
        aligned = {} if self._aligner is None else self._aligner.end(_splits_up_to(IDLE, splits), now)
        more = tuple(source.key for source in self.sources if source.withholds or source.enumerator.has_more_splits())
        last = self._all_finished(splits, more) or self._draining or drain
        woken = self._wakeup is not None and self._wakeup <= now
        if not (progress or last or woken or requested):
            return None
        if woken:
            self._wakeup = None  # the tasks' reports on this batch say when the next one is due
        return Offset(checkpoint_id, now, last, splits, more, starts, {k: v for k, v in aligned.items() if v})

    def _advance(
        self, source: CoordinatedSource, before: dict[str, SplitPosition], now: int
    ) -> tuple[dict[str, SplitPosition], dict[str, Any]]:
        """Return where the source's splits are read to, and where new splits begin."""
        fresh = not before
        starts: dict[str, Any] = {}
        if not source.restored:
            source.restored = True
            if before:
                source.enumerator.restore({name: at.state.is_finished for name, at in before.items()})
        before = with_subtasks(source, self._without_forgotten(source, before))
        after: dict[str, SplitPosition] = {}
        splits = source.enumerator.discover_splits()
        for split in splits:
            source.splits[split.split_id] = split
        queue, budgets = self._queue(source, splits, before)
        for split in splits if queue is None else queue.splits:
            name = split.split_id
            position = before.get(name)
            if position is None:
                subtask = queue.take() if queue else subtask_for_new_split(source, name, {**before, **after})
                if subtask is None:
                    continue
                starts[name] = self._starting_offset(source, split, fresh=fresh)
                position = SplitPosition(starts[name], ACTIVE, subtask)
            if position.state.is_finished:
                after[name] = replace(position, state=GONE)
                continue
            budget = self._allowance(source, name, queue.budget(position) if queue else budgets[name])
            after[name] = advanced = self._advance_split(source, split, position, budget, now)
            if queue:
                moved = advanced.offset != position.offset
                records = planned_records(source.enumerator, split, position.offset, advanced.offset, budget)
                queue.planned(advanced, records if moved else 0)
        source.withholds = queue is not None and queue.withheld
        for split_id, position in before.items():  # a split that is no longer listed stays
            if split_id not in after:
                if self._aligner is not None:
                    self._aligner.planned(source.key, split_id, 0)
                after[split_id] = replace(position, state=self._unlisted_state(source, split_id, position.state, now))
        return after, starts

    def _unlisted_state(self, source: CoordinatedSource, split_id: str, state: SplitState, now: int) -> SplitState:
        if state.is_finished:
            return GONE
        return IDLE if self._is_silent(source, split_id, now) else state

    def _queue(
        self, source: CoordinatedSource, splits: Sequence[SourceSplit], before: dict[str, SplitPosition]
    ) -> tuple[SplitQueue | None, dict[str, int]]:
        """Return the order of the splits, if they have one. Otherwise return the record budgets of the splits."""
        open_splits = [s.split_id for s in splits if not before.get(s.split_id, _NEW).state.is_finished]
        if not source.enumerator.reads_in_order:
            return None, self._budgets(source, open_splits)
        queue = SplitQueue(splits, before, source.vertex.parallelism)
        begun = open_splits[: queue.tasks_with_work]
        source.busy = set(begun)  # a task that has read a split to its end has the next one
        queue.begin(max(self._budgets(source, begun).values(), default=0))
        return queue, {}

    def _budgets(self, source: CoordinatedSource, open_splits: list[str]) -> dict[str, int]:
        """Return how many records each split may contribute to the next batch.

        The splits that had something to read in the last plan share the limit, so one busy split among many is read as
        fast as a single one. All other splits together may add up to half of the limit if they wake up. A batch never
        exceeds the limit.
        """
        was_busy = source.busy & set(open_splits)
        busy, total = len(was_busy), len(open_splits)
        limit = self.sizer.limit
        if self.sizer.fixed:  # one limit for each source
            limit //= len(self.sources)
        else:
            others = [other for other in self.sources if other is not source]
            busy += sum(len(other.busy) for other in others)
            total += sum(other.unfinished for other in others)
        source.unfinished, source.busy = len(open_splits), set()
        fair = limit // max(1, total)
        quiet = max(1, fair // 2 if busy else fair)
        share = max(1, (limit - quiet * (total - busy)) // busy) if busy else quiet
        return {split_id: share if split_id in was_busy else quiet for split_id in open_splits}

    def _allowance(self, source: CoordinatedSource, split_id: str, budget: int) -> int:
        """Return the budget, reduced so that the split stays within its alignment drift. A split with 0 waits."""
        return budget if self._aligner is None else self._aligner.allowance(source.key, split_id, budget)

    def _starting_offset(self, source: CoordinatedSource, split: SourceSplit, *, fresh: bool) -> Any:
        offset = source.enumerator.starting_offset(split, fresh=fresh)
        return source.source.initial_offset(split) if offset is None else offset

    def with_forgotten_splits(self, end: Offset) -> Offset:
        """Return an offset for a savepoint, with the positions that only the sources store: another job lacks them."""
        splits = {key: dict(positions) for key, positions in end.splits.items()}
        for source in self.sources:
            for split_id in source.enumerator.remembered():
                splits.setdefault(source.key, {}).setdefault(split_id, SplitPosition(None, GONE, 0))
        return replace(end, splits=splits)

    def _without_forgotten(
        self, source: CoordinatedSource, before: dict[str, SplitPosition]
    ) -> dict[str, SplitPosition]:
        """Leave out splits that an earlier batch finished, if the source stores them durably."""
        durable = self._durable.of_source(source.key)
        done = [split_id for split_id, at in before.items() if at.state.is_finished and split_id in durable]
        done = [split_id for split_id in done if durable[split_id].state.is_finished]
        if not done or not source.enumerator.forget(done):
            return before
        for split_id in done:
            source.splits.pop(split_id, None)
            source.last_active.pop(split_id, None)
        return {split_id: at for split_id, at in before.items() if split_id not in done}

    def _advance_split(
        self, source: CoordinatedSource, split: SourceSplit, position: SplitPosition, budget: int, now: int
    ) -> SplitPosition:
        offset, state = position.offset, position.state
        if not budget:  # it waits for others, so it is not idle
            source.last_active[split.split_id] = now
            finished = source.enumerator.is_finished(split, offset)
            return replace(position, state=FINISHED) if finished else position
        latest = source.enumerator.latest_offset(split, offset, budget)
        moved = latest is not None and latest != offset
        if self._aligner is not None:
            records = max(1, planned_records(source.enumerator, split, offset, latest, budget)) if moved else 0
            self._aligner.planned(source.key, split.split_id, records)
        if moved:
            offset, state = latest, ACTIVE
            source.busy.add(split.split_id)
            source.last_active[split.split_id] = now
        elif self._is_silent(source, split.split_id, now):
            state = IDLE
        if source.enumerator.is_finished(split, offset):
            state = FINISHED
        return SplitPosition(offset, state, position.subtask)

    def _is_silent(self, source: CoordinatedSource, split_id: str, now: int) -> bool:
        """Whether a split has had no records for so long that event time no longer waits for it."""
        since = source.last_active.setdefault(split_id, now)
        return source.idle_timeout is not None and now > since + source.idle_timeout

    def _all_finished(self, splits: Positions, more: tuple[str, ...]) -> bool:
        if any(not bounded for bounded in self._external.values()):
            return False
        return all(
            source.source.may_end
            and source.key not in more
            and all(at.state.is_finished for at in splits[source.key].values())
            for source in self.sources
        )

    # -- executing a plan ---------------------------------------------------------------------------------------

    def header(self, end: Offset) -> BatchHeader:
        """Return what every task must know about the batch that ends with this offset."""
        splits: dict[int, dict[str, SplitStatus]] = {}
        finished: set[int] = set()
        for source in self.sources:
            positions = end.of_source(source.key)
            aligned = end.alignment.get(source.key, {})
            splits[source.vertex.id] = {
                name: SplitStatus(
                    reader,
                    None if source.idle_timeout is None else at.state == IDLE,
                    at.state.is_finished or end.is_last,
                    bool(aligned.get(split_id, (0, 0))[1]),
                )
                for split_id, at in positions.items()
                if at.state != GONE
                for name, reader in readers(source.vertex, split_id, at.subtask or 0)
            }
            ended = source.source.may_end and source.key not in end.more
            if end.is_last or (ended and all(at.state.is_finished for at in positions.values())):
                finished.add(source.vertex.id)
        for vertex_id, bounded in self._external.items():
            done = end.is_last or bounded
            splits[vertex_id] = {"0": SplitStatus(0, finished=done)}
            if done:
                finished.add(vertex_id)
        return BatchHeader(
            end.checkpoint_id, end.processing_time, splits, frozenset(finished), end.is_last, end.is_last
        )

    def assignments(self, start: Offset, end: Offset) -> list[SourceWork]:
        """Return what the source tasks must read to get from one offset to the other."""
        assignments: list[SourceWork] = []
        for source in self.sources:
            ranges: dict[int, list[SplitRange]] = {}
            for split_id, at in end.of_source(source.key).items():
                self._assign(source, split_id, at, start, end, ranges)
            if end.is_last:  # the operators after a source that ended earlier must learn of the end, too
                for subtask in range(source.vertex.parallelism):
                    ranges.setdefault(subtask, [])
            assignments += [SourceWork(source.vertex.id, subtask, parts) for subtask, parts in sorted(ranges.items())]
        return assignments

    def _assign(
        self,
        source: CoordinatedSource,
        split_id: str,
        at: SplitPosition,
        start: Offset,
        end: Offset,
        ranges: dict[int, list[SplitRange]],
    ) -> None:
        """Add the range of one split to the ranges of the subtasks."""
        if at.offset is None:
            return  # restored from a savepoint
        before = start.of_source(source.key).get(split_id)
        first = end.starts.get(source.key, {}).get(split_id) if before is None else before.offset
        if first == at.offset:
            return  # the source may no longer know the split
        split = self._split(source, split_id)
        if first is None:  # written before offsets had starts
            first = source.source.initial_offset(split)
        if first == at.offset:
            return
        with source.guard(f"preparing split '{split_id}' from {shorten(first)} to {shorten(at.offset)}"):
            prepared = source.enumerator.prepare(split, first, at.offset)
        if source.vertex.spread:
            readers = source.vertex.parallelism
            for reader in range(readers):
                part = prepared.part(reader, readers, first)
                ranges.setdefault(reader, []).append(SplitRange(part, first, at.offset, readers))
        else:
            ranges.setdefault(at.subtask or 0, []).append(SplitRange(prepared, first, at.offset))

    def _split(self, source: CoordinatedSource, split_id: str) -> SourceSplit:
        if split_id not in source.splits:
            for split in source.enumerator.discover_splits():
                source.splits[split.split_id] = split
        if split_id not in source.splits:
            source.splits[split_id] = source.enumerator.restore_split(split_id)
        return source.splits[split_id]

    def commit(self, end: Offset) -> None:
        """Notify the sources that everything before this offset is durable. Repeating it does no harm."""
        for source in self.sources:
            with source.guard("committing its offsets"):
                source.enumerator.commit({name: at.offset for name, at in end.of_source(source.key).items()})


def _splits_up_to(state: SplitState, splits: Positions) -> dict[str, set[str]]:
    """Return the splits of every source that are not beyond this state."""
    return {
        key: {split_id for split_id, at in positions.items() if at.state <= state} for key, positions in splits.items()
    }
