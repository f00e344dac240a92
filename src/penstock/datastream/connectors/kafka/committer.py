"""Exactly once: all records of a checkpoint, of all tasks, in one Kafka transaction, written by the driver.

Flink's tasks write into transactions of their own, which stay open until the checkpoint is complete and are then
committed by whoever is alive, under the producer's id and epoch. confluent-kafka cannot take over another producer's
transaction, and a transaction that outlives its producer is lost when it times out. Here a checkpoint is a
micro-batch, and its end is known at once, so there is a simpler way without these limits:

* Tasks serialize records and return them with their report; they do not talk to Kafka.
* When all tasks of the micro-batch have succeeded, the driver writes everything in **one** transaction, together with
  the number of the checkpoint, as the offset of a consumer group made for this purpose
  (``send_offsets_to_transaction``). Kafka makes records and number visible in the same instant.
* A checkpoint whose number is already there is not written again.

After a crash at any moment, the next driver first takes over the transactional id. That ends the transaction of its
predecessor, one way or the other, and fences it off if it should still be alive. Then it reads the number: if the
crash came between the commit to Kafka and Spark's own, the replayed batch is recognised and skipped.

Numbers count within one line of checkpoints, so the name of the line is part of the group's name: a job that starts
anew in an empty checkpoint directory is not taken for the one before.

What follows from this: readers see all tasks' output of a checkpoint or nothing; a job may be down for longer than any
transaction timeout; the number of tasks may change. The price: output passes through the driver. One producer writes
about a million small records a second, and a micro-batch's output has to fit into the driver's memory
(``penstock.batch.max-records`` bounds it).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.sink import Committer
from penstock.datastream.connectors.kafka.client import (
    LOG,
    KafkaError,
    confluent_kafka,
    connection_settings,
    new_consumer,
    reason,
)
from penstock.datastream.connectors.kafka.producer import RecordProducer
from penstock.datastream.connectors.kafka.serialization import RecordChunk

_ATTEMPTS = 3
_ANSWER_SECONDS = 60.0
_RETRY_SECONDS = 0.1
_TOPIC_SECONDS = 2.0
_MARKER_PARTITION = 0


@dataclass(slots=True)
class KafkaCommittable:
    """What one task wrote in a micro-batch."""

    job_id: str
    chunks: list[RecordChunk] = field(default_factory=list)


class KafkaCommitter(Committer):
    """Writes and commits on the driver."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        self._transaction: CheckpointTransaction | None = None

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        chunks = [chunk for committable in committables for chunk in committable.chunks if chunk.values]
        if not chunks:
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._open(committables[0].job_id).write(chunks, checkpoint_id)
            except confluent_kafka().KafkaException as error:
                # Whatever happened, a new producer with the same id brings clarity: the transaction is over, and
                # the checkpoint's number says which way.
                self._transaction = None
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

    def _open(self, job_id: str) -> CheckpointTransaction:
        if self._transaction is None or self._transaction.job_id != job_id:
            self._transaction = CheckpointTransaction(self._settings, self._transactional_id, job_id)
        return self._transaction

    def _check_fenced(self, error: Any) -> None:
        codes = confluent_kafka().KafkaError
        if error.args[0].code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
            raise KafkaError(
                f"another job has taken over the transactional id '{self._transactional_id}', or the transaction timed "
                "out (transaction.timeout.ms): no two jobs may have the same transactional id prefix at a time"
            ) from None


class CheckpointTransaction:
    """A transactional producer that knows the last checkpoint it, or one before it, has committed."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, job_id: str) -> None:
        self.job_id = job_id
        self.producer = RecordProducer({**settings, "transactional.id": transactional_id}, reports=False)
        self._known_topics: set[str] = set()
        self.producer.client.init_transactions(_ANSWER_SECONDS)
        # Only now: nobody else can change it from here on.
        group = {"group.id": f"{transactional_id}-{job_id}", "isolation.level": "read_committed"}
        consumer = new_consumer({**connection_settings(settings), **group})
        self._committed = _last_checkpoint(consumer)
        self._group_metadata = consumer.consumer_group_metadata()
        consumer.close()

    def write(self, chunks: list[RecordChunk], checkpoint_id: int) -> None:
        """Write and commit, unless the checkpoint is committed."""
        if checkpoint_id <= self._committed:
            return
        self._check_topics(chunks)
        client = self.producer.client
        client.begin_transaction()
        for chunk in chunks:
            self.producer.produce(chunk)
        # Any partition that exists will do; the first topic's exists, or writing to it fails anyway.
        topics = chunks[0].topics
        topic = topics if isinstance(topics, str) else topics[0]
        marker = confluent_kafka().TopicPartition(topic, _MARKER_PARTITION, checkpoint_id)
        client.flush()  # a record that was not delivered makes the commit fail
        client.send_offsets_to_transaction([marker], self._group_metadata, _ANSWER_SECONDS)
        client.commit_transaction(_ANSWER_SECONDS)
        self._committed = checkpoint_id

    def _check_topics(self, chunks: list[RecordChunk]) -> None:
        """A topic that is not there: better found out at once than when the transaction times out."""
        topics: set[str] = set()
        for chunk in chunks:
            topics.update([chunk.topics] if isinstance(chunk.topics, str) else chunk.topics)
        for topic in sorted(topics - self._known_topics):
            deadline = time.monotonic() + _TOPIC_SECONDS  # a broker that makes topics on demand makes it meanwhile
            while self.producer.client.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].error is not None:
                if time.monotonic() > deadline:
                    raise KafkaError(f"Kafka has no topic {topic}: create it, or mend the name")
                time.sleep(_RETRY_SECONDS)
            self._known_topics.add(topic)


def _last_checkpoint(consumer: Any) -> int:
    """The last checkpoint committed under the consumer's group; 0 if there is none."""
    package = confluent_kafka()
    topics = consumer.list_topics(timeout=_ANSWER_SECONDS).topics
    asked = [package.TopicPartition(name, _MARKER_PARTITION) for name in topics if not name.startswith("__")]
    deadline = time.monotonic() + _ANSWER_SECONDS
    while True:
        try:
            found = consumer.committed(asked, timeout=_ANSWER_SECONDS)
        except package.KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            failed = [partition.error for partition in found if partition.error is not None]
            if not failed:
                return max(0, max((partition.offset for partition in found), default=0))
            if time.monotonic() > deadline:
                raise package.KafkaException(failed[0])
        time.sleep(_RETRY_SECONDS)  # a coordinator that has just started, or an old transaction that is being ended
