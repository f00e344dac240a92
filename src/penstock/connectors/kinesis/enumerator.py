"""The driver side of the Kinesis source: lists the shards, and how far each was read ahead.

A shard that results from a split or a merge is listed when its parents are read to their end, so records of a key stay
in order. The checkpoint contains the start of a job with the position LATEST or AT_TIMESTAMP, as a split that is
finished at once. Shards that are found later are read from that time on; for new ones that is their beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.connectors.kinesis.alignment import Alignment
from penstock.connectors.kinesis.client import LOG, KinesisError, is_away, is_busy, new_client, reason
from penstock.connectors.kinesis.fetcher import ShardFetcher
from penstock.connectors.kinesis.settings import ConsumerSettings
from penstock.connectors.kinesis.shards import (
    SHARD_END,
    TRIM_HORIZON,
    KinesisShard,
    KinesisShardAssigner,
    ShardSplit,
    at_timestamp,
    stream_argument,
)
from penstock.core.source import SourceSplit, SplitEnumerator

_SINCE = "since:"


class KinesisEnumerator(SplitEnumerator):
    """Lists shards and reads them ahead."""

    def __init__(
        self,
        streams: Sequence[str],
        properties: Mapping[str, str],
        settings: ConsumerSettings,
        assigner: KinesisShardAssigner,
        alignment: Alignment | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._streams = streams
        self._properties = properties
        self._settings = settings
        self._assigner = assigner
        self._alignment = alignment
        self._clock = clock
        self._client: Any = None
        self._shards: dict[str, KinesisShard] = {}
        self._listed: dict[str, SourceSplit] = {}
        self._finished: set[str] = set()
        self._unfinished: set[str] = set()  # from the checkpoint, until it is known whether they still exist
        self._lost: set[str] = set()
        self._fetchers: dict[str, ShardFetcher] = {}
        self._since: int | None = None
        self._restored = False
        self._next_discovery = 0.0

    def start(self) -> None:
        self._client = new_client("kinesis", self._properties)
        if self._alignment is not None:
            self._alignment.join()

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()
        for fetcher in self._fetchers.values():
            fetcher.join()
        if self._alignment is not None:
            self._alignment.leave()
        if self._client is not None:
            self._client.close()
            self._client = None

    # -- shards -------------------------------------------------------------------------------------------------

    def restore(self, finished: Mapping[str, bool]) -> None:
        self._restored = True
        for split_id, done in finished.items():
            if split_id.startswith(_SINCE):
                self._since = int(split_id.removeprefix(_SINCE))
            elif done:
                self._finished.add(split_id)
            else:
                self._unfinished.add(split_id)

    def discover_splits(self) -> Sequence[SourceSplit]:
        now = time.monotonic()
        if now >= self._next_discovery:
            self._discover(now)
        return list(self._listed.values())

    def _discover(self, now: float) -> None:
        first = not self._shards
        if first and not self._restored and self._settings.position != TRIM_HORIZON:
            given = self._settings.timestamp_ms
            self._since = round(self._clock() * 1000) if given is None else given
        try:
            shards = [shard for stream in self._streams for shard in self._list_shards(stream)]
        except Exception as error:
            if first or not (is_busy(error) or is_away(error)):
                raise KinesisError(f"cannot list the shards of {', '.join(self._streams)}: {reason(error)}") from error
            LOG.warning("cannot look for new shards: %s", reason(error))
            return
        finally:
            self._next_discovery = now + self._settings.discovery_ms / 1000
        self._shards = {shard.split_id: shard for shard in shards}
        for split_id in sorted(self._unfinished - self._shards.keys()):
            LOG.warning("shard %s no longer exists: retention removed its records after the checkpoint", split_id)
            self._lost.add(split_id)
            self._listed[split_id] = ShardSplit.of(split_id)
        self._unfinished.clear()
        for shard in shards:
            if shard.split_id not in self._listed and self._may_be_read(shard):
                self._listed[shard.split_id] = ShardSplit.of(shard.split_id)
        if self._since is not None:
            self._listed.setdefault(f"{_SINCE}{self._since}", SourceSplit(f"{_SINCE}{self._since}"))

    def _list_shards(self, stream: str) -> list[KinesisShard]:
        answer = self._client.list_shards(**stream_argument(stream))
        found = list(answer["Shards"])
        while answer.get("NextToken"):
            answer = self._client.list_shards(NextToken=answer["NextToken"])
            found += answer["Shards"]
        return [KinesisShard.of(stream, shard) for shard in found]

    def _may_be_read(self, shard: KinesisShard) -> bool:
        return all(parent in self._finished or parent not in self._shards for parent in shard.parents)

    def subtask_for(self, split_id: str, parallelism: int) -> int | None:
        if not self._shards:
            self._discover(time.monotonic())
        shard = self._shards.get(split_id)
        subtask = None if shard is None else self._assigner.assign(shard, parallelism)
        return None if subtask is None else subtask % parallelism

    def restore_split(self, split_id: str) -> SourceSplit:
        return ShardSplit.of(split_id)

    # -- positions ----------------------------------------------------------------------------------------------

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any:
        if not isinstance(split, ShardSplit):
            return SHARD_END
        return TRIM_HORIZON if self._since is None else at_timestamp(self._since)

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        if not isinstance(split, ShardSplit) or start_offset == SHARD_END:
            return start_offset
        if split.split_id in self._lost:
            return SHARD_END
        fetcher = self._fetcher(split, start_offset)
        if fetcher.position != start_offset:  # planned before, but not committed
            return next(planned.end for planned in fetcher.planned if planned.start == start_offset)
        if self._alignment is not None:
            max_records = self._alignment.allowed(split, fetcher, max_records)
        return fetcher.plan(max_records)

    def _fetcher(self, split: ShardSplit, offset: str) -> ShardFetcher:
        fetcher = self._fetchers.get(split.split_id)
        if fetcher is not None and fetcher.position != offset:
            if any(planned.start == offset for planned in fetcher.planned):
                return fetcher
            fetcher.stop()
            fetcher = None
        if fetcher is None:
            fetcher = self._fetchers[split.split_id] = ShardFetcher(self._client, split, offset, self._settings)
            if self._alignment is not None:
                self._alignment.add(split, fetcher)
        return fetcher

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        if offset != SHARD_END:
            return False
        if isinstance(split, ShardSplit) and split.split_id not in self._finished:
            self._finished.add(split.split_id)
            self._next_discovery = 0.0  # its children may be read now
        return True

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        if not isinstance(split, ShardSplit):
            return split
        if split.split_id in self._lost:
            return replace(split, records=[])
        fetcher = self._fetchers.get(split.split_id)
        records = None if fetcher is None else fetcher.records_between(start_offset, end_offset)
        return replace(split, records=records)

    def commit(self, offsets: Mapping[str, Any]) -> None:
        for split_id, offset in offsets.items():
            fetcher = self._fetchers.get(split_id)
            if fetcher is not None:
                fetcher.commit(offset)
                if offset == SHARD_END:
                    fetcher.stop()
                    del self._fetchers[split_id]
                    if self._alignment is not None:
                        self._alignment.remove(split_id)
