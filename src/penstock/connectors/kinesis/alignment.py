"""Aligns shards in event time: none is read further ahead of the slowest one than the lookahead."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.watermark import MIN_WATERMARK
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.connectors.kinesis.client import LOG
from penstock.connectors.kinesis.deserialization import KinesisDeserializationSchema, decode_records
from penstock.connectors.kinesis.fetcher import ShardFetcher
from penstock.connectors.kinesis.shards import Record, ShardSplit

__all__ = ["Alignment", "WatermarkTracker"]


@dataclass(frozen=True)
class WatermarkTracker:
    """Aligns all sources whose trackers have the same name, shard by shard.

    >>> WatermarkTracker.job_manager_watermark_tracker("readings").aggregate_name
    'readings'
    """

    aggregate_name: str
    log_accumulator_interval_millis: int = -1

    def __post_init__(self) -> None:
        if type(self.aggregate_name) is not str or not self.aggregate_name:
            raise InvalidProgramError(f"a watermark tracker needs a name, got {shorten(self.aggregate_name)}")

    @staticmethod
    def job_manager_watermark_tracker(
        aggregate_name: str, log_accumulator_interval_millis: int = -1
    ) -> WatermarkTracker:
        """Create a tracker on the driver. It logs the position of each shard if the interval is above 0."""
        return WatermarkTracker(aggregate_name, log_accumulator_interval_millis)


@dataclass
class _Shard:
    """The event time of a shard."""

    split: ShardSplit
    fetcher: ShardFetcher
    times: dict[str, int] = field(default_factory=dict)
    """The times of the waiting records by sequence number, as far as they were read."""
    reached: int = MIN_WATERMARK


class _Group:
    """All shards of the sources with the same tracker name."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.members = 0
        self.shards: dict[tuple[int, str], tuple[Alignment, _Shard]] = {}
        self.logged_at = time.monotonic()


_GROUPS: dict[str, _Group] = {}
_GROUPS_LOCK = threading.Lock()


class Alignment:
    """The membership of a source in a group. It decides how many waiting records may be read now."""

    def __init__(
        self,
        tracker: WatermarkTracker,
        lookahead_ms: int,
        schema: KinesisDeserializationSchema,
        strategy: WatermarkStrategy,
    ) -> None:
        self._tracker = tracker
        self._lookahead = lookahead_ms
        self._schema = schema
        self._assigner = strategy.timestamp_assigner
        self._group = _Group()

    def join(self) -> None:
        """Join the group when the source starts."""
        self._schema.open()
        with _GROUPS_LOCK:
            self._group = _GROUPS.setdefault(self._tracker.aggregate_name, _Group())
            self._group.members += 1

    def leave(self) -> None:
        """Leave the group when the source ends. Its shards no longer hold back others."""
        with _GROUPS_LOCK, self._group.lock:
            self._group.members -= 1
            for key in [key for key in self._group.shards if key[0] == id(self)]:
                del self._group.shards[key]
            if self._group.members <= 0 and _GROUPS.get(self._tracker.aggregate_name) is self._group:
                del _GROUPS[self._tracker.aggregate_name]

    def add(self, split: ShardSplit, fetcher: ShardFetcher) -> None:
        """Add a shard that is read from now on."""
        with self._group.lock:
            self._group.shards[id(self), split.split_id] = (self, _Shard(split, fetcher))

    def remove(self, split_id: str) -> None:
        """Remove a shard that is read to its end."""
        with self._group.lock:
            self._group.shards.pop((id(self), split_id), None)

    def allowed(self, split: ShardSplit, fetcher: ShardFetcher, max_records: int) -> int:
        """Return how many of the waiting records may be read without leaving the slowest shard behind."""
        with self._group.lock:
            _, shard = self._group.shards[id(self), split.split_id]
            positions = [alignment.position_of(other) for alignment, other in self._group.shards.values()]
            known = [position for position in positions if position is not None]
            limit = min(known, default=MIN_WATERMARK) + self._lookahead
            self._log(limit)
            count = 0
            for record in list(islice(fetcher.waiting, max_records)):
                at = self._time_of(shard, record)
                if at > limit:
                    break
                shard.reached = max(shard.reached, at)
                shard.times.pop(record[0], None)
                count += 1
            return count

    def position_of(self, shard: _Shard) -> int | None:
        """Return the time of the next record, or None, so that a shard without one does not hold back others."""
        if shard.fetcher.waiting:
            return self._time_of(shard, shard.fetcher.waiting[0])
        return None if shard.fetcher.caught_up else shard.reached

    def _time_of(self, shard: _Shard, record: Record) -> int:
        at = shard.times.get(record[0])
        if at is None:
            values, _ = decode_records(self._schema, shard.split.stream, shard.split.shard_id, [record])
            at = max((self._extract(value, record[1]) for value in values), default=record[1])
            shard.times[record[0]] = at
        return at

    def _extract(self, value: Any, arrival: int) -> int:
        assigner: TimestampAssigner | None = self._assigner
        return arrival if assigner is None else assigner.extract_timestamp(value, arrival)

    def _log(self, limit: int) -> None:
        interval = self._tracker.log_accumulator_interval_millis / 1000
        if interval > 0 and time.monotonic() - self._group.logged_at >= interval:
            self._group.logged_at = time.monotonic()
            reached = {split_id: shard.reached for (_, split_id), (_, shard) in self._group.shards.items()}
            LOG.info("%s: shards may be read up to %d, and are at %s", self._tracker.aggregate_name, limit, reached)
