"""The source coordinator plans batches: how far each split is read, what time it is, when there is nothing left.

It runs on the driver. An *offset* is everything a batch needs to be planned again after a failure, as JSON:
`{"n": batch number, "t": processing time, "end": last batch?, "s": {source operator id: {split id: [offset, state,
subtask]}}, "more": [source operator ids], "f": {source operator id: {split id: offset}}, "w": {source operator id:
{split id: [watermark, paused]}}}`. Sources in "more" have splits that are not listed yet; "f" says where splits begin
that are new in the batch; "w" is there if sources are aligned, and is what was known before the batch.
A batch is the step from one offset to the next, so a replayed batch is the same batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import shorten
from penstock.core.source import Source, SourceSplit, SplitEnumerator, planned_records
from penstock.runtime.alignment import WatermarkAligner
from penstock.runtime.batch_sizer import BatchSizer
from penstock.runtime.frames import BatchHeader, SplitStatus, TaskReport
from penstock.runtime.job import JobVertex
from penstock.runtime.queries import QueryBoard
from penstock.runtime.savepoint.tickets import SavepointTickets
from penstock.runtime.source_stage import SourceWork, SplitRange
from penstock.runtime.split_order import SplitQueue
from penstock.runtime.user_errors import source_errors

Offset = dict[str, Any]

ACTIVE, IDLE, FINISHED, GONE = 0, 1, 2, 3
"""States of a split. It is FINISHED in the batch that reads it to its end, and GONE afterwards."""
_NEW = (None, ACTIVE)

_PLANNING_SECONDS = 0.005


@dataclass(slots=True)
class CoordinatedSource:
    """One source vertex and its enumerator."""

    vertex: JobVertex
    source: Source
    enumerator: SplitEnumerator
    idle_timeout: int | None
    splits: dict[str, SourceSplit] = field(default_factory=dict)
    last_active: dict[str, int] = field(default_factory=dict)
    restored: bool = False
    unfinished: int = 1  # splits, when a batch was planned last
    busy: set[str] = field(default_factory=set)  # those of them that had something to read
    withholds: bool = False  # whether splits wait until a task is free to take them

    @property
    def key(self) -> str:
        """The source's name in offsets."""
        return self.vertex.operators[0].operator_id

    def asked(self, doing: str) -> AbstractContextManager[None]:
        """Errors of the enumerator in here say whose they are."""
        return source_errors(self.vertex.operators[0].name, doing)


class SourceCoordinator:
    """All sources of a job."""

    def __init__(
        self,
        vertices: list[JobVertex],
        *,
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
        sizer: BatchSizer | None = None,
        external: dict[int, bool] | None = None,
        initial: Offset | None = None,
        savepoints: SavepointTickets | None = None,
        queries: QueryBoard | None = None,
        aligner: WatermarkAligner | None = None,
    ) -> None:
        self._clock = clock
        self.sizer = sizer or BatchSizer()
        self._initial = initial
        self._savepoints = savepoints
        self._queries = queries
        self._aligner = aligner if aligner is not None and aligner.is_needed else None
        self._header: tuple[Offset, BatchHeader] | None = None
        self._external = external or {}  # source vertices fed by the engine itself: vertex -> bounded
        self.sources: list[CoordinatedSource] = []
        for vertex in vertices:
            if vertex.id in self._external:
                continue
            source: Source = vertex.operators[0].source
            with source_errors(vertex.operators[0].name, "making its enumerator"):
                enumerator = source.create_enumerator(vertex.source_parallelism)
            self.sources.append(CoordinatedSource(vertex, source, enumerator, idle_timeout_of(vertex)))
        self._wakeup: int | None = 0  # tasks that are restored may wait for a time that has passed: ask them
        self._draining = False
        self._planned_at = time.monotonic()
        self._closed = False
        self.last_checkpoint = 0  # the engine may have batches that nobody here has planned: of DataFrames alone
        self._lock = threading.Lock()
        self.changed = threading.Condition()

    # -- life cycle ---------------------------------------------------------------------------------------------

    def start(self, directory: str | None = None) -> None:
        """Start all enumerators; `directory` is for what they must find again after a crash of the driver."""
        for source in self.sources:
            with source.asked("starting"):
                source.enumerator.use_clock(self._clock)
                if directory is not None:
                    source.enumerator.use_directory(f"{directory}/{source.key}")
                source.enumerator.start()

    def close(self) -> None:
        """Close all enumerators, also if one of them fails."""
        self._closed = True
        with ExitStack() as stack:
            for source in reversed(self.sources):
                stack.enter_context(source.asked("closing"))
                stack.callback(source.enumerator.close)

    def batch_done(self, reports: list[TaskReport]) -> None:
        """A batch was committed: what its tasks say is what the next one is planned by."""
        if self._aligner is not None:
            with self._lock:
                self._aligner.observe(reports)
        wakeups = [report.next_wakeup for report in reports if report.next_wakeup is not None]
        self.wake_at(min(wakeups, default=None))

    def wake_at(self, time_ms: int | None) -> None:
        """The earliest processing time at which some task needs a batch."""
        with self.changed:
            self._wakeup = time_ms
            self.changed.notify_all()

    def drain(self) -> None:
        """End the job: one more batch, with the final watermark."""
        with self.changed:
            self._draining = True
            self.changed.notify_all()

    @property
    def may_end(self) -> bool:
        """Whether all sources can come to an end, so that it is worth waiting for it."""
        return all(source.source.may_end for source in self.sources)

    # -- planning -----------------------------------------------------------------------------------------------

    def initial_offset(self) -> Offset:
        """Before the first batch: the beginning, or where a savepoint was taken."""
        return self._initial or {"n": 0, "t": 0, "end": False, "s": {}}

    def plan(self, start: Offset) -> Offset | None:
        """The next offset, or None if nothing is to be done now. Everything up to `start` is committed."""
        if self._queries is not None:
            self._queries.committed(start["n"])
        with self._lock:
            return self._plan(start)

    def plan_to_end(self, start: Offset) -> Offset:
        """The one step of a batch job: up to the end of all sources, however long a paced source takes to get there."""
        end = start
        firsts: dict[str, dict[str, Any]] = {}
        while not end["end"] and not self._closed:
            further = self.plan(end)
            for key, new in (further or {}).get("f", {}).items():
                firsts.setdefault(key, {}).update(new)
            if further is None:
                with self.changed:
                    self.changed.wait(_PLANNING_SECONDS)
            end = further or end
        return {**end, "n": start["n"] + 1, "f": firsts}

    def _plan(self, start: Offset) -> Offset | None:
        if start["end"]:
            return None
        now = max(self._clock(), start["t"])
        known: dict[str, dict[str, Any]] = start["s"]
        progress = start["n"] == 0
        positions: dict[str, dict[str, Any]] = {}
        firsts: dict[str, dict[str, Any]] = {}
        if self._aligner is not None:
            self._aligner.begin(start.get("w", {}), _splits_up_to(ACTIVE, known), now)
        for source in self.sources:
            with source.asked("planning a batch"):
                before = _with_subtasks(source, known.get(source.key, {}))
                after, new = self._advance(source, before, now)
            positions[source.key] = after
            if new:
                firsts[source.key] = new
            progress = progress or any(
                position != before.get(name) for name, position in after.items() if position[1] != GONE
            )
        aligned = {} if self._aligner is None else self._aligner.end(_splits_up_to(IDLE, positions), now)
        more = [source.key for source in self.sources if source.withholds or source.enumerator.has_more_splits()]
        draining = self._draining or (self._savepoints is not None and self._savepoints.draining)
        end = self._all_finished(positions, more) or draining
        woken = self._wakeup is not None and self._wakeup <= now
        asked = any(board is not None and board.pending for board in (self._savepoints, self._queries))
        if not (progress or end or woken or asked):
            return None
        if woken:
            self._wakeup = None  # the tasks' reports on this batch say when the next one is due
        planned = {"n": max(start["n"], self.last_checkpoint) + 1, "t": now, "end": end, "s": positions}
        also = {"more": more, "f": firsts, "w": aligned}
        return {**planned, **{key: value for key, value in also.items() if value}}

    def _advance(
        self, source: CoordinatedSource, before: dict[str, Any], now: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Where the source's splits are read to, and where those begin that are new."""
        fresh = not before
        firsts: dict[str, Any] = {}
        if not source.restored:
            source.restored = True
            if before:
                source.enumerator.restore({name: position[1] >= FINISHED for name, position in before.items()})
        before = _with_subtasks(source, self._without_forgotten(source, before))
        after: dict[str, Any] = {}
        splits = source.enumerator.discover_splits()
        for split in splits:
            source.splits[split.split_id] = split
        queue, budgets = self._queue(source, splits, before)
        for split in splits if queue is None else queue.splits:
            name = split.split_id
            position = before.get(name)
            if position is None:
                subtask = queue.take() if queue else _subtask_for_new_split(source, name, {**before, **after})
                if subtask is None:
                    continue
                firsts[name] = self._starting_offset(source, split, fresh=fresh)
                position = (firsts[name], ACTIVE, subtask)
            offset, state, subtask = position
            if state < FINISHED:
                start, budget = offset, queue.budget(subtask) if queue else budgets[name]
                budget = self._allowance(source, name, budget)
                offset, state = self._advance_split(source, split, offset, state, budget, now)
                if queue:
                    records = planned_records(source.enumerator, split, start, offset, budget) if offset != start else 0
                    queue.planned(subtask, records, finished=state == FINISHED)
            else:
                state = GONE
            after[name] = [offset, state, subtask]
        source.withholds = queue is not None and queue.withheld
        for split_id, (offset, state, subtask) in before.items():  # a split that is no longer listed stays
            if split_id not in after:
                if self._aligner is not None:
                    self._aligner.planned(source.key, split_id, 0)
                silent = state < FINISHED and self._is_silent(source, split_id, now)
                after[split_id] = [offset, IDLE if silent else GONE if state >= FINISHED else state, subtask]
        return after, firsts

    def _queue(
        self, source: CoordinatedSource, splits: Sequence[SourceSplit], before: dict[str, Any]
    ) -> tuple[SplitQueue | None, dict[str, int]]:
        """The order of the splits, if they have one; otherwise how many records each may contribute to the batch."""
        open_splits = [split for split in splits if before.get(split.split_id, _NEW)[1] < FINISHED]
        if not source.enumerator.reads_in_order:
            return None, self._budgets(source, [split.split_id for split in open_splits])
        queue = SplitQueue(splits, before, source.vertex.parallelism)
        begun = [split.split_id for split in open_splits[: queue.tasks_with_work]]
        source.busy = set(begun)  # a task that has read a split to its end has the next one
        queue.begin(max(self._budgets(source, begun).values(), default=0))
        return queue, {}

    def _budgets(self, source: CoordinatedSource, open_splits: list[str]) -> dict[str, int]:
        """How many records each split may contribute to the next batch.

        Splits that had something to read when the last batch was planned share what is allowed, so that one of many is
        read as fast as an only one. The others together may take up to half of it, should they wake up: a batch is
        never larger than the limit.
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
        """The budget, without what would take a split too far ahead of its alignment group. A split with 0 waits."""
        return budget if self._aligner is None else self._aligner.allowance(source.key, split_id, budget)

    def _starting_offset(self, source: CoordinatedSource, split: SourceSplit, *, fresh: bool) -> Any:
        offset = source.enumerator.starting_offset(split, fresh=fresh)
        return source.source.initial_offset(split) if offset is None else offset

    def _with_forgotten(self, end: Offset) -> Offset:
        """A savepoint is all that another job will have: it must also name what the sources alone remember.

        Asked when the batch is carried out: it may have been planned before anybody wanted a savepoint.
        """
        positions = {key: dict(splits) for key, splits in end["s"].items()}
        for source in self.sources:
            for split_id in source.enumerator.remembered():
                positions.setdefault(source.key, {}).setdefault(split_id, [None, GONE, 0])
        return {**end, "s": positions}

    def _without_forgotten(self, source: CoordinatedSource, before: dict[str, Any]) -> dict[str, Any]:
        """Splits that were finished in a batch before this one need not be remembered here, if the source does it."""
        done = [split_id for split_id, position in before.items() if position[1] >= FINISHED]
        if not done or not source.enumerator.forget(done):
            return before
        for split_id in done:
            source.splits.pop(split_id, None)
            source.last_active.pop(split_id, None)
        return {split_id: position for split_id, position in before.items() if position[1] < FINISHED}

    def _advance_split(
        self, source: CoordinatedSource, split: SourceSplit, offset: Any, state: int, budget: int, now: int
    ) -> tuple[Any, int]:
        if not budget:  # it waits for others, and is not silent
            source.last_active[split.split_id] = now
            return offset, FINISHED if source.enumerator.is_finished(split, offset) else state
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
        return offset, state

    def _is_silent(self, source: CoordinatedSource, split_id: str, now: int) -> bool:
        """Whether a split has been without records for so long that time no longer waits for it."""
        since = source.last_active.setdefault(split_id, now)
        return source.idle_timeout is not None and now >= since + source.idle_timeout

    def _all_finished(self, positions: dict[str, dict[str, Any]], more: list[str]) -> bool:
        if any(not bounded for bounded in self._external.values()):
            return False
        return all(
            source.source.may_end
            and source.key not in more
            and all(position[1] >= FINISHED for position in positions[source.key].values())
            for source in self.sources
        )

    def next_wakeup(self, start: Offset) -> int | None:
        """When a batch may be due though no input came: timers of tasks, splits about to become idle."""
        times = [] if self._wakeup is None else [self._wakeup]
        for source in self.sources:
            if source.idle_timeout is not None:
                for split_id, (_, state, *_) in start["s"].get(source.key, {}).items():
                    if state == ACTIVE and split_id in source.last_active:
                        times.append(source.last_active[split_id] + source.idle_timeout)
        return min(times, default=None)

    # -- executing a plan ---------------------------------------------------------------------------------------

    def header(self, end: Offset) -> BatchHeader:
        """What every task must know about the batch that ends with this offset; however often it is asked, the same."""
        if self._header is None or self._header[0] != end:
            self._header = (end, self._new_header(end))
        return self._header[1]

    def _new_header(self, end: Offset) -> BatchHeader:
        splits: dict[int, dict[str, SplitStatus]] = {}
        finished: set[int] = set()
        for source in self.sources:
            positions = end["s"].get(source.key, {})
            aligned = end.get("w", {}).get(source.key, {})
            splits[source.vertex.id] = {
                name: SplitStatus(
                    reader,
                    None if source.idle_timeout is None else state == IDLE,
                    state >= FINISHED or end["end"],
                    bool(aligned.get(split_id, (0, 0))[1]),
                )
                for split_id, (_, state, subtask) in positions.items()
                if state != GONE
                for name, reader in _readers(source.vertex, split_id, subtask)
            }
            ended = source.source.may_end and source.key not in end.get("more", ())
            if end["end"] or (ended and all(position[1] >= FINISHED for position in positions.values())):
                finished.add(source.vertex.id)
        for vertex_id, bounded in self._external.items():
            done = end["end"] or bounded
            splits[vertex_id] = {"0": SplitStatus(0, finished=done)}
            if done:
                finished.add(vertex_id)
        savepoints, savepoint = self._savepoints, None
        if savepoints is not None and savepoints.pending:
            savepoint = savepoints.attach(self._with_forgotten(end))
        queries = [] if self._queries is None else self._queries.attach(end["n"])
        return BatchHeader(end["n"], end["t"], splits, frozenset(finished), end["end"], end["end"], savepoint, queries)

    @property
    def carried_out(self) -> Offset | None:
        """Where the batch leads that is carried out now, or was the last one."""
        return None if self._header is None else self._header[0]

    def works(self, start: Offset, end: Offset) -> list[SourceWork]:
        """What the source tasks have to read to get from one offset to the other."""
        self._planned_at = time.monotonic()
        works: list[SourceWork] = []
        for source in self.sources:
            before, after = start["s"].get(source.key, {}), end["s"].get(source.key, {})
            firsts = end.get("f", {}).get(source.key, {})
            ranges: dict[int, list[SplitRange]] = {}
            for split_id, (offset, _, subtask) in after.items():
                if offset is None:
                    continue  # recalled from a savepoint
                first = before[split_id][0] if split_id in before else firsts.get(split_id)
                if first == offset:
                    continue  # the source may not know it any more
                split = self._split(source, split_id)
                if first is None:  # written before offsets had firsts
                    first = source.source.initial_offset(split)
                if first != offset:
                    with source.asked(f"preparing split '{split_id}' from {shorten(first)} to {shorten(offset)}"):
                        prepared = source.enumerator.prepare(split, first, offset)
                    if source.vertex.spread:
                        readers = source.vertex.parallelism
                        for reader in range(readers):
                            part = prepared.part(reader, readers, first)
                            ranges.setdefault(reader, []).append(SplitRange(part, first, offset, readers))
                    else:
                        ranges.setdefault(subtask, []).append(SplitRange(prepared, first, offset))
            if end["end"]:  # the operators behind a source that had ended before want to be told, too
                for subtask in range(source.vertex.parallelism):
                    ranges.setdefault(subtask, [])
            works += [SourceWork(source.vertex.id, subtask, parts) for subtask, parts in sorted(ranges.items())]
        return works

    def seconds_since_plan(self) -> float:
        """How long ago the batch that runs now was planned."""
        return time.monotonic() - self._planned_at

    def _split(self, source: CoordinatedSource, split_id: str) -> SourceSplit:
        if split_id not in source.splits:
            for split in source.enumerator.discover_splits():
                source.splits[split.split_id] = split
        if split_id not in source.splits:
            source.splits[split_id] = source.enumerator.restore_split(split_id)
        return source.splits[split_id]

    def commit(self, end: Offset) -> None:
        """A batch was committed: tell the sources, and whoever has asked for state in it."""
        if self._queries is not None:
            self._queries.committed(end["n"])
        for source in self.sources:
            positions = end["s"].get(source.key, {})
            with source.asked("committing its offsets"):
                source.enumerator.commit({split_id: position[0] for split_id, position in positions.items()})


def _splits_up_to(state: int, positions: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """The splits of every source that have not come further than this state."""
    return {
        key: {split_id for split_id, position in splits.items() if position[1] <= state}
        for key, splits in positions.items()
    }


def _readers(vertex: JobVertex, split_id: str, subtask: int) -> list[tuple[str, int]]:
    """Under which names a split is read, and by which subtasks: each part has a clock of its own."""
    if not vertex.spread:
        return [(split_id, subtask)]
    return [(f"{split_id}/{reader}", reader) for reader in range(vertex.parallelism)]


def _with_subtasks(source: CoordinatedSource, positions: dict[str, Any]) -> dict[str, Any]:
    """As it is here: positions of a savepoint name no subtask, those of another parallelism perhaps one too high."""
    parallelism = source.vertex.parallelism
    if all(len(position) == 3 and position[2] < parallelism for position in positions.values()):
        return positions
    spread: dict[str, Any] = {}
    for split_id, (offset, state, *_) in positions.items():
        spread[split_id] = [offset, state, _subtask_for_new_split(source, split_id, spread)]
    return spread


def _subtask_for_new_split(source: CoordinatedSource, split_id: str, positions: dict[str, Any]) -> int:
    """The one that the source wants, or that with the fewest splits to read; a split stays where it is to its end."""
    wanted = source.enumerator.subtask_for(split_id, source.vertex.parallelism)
    if wanted is not None:
        return wanted
    loads = [0] * source.vertex.parallelism
    for _, state, subtask in positions.values():
        if state != GONE:
            loads[subtask] += 1
    return loads.index(min(loads))


def idle_timeout_of(vertex: JobVertex) -> int | None:
    """The idleness timeout of the watermark strategy in a source chain, if there is one."""
    timeouts = [getattr(chained.operator, "idle_timeout", None) for chained in vertex.operators]
    return min((timeout for timeout in timeouts if timeout is not None), default=None)
