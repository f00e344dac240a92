"""Watermark alignment: no split of a group is read further ahead of the slowest split than its drift allows.

The driver aligns splits when it plans a batch (rule 3.6), like the source coordinator in Flink. It knows each split's
watermark from the reports of previous batches, and stores it in the offset. What a batch reads is decided before it
runs, so the number of records is derived from how many records made up a millisecond of event time so far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from math import ceil, inf

from penstock.common.watermark import MIN_WATERMARK
from penstock.common.watermark_strategy import WatermarkAlignment
from penstock.runtime.exchange.frames import SplitProgress, TaskReport
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.source.batch_sizer import MIN_BATCH_RECORDS

Kept = dict[str, dict[str, list[int]]]
"""Source -> split -> [watermark, whether the split is held back], as stored in offsets."""

_GROWTH = 2


@dataclass(slots=True)
class _SplitClock:
    """The event time of a split, and its pace."""

    watermark: int | None = None
    idle: bool = False  # reported by its generator; the driver detects other idleness itself
    paused: bool = False
    planned: int = 0  # records in the last planned batch
    records: int = 0  # records in the last range that was used to measure the pace
    density: float | None = None  # records per millisecond of event time in that range

    def observe(self, watermark: int | None, *, idle: bool) -> None:
        """Update the watermark after a batch."""
        before, self.idle = self.watermark, idle
        if watermark is not None:
            self.watermark = watermark if before is None else max(before, watermark)
        if self.planned and before is not None and self.watermark is not None:
            advance = self.watermark - before
            self.density = self.planned / advance if advance else inf
            self.records = self.planned


@dataclass(slots=True)
class _AlignedSource:
    key: str
    alignment: WatermarkAlignment
    declares_idleness: bool
    spread: bool
    clocks: dict[str, _SplitClock] = field(default_factory=dict)


_Member = tuple[str, str]


class _Group:
    """The sources with the same group name."""

    def __init__(self) -> None:
        self.sources: list[_AlignedSource] = []
        self._lowest: list[tuple[int, _Member]] = []
        self._least = 1
        self._silent: set[_Member] = set()
        self._asked_in_vain: set[_Member] = set()
        self._stuck_since: int | None = None
        self._held = self._moved = False

    def begin(self, active: Mapping[str, Collection[str]], now: int) -> None:
        """Find the slowest and second slowest split of the planned batch."""
        released = self._silent if self._is_released(now) else ()
        self._lowest = nsmallest(
            2,
            (
                (clock.watermark, (source.key, split_id))
                for source in self.sources
                for split_id in active.get(source.key, ())
                if (clock := source.clocks.get(split_id)) is not None
                and clock.watermark is not None
                and not clock.idle
                and (source.key, split_id) not in released
            ),
        )
        splits = sum(len(active.get(source.key, ())) for source in self.sources)
        self._least = max(1, MIN_BATCH_RECORDS // max(1, splits))
        self._asked_in_vain, self._held, self._moved = set(), False, False

    def _is_released(self, now: int) -> bool:
        interval = max(source.alignment.update_interval for source in self.sources)
        return self._stuck_since is not None and now - self._stuck_since >= interval

    def allowance(self, source: _AlignedSource, split_id: str, share: int) -> int:
        """Return how many of the available records a split may read, or 0 if it must wait."""
        clock = source.clocks.setdefault(split_id, _SplitClock())
        limit = next((low for low, member in self._lowest if member != (source.key, split_id)), None)
        room = inf
        if limit is not None and clock.watermark is not None:
            room = limit + source.alignment.max_drift - clock.watermark
        clock.planned = 0
        clock.paused = room < 0
        if clock.paused:
            self._held = True
            return 0
        # A range is at most twice as long as the previous one, because the density may change.
        wanted = max(self._least, _GROWTH * clock.records)
        if clock.density is not None and room < inf and clock.density < inf:
            wanted = min(wanted, max(self._least, ceil((room + 1) * clock.density)))
        return min(share, wanted)

    def planned(self, source: _AlignedSource, split_id: str, records: int) -> None:
        """Record how many records of a split the plan reads."""
        if records:
            self._moved = True
            source.clocks[split_id].planned = records
        elif not source.declares_idleness:
            self._asked_in_vain.add((source.key, split_id))

    def end(self, now: int) -> None:
        """Finish the plan. Waiting splits must not wait forever for splits without records."""
        self._silent = self._asked_in_vain
        if self._moved or not self._held:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now


class WatermarkAligner:
    """All alignment groups of a job.

    A split counts in its group as long as it is active and has a watermark. Splits that are idle, finished, or without
    a watermark do not hold others back. If only waiting splits have something to read, then after an update interval
    the splits without records are ignored for one batch, unless they will become idle. So no split waits forever.
    """

    def __init__(self, vertices: Iterable[JobVertex]) -> None:
        self._groups: dict[str, _Group] = {}
        self._sources: dict[str, tuple[_Group, _AlignedSource]] = {}
        self._by_vertex: dict[int, _AlignedSource] = {}
        self._restored = False
        for vertex in vertices:
            if vertex.alignment is not None:
                source = _AlignedSource(
                    vertex.operators[0].operator_id, vertex.alignment, vertex.declares_idleness, vertex.spread
                )
                group = self._groups.setdefault(vertex.alignment.group, _Group())
                group.sources.append(source)
                self._sources[source.key] = (group, source)
                self._by_vertex[vertex.id] = source

    @property
    def is_needed(self) -> bool:
        """Whether any source is aligned."""
        return bool(self._sources)

    # -- planning -----------------------------------------------------------------------------------------------

    def begin(self, kept: Kept, active: Mapping[str, Collection[str]], now: int) -> None:
        """Begin a plan. `kept` is from the previous offset, `active` has its splits that are not idle or finished."""
        if not self._restored:
            self._restored = True
            self._restore(kept)
        for group in self._groups.values():
            group.begin(active, now)

    def _restore(self, kept: Kept) -> None:
        """Restore the values of the offset, which are from its planning, unless newer reports have come since."""
        for key, splits in kept.items():
            if key in self._sources:
                clocks = self._sources[key][1].clocks
                for split_id, (watermark, _) in splits.items():
                    clock = clocks.setdefault(split_id, _SplitClock())
                    clock.watermark = watermark if clock.watermark is None else max(watermark, clock.watermark)

    def allowance(self, key: str, split_id: str, share: int) -> int:
        """Return how many of `share` records a split may read, or 0 if it is too far ahead."""
        if key not in self._sources:
            return share
        group, source = self._sources[key]
        return group.allowance(source, split_id, share)

    def planned(self, key: str, split_id: str, records: int) -> None:
        """Record how many records are planned for a split that need not wait. 0 if it has none."""
        if key in self._sources:
            group, source = self._sources[key]
            group.planned(source, split_id, records)

    def end(self, splits: Mapping[str, Collection[str]], now: int) -> Kept:
        """Finish the plan. Return the state of unfinished splits that a restart needs."""
        for group in self._groups.values():
            group.end(now)
        kept: Kept = {}
        for key, (_, source) in self._sources.items():
            open_splits = splits.get(key, ())
            source.clocks = {split_id: clock for split_id, clock in source.clocks.items() if split_id in open_splits}
            kept[key] = {
                split_id: [clock.watermark, int(clock.paused)]
                for split_id, clock in source.clocks.items()
                if clock.watermark is not None
            }
        return kept

    # -- reports of batches -------------------------------------------------------------------------------------

    def observe(self, reports: Iterable[TaskReport]) -> None:
        """Update the progress of splits after a committed batch."""
        found: dict[_Member, SplitProgress] = {}
        for report in reports:
            for (vertex_id, name), progress in report.splits.items():
                source = self._by_vertex.get(vertex_id)
                if source is None:
                    continue
                member = (source.key, name.rpartition("/")[0] if source.spread else name)
                other = found.setdefault(member, progress)
                if other.watermark == MIN_WATERMARK or MIN_WATERMARK < progress.watermark < other.watermark:
                    found[member] = progress  # several tasks have read parts of the split: the slowest one counts
        for (key, split_id), progress in found.items():
            watermark = None if progress.watermark == MIN_WATERMARK else progress.watermark
            self._sources[key][1].clocks.setdefault(split_id, _SplitClock()).observe(watermark, idle=progress.idle)
