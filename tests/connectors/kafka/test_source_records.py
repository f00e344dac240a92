"""Records of a Kafka source, against a real broker: what they become, that none is lost, and their event time."""

import pytest
from processes import wait_until
from tests.connectors.kafka.reading import SEEN, Program, Stamp, numbers, take

from penstock.common import Duration, SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import JobExecutionError
from penstock.connectors.kafka import (
    KafkaError,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    enumerator,
    reader,
)
from penstock.testing import ManualClock

pytestmark = pytest.mark.kafka

EARLIEST = KafkaOffsetsInitializer.earliest()
LATEST = KafkaOffsetsInitializer.latest()


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    SEEN.clear()
    monkeypatch.setattr(enumerator, "_REFRESH_SECONDS", 0.0)  # every plan knows what there is


# -- records -------------------------------------------------------------------------------------------------------


def test_a_record_deserializer_sees_everything_kafka_knows(kafka):
    topic = kafka.topic(2)
    kafka.send(topic, ["v", None], partition=1, timestamps=[7, 8], keys=[b"k", None], headers=[("h", b"1")])
    program = Program(kafka)
    program.builder.set_topics(topic).set_deserializer(KafkaRecordDeserializationSchema.of(tuple))
    program.run()
    assert take() == [(topic, 1, 0, 7, b"k", b"v", [("h", b"1")]), (topic, 1, 1, 8, None, None, [("h", b"1")])]


class Words(KafkaRecordDeserializationSchema):
    def deserialize(self, record):
        for word in record.value.decode().split():
            yield word, record.offset


def test_a_record_deserializer_may_give_none_or_several_records(kafka):
    topic = kafka.topic()
    kafka.send(topic, ["a b", "", "c"], timestamps=[10, 20, 30])
    program = Program(kafka)
    program.builder.set_topics(topic).set_deserializer(Words())
    program.function = Stamp()
    program.run()
    assert [(value, timestamp) for value, timestamp, _ in take()] == [(("a", 0), 10), (("b", 0), 10), (("c", 2), 30)]


def test_values_only_leave_tombstones_out(kafka):
    topic = kafka.topic()
    kafka.send(topic, ["a", None, "b"])
    program = Program(kafka)
    program.builder.set_topics(topic)
    program.run()
    assert take() == ["a", "b"]


def test_a_record_that_cannot_be_read_is_named(kafka):
    topic = kafka.topic()
    kafka.send(topic, ["1", "x"])
    program = Program(kafka)
    program.builder.set_topics(topic).set_deserializer(
        KafkaRecordDeserializationSchema.of(lambda record: int(record.value))
    )
    with pytest.raises(KafkaError, match=rf"record at offset 1 of partition {topic}-0 cannot be deserialized: Value"):
        program.run()


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_markers_and_aborted_records_take_offsets_but_are_not_records(kafka, level):
    topic = kafka.topic()
    for n in range(6):
        kafka.send_in_transaction(topic, [n, n], commit=n % 2 == 0)
    expected = [str(n) for n in range(6) for _ in "ab" if n % 2 == 0 or level == "read_uncommitted"]
    for max_records in (None, 1, 4):
        program = Program(kafka, max_records=max_records)
        program.builder.set_topics(topic).set_property("isolation.level", level).set_bounded(LATEST)
        program.run()
        assert take() == expected


def test_an_open_transaction_is_waited_for(kafka):
    topic = kafka.topic()
    kafka.send(topic, ["before"])
    producer = kafka.producer(transactional_id=f"open-{topic}")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"inside")
    producer.flush(30)
    kafka.send(topic, ["behind"])
    program = Program(kafka)
    program.builder.set_topics(topic).set_property("isolation.level", "read_committed")
    job = program.start()
    job.run()
    assert take() == ["before"]
    producer.commit_transaction(30)
    wait_until(lambda: job.run_batch() and SEEN, 30, "the end of the transaction")
    job.close()
    assert take() == ["inside", "behind"]


def test_records_lost_to_retention_are_an_error_unless_the_user_resets(kafka):
    from confluent_kafka import TopicPartition

    topic = kafka.topic()
    kafka.send(topic, range(6))
    program = Program(kafka, max_records=2)
    program.builder.set_topics(topic)
    job = program.start()
    job.run_batch()
    state = job.snapshot()
    job.close()
    (future,) = kafka.broker.admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    future.result()
    take()
    with pytest.raises((KafkaError, JobExecutionError), match="by the topic's retention"):
        program.run(state)
    program.builder.set_property("auto.offset.reset", "earliest")
    program.run(state)
    assert take() == numbers(4, 6)


# -- reading fast --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3])
def test_many_batches_of_many_partitions_read_every_record_once_and_in_order(kafka, parallelism, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK", 50)
    monkeypatch.setattr(reader, "_MAX_WAITING", 100)  # so that partitions are paused and resumed
    topic = kafka.topic(4)
    for partition in range(4):
        kafka.send(topic, [f"{partition} {n}" for n in range(1_000)], partition=partition)
    program = Program(kafka, parallelism=parallelism, max_records=400)
    program.builder.set_topics(topic)
    program.run()
    found = take()
    for partition in range(4):
        mine = [value for value in found if value.startswith(f"{partition} ")]
        assert mine == [f"{partition} {n}" for n in range(1_000)]


def test_a_reader_goes_on_without_a_seek_skips_forward_and_goes_back(kafka):
    topic = kafka.topic(2)
    for partition in range(2):
        kafka.send(topic, [f"{partition} {n}" for n in range(100)], partition=partition)
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    splits = source.create_enumerator(1)
    splits.start()
    zero, one = splits.discover_splits()
    splits.close()
    reading = source.create_reader()

    def read(split, start, end):
        return [value for values, _ in reading.read(split, start, end) for value in values]

    assert read(zero, 0, 10) == [f"0 {n}" for n in range(10)]
    consumer = reading._consumer
    assert read(one, 50, 60) == [f"1 {n}" for n in range(50, 60)]
    assert read(zero, 10, 30) == [f"0 {n}" for n in range(10, 30)]
    assert read(zero, 90, 95) == [f"0 {n}" for n in range(90, 95)]  # another worker had it meanwhile
    assert reading._consumer is consumer
    assert read(zero, 5, 12) == [f"0 {n}" for n in range(5, 12)]  # a replay
    assert read(one, 60, 100) == [f"1 {n}" for n in range(60, 100)]
    reading.close()


# -- time ----------------------------------------------------------------------------------------------------------


def test_the_timestamp_of_a_record_is_kafkas(kafka):
    topic = kafka.topic()
    kafka.send(topic, "ab", timestamps=[1_000, 2_000])
    program = Program(kafka)
    program.builder.set_topics(topic)
    program.function = Stamp()
    program.run()
    assert [(value, timestamp) for value, timestamp, _ in take()] == [("a", 1_000), ("b", 2_000)]


def test_every_partition_has_its_own_watermark_and_the_smallest_counts(kafka):
    topic = kafka.topic(2)
    kafka.send(topic, "ab", timestamps=[5_000, 9_000])
    program = Program(kafka, strategy=WatermarkStrategy.for_monotonous_timestamps())
    program.builder.set_topics(topic)
    program.function = Stamp()
    job = program.start()
    job.run()
    kafka.send(topic, "c", partition=1, timestamps=[7_000])
    job.run()
    kafka.send(topic, "d", timestamps=[9_500])
    job.run()
    job.close()
    nothing = -(2**63)
    assert take() == [
        ("a", 5_000, nothing),  # partition 1 has not spoken
        ("b", 9_000, nothing),
        ("c", 7_000, nothing),
        ("d", 9_500, 6_999),  # the minimum of 8,999 and 6,999
    ]


def test_an_idle_partition_does_not_hold_the_watermark_back(kafka):
    topic = kafka.topic(2)
    clock = ManualClock(0)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(10))
    program = Program(kafka, strategy=strategy, clock=clock)
    program.builder.set_topics(topic)
    program.function = Stamp()
    kafka.send(topic, "a", timestamps=[5_000])
    job = program.start()
    job.run()
    clock.advance(9_000)
    kafka.send(topic, "b", timestamps=[6_000])
    job.run()
    clock.advance(2_000)  # partition 1 was silent for 11 s, partition 0 for 2 s
    job.run()
    kafka.send(topic, "c", timestamps=[7_000])
    job.run()
    job.close()
    nothing = -(2**63)
    assert [(value, watermark) for value, _, watermark in take()] == [("a", nothing), ("b", nothing), ("c", 5_999)]


def test_partitions_of_an_alignment_group_stay_together(kafka):
    """However different their records are in time: the first one has a record in 100 ms, the other one in 5 ms."""
    topic = kafka.topic(2)
    fast, slow = range(0, 10_000, 100), range(0, 10_000, 5)
    kafka.send(topic, fast, partition=0, timestamps=fast)
    kafka.send(topic, slow, partition=1, timestamps=slow)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("group", Duration.of_seconds(1))
    program = Program(kafka, strategy=strategy, max_records=40)
    program.builder.set_topics(topic).set_bounded(KafkaOffsetsInitializer.latest())
    job = program.start()
    largest = 0
    while not job.finished:
        job.run_batch()
        known = [watermark for source in job.offset.alignment.values() for watermark, _ in source.values()]
        if len(known) == 2:
            largest = max(largest, max(known) - min(known))
    job.close()
    assert 0 < largest <= 1_000 + 40 * 100
    assert sorted(map(int, take())) == sorted([*fast, *slow])
