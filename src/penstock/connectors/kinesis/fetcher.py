"""Reads ahead in a shard, in a thread on the driver.

Kinesis has no call that returns the end of a shard; the only way to find it is to read. So the driver reads, and the
records travel to the tasks with the plan of their batch. If a new driver repeats a batch, its tasks read from Kinesis.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, NamedTuple

from penstock.connectors.kinesis.client import LOG, KinesisError, code_of, is_away, is_busy, reason
from penstock.connectors.kinesis.settings import ConsumerSettings
from penstock.connectors.kinesis.shards import (
    SHARD_END,
    Record,
    ShardSplit,
    after,
    iterator_arguments,
    record_of,
    stream_argument,
)

__all__ = ["ShardCursor", "ShardFetcher"]

_CAPACITY_BYTES = 8 << 20
_JOIN_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.3
_LONGEST_PAUSE_SECONDS = 5.0


class ShardCursor:
    """Requests the records of a shard, one response at a time."""

    def __init__(self, client: Any, split: ShardSplit, offset: str, limit: int) -> None:
        self._client = client
        self._split = split
        self._arn = {"StreamARN": split.stream} if split.stream.startswith("arn:") else {}
        self._limit = limit
        self._iterator: str | None = None
        self.offset = offset
        """The position after all records that were read."""
        self.caught_up = False
        """Whether the last request returned nothing more."""

    def next(self) -> list[Record]:
        """Return the records that are available now, or raise boto3's error."""
        if self.offset == SHARD_END:
            return []
        if self._iterator is None:
            arguments = {**stream_argument(self._split.stream), "ShardId": self._split.shard_id}
            answer = self._client.get_shard_iterator(**arguments, **iterator_arguments(self.offset))
            self._iterator = answer["ShardIterator"]
        try:
            answer = self._client.get_records(ShardIterator=self._iterator, Limit=self._limit, **self._arn)
        except Exception as error:
            if code_of(error) == "ExpiredIteratorException":  # five minutes without a call
                self._iterator = None
                return []
            raise
        records = [record_of(record) for record in answer["Records"]]
        self.caught_up = answer.get("MillisBehindLatest") == 0
        self._iterator = answer.get("NextShardIterator")
        if self._iterator is None:
            self.offset = SHARD_END
        elif records:
            self.offset = after(records[-1][0])
        return records


class Patience:
    """The delay after a failure, and the limit of retries."""

    def __init__(self, label: str, max_retries: int) -> None:
        self._label = label
        self._max_retries = max_retries
        self._failures = 0

    def success(self) -> None:
        """Reset the retries after a success."""
        self._failures = 0

    def pause_after(self, error: Exception) -> float:
        """Return the seconds to wait, or raise an error if a retry cannot help. Throttling is retried."""
        self._failures += 1
        busy = is_busy(error)
        if not busy and (not is_away(error) or self._failures > self._max_retries):
            raise KinesisError(f"cannot read {self._label}: {reason(error)}") from error
        LOG.warning("reading %s: %s", self._label, reason(error))
        return float(min(_FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10), _LONGEST_PAUSE_SECONDS))


class Planned(NamedTuple):
    """A planned range of a shard, and its records."""

    start: str
    end: str
    records: list[Record]


class ShardFetcher:
    """Records that were read ahead in one shard, including planned ones that are not committed yet."""

    def __init__(self, client: Any, split: ShardSplit, offset: str, settings: ConsumerSettings) -> None:
        self._cursor = ShardCursor(client, split, offset, settings.max_records)
        self._settings = settings
        self._label = f"shard {split.shard_id} of stream '{split.stream}'"
        self._changed = threading.Condition()
        self._stopped = False
        self._failure: KinesisError | None = None
        self._bytes = 0
        self._complete = False
        self.waiting: deque[Record] = deque()
        """Records that were read and are not planned yet. Only the thread appends to it."""
        self.position = offset
        """The position after all planned records."""
        self.planned: list[Planned] = []
        self._thread = threading.Thread(target=self._run, name=f"kinesis-{split.shard_id}", daemon=True)
        self._thread.start()

    @property
    def caught_up(self) -> bool:
        """Whether no further records are known."""
        return self._complete or self._cursor.caught_up

    def plan(self, count: int) -> str:
        """Plan up to ``count`` records. Return the offset after them."""
        if self._failure is not None:
            raise self._failure
        complete = self._complete  # read it before the records: it is set after the last ones arrive
        records = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        if complete and not self.waiting:
            end = SHARD_END
        elif records:
            end = after(records[-1][0])
        else:
            return self.position
        self.planned.append(Planned(self.position, end, records))
        self.position = end
        return end

    def records_between(self, start: str, end: str) -> list[Record] | None:
        """Return the records of one or more consecutive plans, if they are still in memory."""
        found: list[Record] = []
        for planned in self.planned:
            if planned.start == start:
                found += planned.records
                start = planned.end
                if start == end:
                    return found
        return None

    def commit(self, offset: str) -> None:
        """Drop records before the offset."""
        ends = [planned.end for planned in self.planned]
        if offset not in ends:
            return
        done = self.planned[: ends.index(offset) + 1]
        del self.planned[: len(done)]
        with self._changed:
            self._bytes -= sum(_size(record) for planned in done for record in planned.records)
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop reading. The thread ends after its current call."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait briefly for the thread, which cannot be interrupted while it waits for a response."""
        self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        patience = Patience(self._label, self._settings.max_retries)
        try:
            while self._wait_for_room():
                try:
                    records = self._cursor.next()
                except Exception as error:
                    self._pause(patience.pause_after(error))
                    continue
                patience.success()
                self._add(records)
                if self._cursor.offset == SHARD_END:
                    self._complete = True
                    return
                self._pause(self._settings.interval_ms / 1000)
        except KinesisError as error:
            self._failure = error

    def _add(self, records: list[Record]) -> None:
        with self._changed:
            self._bytes += sum(_size(record) for record in records)
        self.waiting.extend(records)

    def _wait_for_room(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._bytes < _CAPACITY_BYTES)
            return not self._stopped

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, seconds)


def _size(record: Record) -> int:
    return len(record[3]) + 100
