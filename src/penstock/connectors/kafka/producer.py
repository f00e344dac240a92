"""Sends chunks of records to a producer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

from penstock.connectors.kafka.client import LOG, KafkaError, new_producer, reason
from penstock.connectors.kafka.serialization import RecordChunk

_ANY_PARTITION = -1
_NOW = 0
_WAIT_SECONDS = 0.05

_DEFAULTS = {
    "enable.idempotence": True,  # retries keep the order and write nothing twice
    "partitioner": "murmur2_random",  # as in Java: a key goes to the same partition from either client
    "linger.ms": 5,  # code that waits for delivery calls flush(), which does not linger
    "queue.buffering.max.messages": 1_000_000,
}


class RecordProducer:
    """A confluent-kafka producer that detects failed deliveries.

    :param only_commits: do not detect them: all records are in transactions, whose commits detect failures
    :param only_log_failures: log failed deliveries instead of raising an error
    """

    def __init__(
        self, settings: Mapping[str, Any], *, only_commits: bool = False, only_log_failures: bool = False
    ) -> None:
        self._failure: str | None = None
        self._only_log_failures = only_log_failures
        # For failures only: a callback for each delivered record would take half of the time.
        reports: dict[str, Any] = {"delivery.report.only.error": True}
        if not only_commits:
            reports["on_delivery"] = self._not_delivered
        self.client = new_producer({**_DEFAULTS, **settings, **reports})

    def _not_delivered(self, error: Any, message: Any) -> None:
        if error is None:
            return
        problem = f"a record for topic {message.topic()} was not delivered: {reason(error)}"
        if self._only_log_failures:
            LOG.warning("%s", problem)
        elif self._failure is None:
            self._failure = problem

    def produce(self, chunk: RecordChunk) -> None:
        """Queue records. Wait while the queue is full."""
        topics = repeat(chunk.topics) if isinstance(chunk.topics, str) else chunk.topics
        stamps = repeat(_NOW) if chunk.timestamps is None else _stamps(chunk.timestamps)
        produce = self.client.produce
        if chunk.partitions is None and chunk.headers is None:
            for topic, value, key, at in zip(topics, chunk.values, chunk.keys or repeat(None), stamps, strict=False):
                try:
                    produce(topic, value, key, _ANY_PARTITION, None, None, at)  # positional arguments: a hot call
                except BufferError:
                    self._insist(topic, value, key, _ANY_PARTITION, None, None, at)
        else:
            given = (chunk.keys, chunk.partitions, chunk.headers)
            rows = zip(topics, chunk.values, stamps, *(column or repeat(None) for column in given), strict=False)
            for topic, value, at, key, partition, headers in rows:
                where = _ANY_PARTITION if partition is None else partition
                named = list(headers.items() if isinstance(headers, Mapping) else headers or ())
                self._insist(topic, value, key, where, None, None, at, named)
        self.client.poll(0)

    def _insist(self, *record: Any) -> None:
        while True:
            try:
                self.client.produce(*record)
            except BufferError:
                self.client.poll(_WAIT_SECONDS)
            else:
                return

    def flush(self) -> None:
        """Wait until all records are acknowledged."""
        self.client.flush()
        self.check()

    def check(self) -> None:
        """Raise an error if a record was not delivered."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise KafkaError(failure)


def _stamps(timestamps: list[Any]) -> list[int]:
    """Convert timestamps for the client, in which 0 means the current time.

    >>> _stamps([5, None, -1]), _stamps([5, 6])
    ([5, 0, 0], [5, 6])
    """
    try:
        if min(timestamps, default=_NOW) > _NOW:
            return timestamps
    except TypeError:  # a record without one
        pass
    return [timestamp if timestamp is not None and timestamp > 0 else _NOW for timestamp in timestamps]
