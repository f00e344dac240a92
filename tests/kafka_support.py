"""What tests do at the other end of Kafka: every test has topics of its own on the one broker."""

import itertools
import time

import confluent_kafka
from confluent_kafka.admin import OffsetSpec

_numbers = itertools.count()


class Kafka:
    """Writes and reads topics."""

    def __init__(self, broker):
        self.broker = broker
        self.bootstrap_servers = broker.bootstrap_servers
        self._producer = None

    def topic(self, partitions=1, name=None, **settings):
        name = name or f"topic{next(_numbers)}"
        self.broker.create_topic(name, partitions, **settings)
        return name

    def add_partitions(self, topic, total):
        self.broker.add_partitions(topic, total)
        self._producer = None  # it would remember the old number

    def producer(self, **settings):
        properties = {key.replace("_", "."): value for key, value in settings.items()}
        return confluent_kafka.Producer({"bootstrap.servers": self.bootstrap_servers, **properties})

    def send(self, topic, values, partition=0, timestamps=None, keys=None, headers=None):
        """Records, acknowledged when this returns."""
        if self._producer is None:
            self._producer = self.producer(linger_ms=1, enable_idempotence=True)  # retries keep the order
        for index, value in enumerate(values):
            extra = {}
            if timestamps is not None:
                extra["timestamp"] = timestamps[index]
            data = None if value is None else str(value).encode()
            key = None if keys is None else keys[index]
            self._producer.produce(topic, data, key=key, partition=partition, headers=headers, **extra)
        assert self._producer.flush(30) == 0

    def send_in_transaction(self, topic, values, *, commit, partition=0):
        producer = self.producer(transactional_id=f"test{next(_numbers)}")
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, str(value).encode(), partition=partition)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)

    def messages(self, topic, *, level="read_committed"):
        """All messages a consumer sees from the beginning to the end as it is now, when transactions have ended."""
        self.wait_for_transactions(topic)
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "tests",
                "isolation.level": level,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
        found, open_ends = [], set(partitions)
        while open_ends:
            message = consumer.poll(30)
            assert message is not None, "the broker does not answer"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                open_ends.discard(message.partition())
        consumer.close()
        return found

    def wait_for_transactions(self, topic):
        """A commit returns before all partitions know of it: wait until none of them has an open transaction."""
        partitions = self.broker.admin.list_topics(topic, timeout=30).topics[topic].partitions
        asked = {confluent_kafka.TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            ends = []
            for level in (
                confluent_kafka.IsolationLevel.READ_COMMITTED,
                confluent_kafka.IsolationLevel.READ_UNCOMMITTED,
            ):
                futures = self.broker.admin.list_offsets(asked, isolation_level=level, request_timeout=30)
                ends.append({(at.topic, at.partition): future.result().offset for at, future in futures.items()})
            if ends[0] == ends[1]:
                return
            time.sleep(0.005)

    def values(self, topic, *, level="read_committed"):
        return [message.value().decode() for message in self.messages(topic, level=level)]

    def committed(self, group, topic, partitions=1):
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": group})
        asked = [confluent_kafka.TopicPartition(topic, number) for number in range(partitions)]
        answers = consumer.committed(asked, timeout=30)
        consumer.close()
        return [max(-1, answer.offset) for answer in answers]
