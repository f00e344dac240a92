"""Exactly-once: the driver writes all records of a checkpoint, of all tasks, in one Kafka transaction.

In Flink, each task writes to its own transaction. The transaction stays open until the checkpoint completes; then any
surviving process commits it under the producer's id and epoch. confluent-kafka cannot take over the transaction of
another producer, and a transaction that outlives its producer is lost when it times out. Here, a checkpoint is a
micro-batch whose end is known at once. This allows a simpler way without these limits:

* Tasks serialize records and return them with their report. They do not connect to Kafka.
* When all tasks of the micro-batch have succeeded, the driver writes all records in **one** transaction, together with
  the number of the checkpoint, as the offset of a consumer group created for this purpose
  (``send_offsets_to_transaction``). Kafka makes records and number visible at the same instant.
* A checkpoint whose number Kafka already has is not written again.

After a crash, the next driver first takes over the transactional id. That ends the transaction of the previous driver,
with a commit or an abort, and fences that driver off if it is still alive. Then the new driver reads the number: if the
crash came between the commit to Kafka and Spark's own, it recognises and skips the replayed batch.

A replaced driver that is still alive can take over the id again before it notices. The driver's epoch is therefore
stored next to the number: a driver that finds a higher epoch than its own writes nothing. The current driver knows from
its lease that it owns the job, and takes over the id once more.

Numbers count within one line of checkpoints and belong to one sink, so the group is named after both: a job that starts
in an empty checkpoint directory is not confused with the previous one. The group is not named after the transactional
id, which the user may change while the job is down. The id that wrote a number is stored with it, so that a job with
another id can first take over the previous one.

As a result, readers see the output of all tasks in a checkpoint or nothing, a job may be down for longer than any
transaction timeout, and the number of tasks may change. The price is that output passes through the driver. One
producer writes about a million small records per second, and the output of a micro-batch must fit into the driver's
memory (``penstock.batch.max-records`` limits it).
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import FencedError
from penstock.connectors.kafka.client import (
    LOG,
    KafkaError,
    confluent_kafka,
    connection_settings,
    new_consumer,
    reason,
)
from penstock.connectors.kafka.producer import RecordProducer
from penstock.connectors.kafka.serialization import RecordChunk
from penstock.core.sink import Committer
from penstock.runtime.records.stored_classes import load_stored

_ATTEMPTS = 3
_ANSWER_SECONDS = 60.0
_RETRY_SECONDS = 0.1
_TOPIC_SECONDS = 2.0
_MARKER_PARTITION = 0
_INTERNAL = ("__consumer_offsets", "__transaction_state")


@dataclass(slots=True)
class KafkaCommittable:
    """The records that one task wrote in a micro-batch.

    >>> KafkaCommittable.of("job-sink", [RecordChunk("t", [b"a", None]), RecordChunk("t", [])]).chunks
    [RecordChunk(topics='t', values=[b'a', None], keys=None, timestamps=None, partitions=None, headers=None)]

    :param line: the sink and its line of checkpoints
    """

    line: str
    data: bytes

    @classmethod
    def of(cls, line: str, chunks: list[RecordChunk]) -> KafkaCommittable:
        """Pickle the chunks."""
        packed = io.BytesIO()
        pickler = pickle.Pickler(packed, 5)
        pickler.fast = True  # records share no objects, and the search for them would take two thirds of the time
        pickler.dump([chunk for chunk in chunks if chunk.values])
        return cls(line, packed.getvalue())

    @property
    def chunks(self) -> list[RecordChunk]:
        """Return the unpickled chunks."""
        chunks: list[RecordChunk] = load_stored(self.data)
        return chunks


class KafkaCommitter(Committer):
    """Writes and commits on the driver."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        self._transaction: CheckpointTransaction | None = None

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        chunks = [chunk for committable in committables for chunk in committable.chunks]
        if not chunks:
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.fence.check()
                self._open(committables[0].line).write(chunks, checkpoint_id)
            except confluent_kafka().KafkaException as error:
                # In any case, a new producer with the same id brings clarity: it ends the transaction, and the
                # checkpoint's number shows how it ended.
                self._transaction = None
                if attempt == _ATTEMPTS or not self.fence.epoch:
                    self._check_fenced(error)
                if attempt == _ATTEMPTS:
                    raise KafkaError(
                        f"checkpoint {checkpoint_id} could not be written to Kafka: {reason(error)}"
                    ) from None
                LOG.warning("writing checkpoint %d again: %s", checkpoint_id, reason(error))
            except BaseException:
                self._transaction = None
                raise
            else:
                return

    def close(self) -> None:
        self._transaction = None

    def _open(self, line: str) -> CheckpointTransaction:
        if self._transaction is None or self._transaction.line != line:
            self._transaction = CheckpointTransaction(self._settings, self._transactional_id, line, self.fence.epoch)
        return self._transaction

    def _check_fenced(self, error: Any) -> None:
        self.fence.check()
        codes = confluent_kafka().KafkaError
        if error.args[0].code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
            raise KafkaError(
                f"another job took over the transactional id '{self._transactional_id}', or the transaction timed "
                "out (transaction.timeout.ms): concurrent jobs need different transactional id prefixes"
            ) from None


class CheckpointTransaction:
    """A transactional producer that knows the last checkpoint that it or a previous producer committed."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, line: str, epoch: int = 0) -> None:
        self.line = line
        self.transactional_id = transactional_id
        self._epoch = epoch
        self.producer = _take_over(settings, transactional_id)
        self._known_topics: set[str] = set()
        group = {**connection_settings(settings), "group.id": f"penstock-{line}"}
        former = _last_marker(group, "read_uncommitted").transactional_id
        if former not in ("", transactional_id):
            _take_over(settings, former)
        # Read it only now: from here on, no other driver can change it.
        last = self._stable_marker(group)
        if last.epoch > epoch:
            raise FencedError(
                f"another driver has taken over the job: the last transaction of the transactional id "
                f"'{transactional_id}' is of epoch {last.epoch}, and this driver has {epoch}. Nothing was written"
            )
        self._committed = last.checkpoint_id
        consumer = new_consumer(group)
        self._group_metadata = consumer.consumer_group_metadata()
        consumer.close()

    def _stable_marker(self, group: Mapping[str, Any]) -> _Marker:
        package = confluent_kafka()
        try:
            return _last_marker(group, "read_committed")
        except package.KafkaException as error:
            if error.args[0].code() not in (package.KafkaError._TIMED_OUT, package.KafkaError.UNSTABLE_OFFSET_COMMIT):
                raise
            raise KafkaError(
                f"Kafka did not return the last written checkpoint ({reason(error)}). If the transactional id "
                f"prefix changed to '{self.transactional_id}' after a crash, a transaction of the old one may still be "
                "open: use the old prefix, or wait until the transaction has timed out (transaction.timeout.ms)"
            ) from None

    def write(self, chunks: list[RecordChunk], checkpoint_id: int) -> None:
        """Write and commit the chunks, unless the checkpoint is already committed."""
        if checkpoint_id <= self._committed:
            return
        self._check_topics(chunks)
        client = self.producer.client
        client.begin_transaction()
        for chunk in chunks:
            self.producer.produce(chunk)
        # Any existing partition is fine. The first topic's exists, or writing to it fails anyway.
        topics = chunks[0].topics
        topic = topics if isinstance(topics, str) else topics[0]
        metadata = _Marker(checkpoint_id, self.transactional_id, self._epoch).metadata
        marker = confluent_kafka().TopicPartition(topic, _MARKER_PARTITION, checkpoint_id, metadata=metadata)
        # Do this while the records are in flight: the two requests for the number then cost no extra time.
        client.send_offsets_to_transaction([marker], self._group_metadata, _ANSWER_SECONDS)
        client.flush()
        client.commit_transaction(_ANSWER_SECONDS)  # fails if a record was not delivered
        self._committed = checkpoint_id

    def _check_topics(self, chunks: list[RecordChunk]) -> None:
        """Check that the topics exist. This finds a missing topic before the transaction times out."""
        topics: set[str] = set()
        for chunk in chunks:
            topics.update([chunk.topics] if isinstance(chunk.topics, str) else chunk.topics)
        for topic in sorted(topics - self._known_topics):
            deadline = time.monotonic() + _TOPIC_SECONDS  # in which a broker that creates topics on demand creates it
            while self.producer.client.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].error is not None:
                if time.monotonic() > deadline:
                    raise KafkaError(f"Kafka has no topic {topic}: create it, or correct the name")
                time.sleep(_RETRY_SECONDS)
            self._known_topics.add(topic)


def _take_over(settings: Mapping[str, Any], transactional_id: str) -> RecordProducer:
    """Create a producer with an id. This ends the open transaction of another producer and fences it off."""
    producer = RecordProducer({**settings, "transactional.id": transactional_id}, only_commits=True)
    producer.client.init_transactions(_ANSWER_SECONDS)
    return producer


@dataclass(slots=True)
class _Marker:
    """The last committed checkpoint, its transactional id, and the epoch of its driver.

    >>> _Marker.of(7, _Marker(7, "averages", 3).metadata)
    _Marker(checkpoint_id=7, transactional_id='averages', epoch=3)
    >>> _Marker.of(7, "averages")  # as it was before drivers had epochs
    _Marker(checkpoint_id=7, transactional_id='averages', epoch=0)
    """

    checkpoint_id: int = 0
    transactional_id: str = ""
    epoch: int = 0

    @property
    def metadata(self) -> str:
        """The metadata stored with the number."""
        return f"{self.transactional_id}\n{self.epoch}"

    @classmethod
    def of(cls, checkpoint_id: int, metadata: str) -> _Marker:
        """Parse the metadata that Kafka stores."""
        transactional_id, _, epoch = metadata.partition("\n")
        return cls(checkpoint_id, transactional_id, int(epoch or 0))


def _last_marker(group: Mapping[str, Any], level: str) -> _Marker:
    """Return the marker of a group. ``read_committed`` waits for open transactions that would set it."""
    package = confluent_kafka()
    consumer = new_consumer({**group, "isolation.level": level})
    topics = consumer.list_topics(timeout=_ANSWER_SECONDS).topics
    asked = [package.TopicPartition(name, _MARKER_PARTITION) for name in topics if name not in _INTERNAL]
    deadline = time.monotonic() + _ANSWER_SECONDS
    try:
        while True:
            try:
                found = consumer.committed(asked, timeout=_ANSWER_SECONDS)
            except package.KafkaException:
                if time.monotonic() > deadline:
                    raise
            else:
                failed = [partition.error for partition in found if partition.error is not None]
                if not failed:
                    last = max(found, key=lambda partition: partition.offset, default=None)
                    return (
                        _Marker() if last is None or last.offset < 0 else _Marker.of(last.offset, last.metadata or "")
                    )
                if time.monotonic() > deadline:
                    raise package.KafkaException(failed[0])
            time.sleep(_RETRY_SECONDS)  # the coordinator has just started, or is ending an old transaction
    finally:
        consumer.close()
