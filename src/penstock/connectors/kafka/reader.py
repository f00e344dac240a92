"""Reads ranges of partitions in a task.

One consumer serves all partitions of a task and stays open between batches, so that the client fetches ahead while the
task computes. Records of other partitions than the requested one wait in memory, in limited numbers.

Not every offset has a record: transactions leave markers, and aborted records and compaction leave gaps. A range is
complete when a later record arrives, or when the client reports the end of the partition.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.connectors.kafka.client import LOG, KafkaError, confluent_kafka, new_consumer, reason
from penstock.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from penstock.connectors.kafka.splits import KafkaPartitionSplit, position_of
from penstock.core.functions import RuntimeContext
from penstock.core.source import SourceReader, SourceSplit

_CHUNK = 10_000
_MAX_WAITING = 100_000
_STALLED_SECONDS = 120.0
_POLL_SECONDS = 1.0

_Name = tuple[str, int]


class _Partition:
    """The messages of one partition that the consumer delivered."""

    __slots__ = ("paused", "position", "reached", "waiting", "waiting_records")

    def __init__(self, offset: int) -> None:
        self.position = offset
        """All messages before it were passed on."""
        self.reached = offset
        """All messages before it were delivered."""
        self.waiting: deque[list[Any]] = deque()
        self.waiting_records = 0
        self.paused = False

    def add(self, messages: list[Any]) -> None:
        """Add delivered messages, in order."""
        if messages[0].offset() < self.reached:  # from an older fetch, before the partition was moved forward
            messages = messages[bisect_left(messages, self.reached, key=_offset) :]
            if not messages:
                return
        self.waiting.append(messages)
        self.waiting_records += len(messages)
        self.reached = messages[-1].offset() + 1

    def take(self, end: int) -> list[Any]:
        """Return the waiting messages before an offset."""
        if not self.waiting:
            return []
        messages = self.waiting.popleft()
        if messages[-1].offset() >= end:
            cut = bisect_left(messages, end, key=_offset)
            self.waiting.appendleft(messages[cut:])
            messages = messages[:cut]
        self.waiting_records -= len(messages)
        return messages

    def skip_to(self, offset: int) -> None:
        """Drop messages before an offset."""
        while self.take(offset):
            pass
        self.position = offset


class KafkaReader(SourceReader):
    """The reader of one task."""

    def __init__(self, settings: Mapping[str, Any], deserializer: KafkaRecordDeserializationSchema) -> None:
        self._settings = settings
        self._deserializer = deserializer
        self._consumer: Any = None
        self._partitions: dict[_Name, _Partition] = {}

    def open(self, runtime_context: RuntimeContext) -> None:
        self._deserializer.open()

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
            self._partitions.clear()

    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        assert isinstance(split, KafkaPartitionSplit)
        end = position_of(end_offset)
        if end < position_of(start_offset):
            return  # the step to the beginning of a recreated topic
        partition = self._position((split.topic, split.partition), position_of(start_offset))
        decode = self._deserializer.deserialize_messages
        deadline = time.monotonic() + _STALLED_SECONDS
        while True:
            messages = partition.take(end)
            if messages:
                partition.position = messages[-1].offset() + 1
                yield decode(messages)
                deadline = time.monotonic() + _STALLED_SECONDS
            elif partition.reached >= end:
                break
            elif not self._poll(partition) and time.monotonic() > deadline:
                raise KafkaError(
                    f"no data from partition {split.split_id} for {_STALLED_SECONDS:.0f} s, though it has records "
                    f"from {partition.position} up to {end}: are its brokers reachable from the tasks?"
                )
        partition.position = end

    # -- the consumer -------------------------------------------------------------------------------------------

    def _position(self, name: _Name, offset: int) -> _Partition:
        """Return the partition, ready to be read from an offset."""
        known = self._partitions.get(name)
        if known is not None and known.position <= offset <= known.reached:
            known.skip_to(offset)
            self._resume(name, known)
            return known
        topic_partition = confluent_kafka().TopicPartition(*name, offset)
        if known is not None and offset < known.position:
            # When going back, messages still in flight would look like those after a gap, so start a new consumer.
            self.close()
            known = None
        if self._consumer is None:
            self._consumer = new_consumer(self._settings)
        if known is not None:
            self._consumer.incremental_unassign([topic_partition])
        self._consumer.incremental_assign([topic_partition])
        partition = self._partitions[name] = _Partition(offset)
        return partition

    def _poll(self, wanted: _Partition) -> bool:
        """Take the messages that the client has fetched, after a short wait. Return whether there were any."""
        first = self._consumer.poll(_POLL_SECONDS)
        if first is None:
            return False
        messages = [first, *self._consumer.consume(_CHUNK, 0)]
        failed = [message for message in messages if message.error() is not None]
        if failed:
            messages = [message for message in messages if message.error() is None]
        if len(self._partitions) == 1:
            if messages:
                wanted.add(messages)
        else:
            for name, group in itertools.groupby(messages, _name):
                partition = self._partitions.get(name)
                if partition is not None:
                    partition.add(list(group))
                    if partition is not wanted and partition.waiting_records > _MAX_WAITING:
                        self._pause(name, partition)
        for message in failed:  # last, because the end of a partition comes after its records
            self._notice(message)
        return True

    def _notice(self, message: Any) -> None:
        """Handle the end of a partition, or a problem."""
        package = confluent_kafka()
        error = message.error()
        if error.code() == package.KafkaError._PARTITION_EOF:
            partition = self._partitions.get(_name(message))
            if partition is not None:
                partition.reached = max(partition.reached, message.offset())
            return
        if error.code() in (package.KafkaError._AUTO_OFFSET_RESET, package.KafkaError.OFFSET_OUT_OF_RANGE):
            raise KafkaError(
                f"records of partition {message.topic()}-{message.partition()} were removed before they were read "
                f"({reason(error)}), by the topic's retention: set the property auto.offset.reset to "
                "'earliest' to continue with the remaining records"
            )
        if error.fatal() or not (error.retriable() or error.code() < 0):
            raise KafkaError(f"reading from Kafka failed: {reason(error)}")
        LOG.warning("reading from Kafka: %s", reason(error))  # the client retries by itself

    def _pause(self, name: _Name, partition: _Partition) -> None:
        if not partition.paused:
            partition.paused = True
            self._consumer.pause([confluent_kafka().TopicPartition(*name)])

    def _resume(self, name: _Name, partition: _Partition) -> None:
        if partition.paused:
            partition.paused = False
            self._consumer.resume([confluent_kafka().TopicPartition(*name)])


def _offset(message: Any) -> int:
    offset: int = message.offset()
    return offset


def _name(message: Any) -> _Name:
    return message.topic(), message.partition()
