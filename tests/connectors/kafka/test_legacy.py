"""FlinkKafkaConsumer and FlinkKafkaProducer: the defaults of the old connectors (rules M01 to N15)."""

import pytest

import penstock.connectors.kafka as package
from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaError,
    KafkaTopicPartition,
    Semantic,
)
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

SEEN = []


def see(value):
    SEEN.append(value)
    return value


class Reading:
    """A job that reads with a consumer, driven by hand."""

    def __init__(self, kafka, topics, change=lambda consumer: consumer, snapshot=None, **properties):
        settings = {"bootstrap.servers": kafka.bootstrap_servers, **properties}
        env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
        consumer = FlinkKafkaConsumer(topics, SimpleStringSchema(), settings)
        env.add_source(change(consumer)).map(see).print()
        self.job = env._executor.start(env.sinks, env.job_settings("job"), snapshot=snapshot)

    def read(self):
        SEEN.clear()
        self.job.run()
        return sorted(SEEN)

    def close(self):
        self.job.close()


@pytest.fixture(autouse=True)
def fresh_offsets(monkeypatch):
    monkeypatch.setattr(package.enumerator, "_REFRESH_SECONDS", 0.0)


@pytest.mark.kafka
@pytest.mark.parametrize("keep", [False, True])
def test_partitions_of_topics_that_are_not_read_any_more_are_forgotten_unless_told(kafka, keep):
    first, second = kafka.topic(), kafka.topic()
    for topic in (first, second):
        kafka.send(topic, [f"{topic} before"])
    job = Reading(kafka, [first, second], FlinkKafkaConsumer.set_start_from_earliest)
    assert job.read() == sorted([f"{first} before", f"{second} before"])
    snapshot = job.job.snapshot()
    job.close()
    for topic in (first, second):
        kafka.send(topic, [f"{topic} after"])
    change = FlinkKafkaConsumer.disable_filter_restored_partitions_with_subscribed_topics if keep else lambda one: one
    job = Reading(kafka, first, change, snapshot)
    assert job.read() == sorted([f"{first} after", *([f"{second} after"] if keep else [])])
    (positions,) = job.job.offset.splits.values()
    at = positions[f"{second}-0"]
    assert (at.offset, at.state.name) == ((2, "ACTIVE") if keep else (1, "FINISHED"))
    job.close()


@pytest.mark.kafka
def test_the_old_consumer_begins_where_the_group_is_or_at_the_end(kafka):
    topic = kafka.topic()
    kafka.send(topic, "ab")
    group = {"group.id": f"old-{topic}"}
    first = Reading(kafka, topic, **group)
    assert first.read() == []  # the group is nowhere, and Kafka's default is the end
    kafka.send(topic, "cd")
    assert first.read() == ["c", "d"]
    first.close()
    kafka.send(topic, "e")
    second = Reading(kafka, [topic], **group)
    assert second.read() == ["e"]
    second.close()
    third = Reading(kafka, topic, **{"group.id": f"new-{topic}", "auto.offset.reset": "earliest"})
    assert third.read() == ["a", "b", "c", "d", "e"]
    third.close()


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda consumer, topic: consumer.set_start_from_earliest(), ["a", "b", "c"]),
        (lambda consumer, topic: consumer.set_start_from_latest(), []),
        (lambda consumer, topic: consumer.set_start_from_timestamp(200), ["b", "c"]),
        (
            lambda consumer, topic: consumer.set_start_from_specific_offsets({KafkaTopicPartition(topic, 0): 2}),
            ["c"],
        ),
        (lambda consumer, topic: consumer.set_start_from_earliest().set_start_from_group_offsets(), []),
    ],
)
def test_the_old_consumer_begins_where_it_is_told(kafka, change, expected):
    topic = kafka.topic()
    kafka.send(topic, "abc", timestamps=[100, 200, 300])
    reading = Reading(kafka, topic, lambda consumer: change(consumer, topic))
    assert reading.read() == expected
    reading.close()


@pytest.mark.kafka
def test_the_old_consumer_looks_for_new_partitions_only_if_told(kafka):
    topic = kafka.topic()
    deaf = Reading(kafka, topic)
    listening = Reading(kafka, topic, **{"flink.partition-discovery.interval-millis": "1"})
    assert (deaf.read(), listening.read()) == ([], [])
    kafka.add_partitions(topic, 2)
    kafka.send(topic, "x", partition=1)
    assert (deaf.read(), listening.read()) == ([], ["x"])
    deaf.close()
    listening.close()


def write(producer, values, parallelism=1):
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(parallelism)
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: 1_234)
    stream = env.from_collection(values).assign_timestamps_and_watermarks(strategy)
    stream.map(str).add_sink(producer)
    env.execute("write")


@pytest.mark.kafka
@pytest.mark.parametrize("semantic", list(Semantic))
def test_the_old_producer_writes_to_one_partition_a_task_with_the_time_of_writing(kafka, semantic):
    topic = kafka.topic(3)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = FlinkKafkaProducer(topic, SimpleStringSchema(), config, semantic=semantic)
    producer.set_transactional_id_prefix(f"old-{topic}")
    write(producer, range(10))
    found = kafka.messages(topic)
    assert [message.value().decode() for message in found] == [str(n) for n in range(10)]
    assert {message.partition() for message in found} == {0}
    assert all(message.timestamp()[1] > 1_234 for message in found)


@pytest.mark.kafka
def test_the_old_producer_writes_event_timestamps_if_told(kafka):
    topic = kafka.topic()
    producer = FlinkKafkaProducer(topic, SimpleStringSchema(), {"bootstrap.servers": kafka.bootstrap_servers})
    write(producer.set_write_timestamp_to_kafka(True), range(2))
    assert [message.timestamp()[1] for message in kafka.messages(topic)] == [1_234, 1_234]


@pytest.mark.kafka
def test_the_old_producer_may_lose_records_only_if_told(kafka):
    config = {"bootstrap.servers": kafka.bootstrap_servers, "topic.metadata.propagation.max.ms": "100"}

    def producer():
        return FlinkKafkaProducer("no-such-topic", SimpleStringSchema(), config, partitioner=None)

    with pytest.raises(KafkaError, match="was not delivered"):
        write(producer(), range(2))
    write(producer().set_log_failures_only(True), range(2))


def test_the_old_connectors_say_what_is_missing():
    with pytest.raises(InvalidProgramError, match=r"needs topics, and the property bootstrap\.servers"):
        FlinkKafkaConsumer("t", SimpleStringSchema(), {})
    with pytest.raises(InvalidProgramError, match=r"auto\.offset\.reset must be earliest, latest or none"):
        FlinkKafkaConsumer("t", SimpleStringSchema(), {"bootstrap.servers": "x", "auto.offset.reset": "middle"})
    with pytest.raises(InvalidProgramError, match=r"needs the property bootstrap\.servers"):
        FlinkKafkaProducer("t", SimpleStringSchema(), {})
    exact = FlinkKafkaProducer("t", SimpleStringSchema(), {"bootstrap.servers": "x"}, semantic=Semantic.EXACTLY_ONCE)
    with pytest.raises(InvalidProgramError, match="needs set_transactional_id_prefix"):
        exact.create_committer()
