"""The Kafka source against a real broker."""

import pytest
from processes import wait_until

from penstock.common import Duration, SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.datastream import ProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import (
    KafkaError,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
    enumerator,
    reader,
)
from penstock.testing import ManualClock, MiniCluster

pytestmark = pytest.mark.kafka

EARLIEST = KafkaOffsetsInitializer.earliest()
LATEST = KafkaOffsetsInitializer.latest()
SEEN = []


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    SEEN.clear()
    monkeypatch.setattr(enumerator, "_REFRESH_SECONDS", 0.0)  # every plan knows what there is


def see(value):
    SEEN.append(value)
    return value


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        SEEN.append((value, ctx.timestamp(), ctx.timer_service().current_watermark()))
        yield value


def take():
    found = list(SEEN)
    SEEN.clear()
    return found


class Program:
    """A job that reads a Kafka source; what it has read is in SEEN."""

    def __init__(self, kafka, *, parallelism=1, max_records=None, strategy=None, clock=None):
        self.builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers)
        self.builder.set_value_only_deserializer(SimpleStringSchema())
        self.cluster = MiniCluster(max_records=max_records, clock=clock)
        self.parallelism = parallelism
        self.strategy = strategy or WatermarkStrategy.no_watermarks()
        self.function = see

    def start(self, snapshot=None):
        env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(self.parallelism)
        stream = env.from_source(self.builder.build(), self.strategy, "kafka").uid("kafka")
        if self.function is see:
            stream.map(see).print()
        else:
            stream.rebalance().process(self.function).set_parallelism(1).print()
        return self.cluster.start(env._sinks, env._job_settings("job"), snapshot=snapshot)

    def run(self, snapshot=None):
        """Read what there is."""
        job = self.start(snapshot)
        job.run()
        state = job.snapshot()
        job.close()
        return state


def numbers(*bounds):
    return [str(n) for n in range(*bounds)]


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
    assert again.coordinator.works(again.offset, planned) == []
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
    with pytest.raises(KafkaError, match=rf"no offset to begin with for partition {topic}-1: 99 is not within 0 to 4"):
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
    with pytest.raises(KafkaError, match=r"the consumer group has none; give a KafkaOffsetResetStrategy"):
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
    with pytest.raises((KafkaError, JobExecutionError), match="retention has removed them"):
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


# -- the builder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda builder: builder, "needs set_topics"),
        (lambda builder: builder.set_topics("a").set_topic_pattern("b"), "takes one of topics, topic pattern"),
        (lambda builder: builder.set_topics(), "set_topics.. takes names"),
        (lambda builder: builder.set_topic_pattern("("), "is not one"),
        (lambda builder: builder.set_partitions(["a"]), "takes KafkaTopicPartitions"),
        (lambda builder: builder.set_starting_offsets("earliest"), "KafkaOffsetsInitializer is needed"),
        (
            lambda builder: builder.set_topics("a").set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()),
            "set_group_id.. is missing",
        ),
        (lambda builder: KafkaSource.builder().set_topics("a"), "needs set_bootstrap_servers"),
        (
            lambda builder: KafkaSource.builder().set_bootstrap_servers("x").set_topics("a"),
            "needs set_value_only_deserializer",
        ),
        (lambda builder: builder.set_value_only_deserializer(str), "DeserializationSchema is needed"),
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
