"""The Kafka source against a real broker: where it begins and ends, which partitions it reads, its builder."""

import pytest
from tests.connectors.kafka.reading import SEEN, Program, numbers, take

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors.kafka import (
    KafkaError,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
    enumerator,
)
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.testing import MiniCluster

pytestmark = pytest.mark.kafka

EARLIEST = KafkaOffsetsInitializer.earliest()
LATEST = KafkaOffsetsInitializer.latest()


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    SEEN.clear()
    monkeypatch.setattr(enumerator, "_REFRESH_SECONDS", 0.0)  # every plan knows what there is


# -- where to begin ------------------------------------------------------------------------------------------------


def test_a_job_begins_with_the_earliest_record_unless_told(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(5))
    program = Program(kafka)
    program.builder.set_topics(topic)
    program.run()
    assert take() == numbers(5)


def test_latest_is_the_end_at_the_start_of_the_job_and_replays_begin_there_too(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(5))
    program = Program(kafka)
    program.builder.set_topics(topic).set_starting_offsets(LATEST)
    job = program.start()
    job.run()
    assert take() == []
    kafka.send(topic, range(5, 8))
    job.run()
    assert take() == numbers(5, 8)
    job.close()


def test_the_plan_of_the_first_batch_says_where_it_begins(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(5))
    program = Program(kafka)
    program.builder.set_topics(topic).set_starting_offsets(LATEST)
    job = program.start()
    planned = job.coordinator.plan(job.offset)
    job.close()
    kafka.send(topic, range(5, 8))
    again = program.start()  # after a crash: the plan is all there is
    assert again.coordinator.assignments(again.offset, planned) == []
    again.close()


def test_timestamp_begins_with_the_first_record_that_is_not_older(kafka):
    topic = kafka.topic(2)
    kafka.send(topic, range(5), timestamps=[100, 200, 300, 400, 500])
    kafka.send(topic, "ab", partition=1, timestamps=[100, 200])  # nothing as young: from the end
    program = Program(kafka)
    program.builder.set_topics(topic).set_starting_offsets(KafkaOffsetsInitializer.timestamp(300))
    job = program.start()
    job.run()
    assert take() == numbers(2, 5)
    kafka.send(topic, "c", partition=1)
    job.run()
    job.close()
    assert take() == ["c"]


def test_given_offsets_and_the_strategy_for_the_others(kafka):
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.send(topic, [f"{partition}{n}" for n in range(4)], partition=partition)
    given = {KafkaTopicPartition(topic, 0): 2, KafkaTopicPartition(topic, 1): 99}
    for strategy, expected in [
        (KafkaOffsetResetStrategy.EARLIEST, ["02", "03", *[f"{p}{n}" for p in (1, 2) for n in range(4)]]),
        (KafkaOffsetResetStrategy.LATEST, ["02", "03"]),
    ]:
        program = Program(kafka)
        program.builder.set_topics(topic).set_starting_offsets(KafkaOffsetsInitializer.offsets(given, strategy))
        program.run()
        assert sorted(take()) == expected
    program = Program(kafka)
    none = KafkaOffsetsInitializer.offsets(given, KafkaOffsetResetStrategy.NONE)
    program.builder.set_topics(topic).set_starting_offsets(none)
    with pytest.raises(KafkaError, match=rf"no starting offset for partition {topic}-1: 99 is not within 0 to 4"):
        program.run()


def test_committed_offsets_are_those_of_the_group(kafka):
    topic = kafka.topic(2)
    kafka.send(topic, range(4))
    first = Program(kafka)
    first.builder.set_topics(topic).set_group_id(f"group-{topic}")
    first.run()
    assert take() == numbers(4)
    assert kafka.committed(f"group-{topic}", topic, 2) == [4, 0]
    kafka.send(topic, range(4, 6))
    for strategy in (KafkaOffsetResetStrategy.NONE, KafkaOffsetResetStrategy.EARLIEST):
        second = Program(kafka)
        second.builder.set_topics(topic).set_group_id(f"group-{topic}")
        second.builder.set_property("commit.offsets.on.checkpoint", "false")
        second.builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(strategy))
        second.run()
        assert take() == numbers(4, 6)
    assert kafka.committed(f"group-{topic}", topic, 2) == [4, 0]
    third = Program(kafka)
    third.builder.set_topics(topic).set_group_id(f"unknown-{topic}")
    third.builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    with pytest.raises(KafkaError, match=r"the consumer group has none; pass a KafkaOffsetResetStrategy"):
        third.run()


def test_without_a_group_nothing_is_committed(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(3))
    program = Program(kafka)
    program.builder.set_topics(topic)
    program.run()
    assert kafka.committed("penstock", topic) == [-1]


def test_a_checkpoint_wins_over_starting_offsets_and_group_offsets(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(5))
    program = Program(kafka)
    program.builder.set_topics(topic).set_group_id(f"group-{topic}")
    state = program.run()
    take()
    kafka.send(topic, range(5, 8))
    program.run()  # another job commits further offsets to the group
    take()
    program.builder.set_starting_offsets(EARLIEST)
    program.run(state)
    assert take() == numbers(5, 8)


# -- where to end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_bounded_source_ends_where_the_topic_ended_when_it_started(kafka, mode):
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.send(topic, range(10 * partition), partition=partition)
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
    source = builder.set_bounded(LATEST).set_value_only_deserializer(SimpleStringSchema()).build()
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=4)).set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    found = list(stream.execute_and_collect())
    assert sorted(found) == sorted([*numbers(10), *numbers(20)])


def test_stopping_offsets_are_kept_in_the_checkpoint(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(5))
    program = Program(kafka, max_records=2)
    program.builder.set_topics(topic).set_bounded(LATEST)
    job = program.start()
    job.run_batch()
    state = job.snapshot()
    job.close()
    kafka.send(topic, range(5, 9))
    program.run(state)
    assert take() == numbers(5)


def test_an_unbounded_source_may_stop_at_an_offset_that_is_still_to_come(kafka):
    topic = kafka.topic()
    kafka.send(topic, range(3))
    program = Program(kafka)
    # Offsets that are not there yet count as out of range for a start, but a stop may lie in the future.
    stop = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 5})
    program.builder.set_topics(topic).set_unbounded(stop)
    assert not program.builder.build().is_bounded
    job = program.start()
    job.run()
    assert (take(), job.finished) == (numbers(3), False)
    kafka.send(topic, range(3, 9))
    job.run()
    assert (take(), job.finished) == (numbers(3, 5), True)
    job.close()


def test_a_source_may_stop_at_a_time(kafka):
    topic = kafka.topic()
    kafka.send(topic, "abc", timestamps=[4_000, 5_000, 6_000])
    program = Program(kafka)
    program.builder.set_topics(topic).set_bounded(KafkaOffsetsInitializer.timestamp(5_000))
    program.run()
    assert take() == ["a"]


# -- which partitions ----------------------------------------------------------------------------------------------


def test_partitions_can_be_chosen(kafka):
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.send(topic, [partition], partition=partition)
    program = Program(kafka)
    program.builder.set_partitions({KafkaTopicPartition(topic, 0), KafkaTopicPartition(topic, 2)})
    program.run()
    assert sorted(take()) == ["0", "2"]


def test_new_topics_and_partitions_are_found_and_read_from_their_beginning(kafka):
    first = kafka.topic(1, name="pattern-a")
    kafka.topic(1, name="not-pattern-a")
    kafka.send(first, ["before"])
    program = Program(kafka, parallelism=2)
    program.builder.set_topic_pattern("pattern-.*").set_starting_offsets(LATEST)
    program.builder.set_property("partition.discovery.interval.ms", "1")
    job = program.start()
    job.run()
    kafka.add_partitions(first, 2)
    second = kafka.topic(1, name="pattern-b")
    kafka.send(first, ["a1"], partition=1)
    kafka.send(second, ["b0"])
    kafka.send("not-pattern-a", ["no"])
    job.run()
    assert sorted(take()) == ["a1", "b0"]
    state = job.snapshot()
    job.close()
    kafka.send(kafka.topic(1, name="pattern-0"), ["while stopped"])
    kafka.send(first, ["a0"])
    program.run(state)
    assert sorted(take()) == ["a0", "while stopped"]


def test_partitions_that_appear_are_not_read_without_discovery(kafka):
    topic = kafka.topic(1)
    program = Program(kafka)
    program.builder.set_topics(topic).set_property("partition.discovery.interval.ms", "-1")
    job = program.start()
    job.run()
    kafka.add_partitions(topic, 2)
    kafka.send(topic, ["new"], partition=1)
    job.run()
    job.close()
    assert take() == []


def test_a_topic_that_is_not_there_is_an_error_that_names_it(kafka):
    program = Program(kafka)
    program.builder.set_topics("no-such-topic")
    with pytest.raises(KafkaError, match=r"Kafka has no topic or partition no-such-topic"):
        program.run()


# -- the builder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda builder: builder, "needs set_topics"),
        (lambda builder: builder.set_topics("a").set_topic_pattern("b"), "takes one of topics, topic pattern"),
        (lambda builder: builder.set_topics(), "set_topics.. takes names"),
        (lambda builder: builder.set_topic_pattern("("), "is not valid"),
        (lambda builder: builder.set_partitions(["a"]), "takes KafkaTopicPartitions"),
        (lambda builder: builder.set_starting_offsets("earliest"), "expected a KafkaOffsetsInitializer"),
        (
            lambda builder: builder.set_topics("a").set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()),
            "call set_group_id",
        ),
        (lambda builder: KafkaSource.builder().set_topics("a"), "needs set_bootstrap_servers"),
        (
            lambda builder: KafkaSource.builder().set_bootstrap_servers("x").set_topics("a"),
            "needs set_value_only_deserializer",
        ),
        (lambda builder: builder.set_value_only_deserializer(str), "expected a DeserializationSchema"),
        (lambda builder: builder.set_deserializer(SimpleStringSchema()), "takes a KafkaRecordDeserializationSchema"),
        (lambda builder: KafkaOffsetsInitializer.offsets({"a": 1}), "takes a dict of KafkaTopicPartition"),
        (lambda builder: KafkaOffsetsInitializer.timestamp("now"), "must be an int"),
    ],
)
def test_the_builder_says_what_is_wrong(change, message):
    builder = KafkaSource.builder().set_bootstrap_servers("localhost:1")
    builder.set_value_only_deserializer(SimpleStringSchema())
    with pytest.raises(InvalidProgramError, match=message):
        change(builder).build()


def test_a_wrong_property_is_the_users_error(kafka):
    program = Program(kafka)
    program.builder.set_topics("a").set_property("no.such.property", "1")
    with pytest.raises(InvalidProgramError, match=r"wrong property of a Kafka source: .*no\.such\.property"):
        program.start()


def test_brokers_that_do_not_answer_are_named(kafka, monkeypatch):
    monkeypatch.setattr(enumerator, "_FIRST_ANSWER_SECONDS", 0.2)
    program = Program(kafka)
    program.builder.set_bootstrap_servers("127.0.0.1:1").set_topics("a")
    with pytest.raises(KafkaError, match=r"no answer from Kafka at 127\.0\.0\.1:1"):
        program.run()
