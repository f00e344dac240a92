"""The Kafka sink against a real broker."""

import random

import pytest

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.common.serialization import RowFieldExtractorSchema
from penstock.connectors.kafka import (
    DeliveryGuarantee,
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KafkaError,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicSelector,
    ProducerRecord,
    committer,
)
from penstock.connectors.kafka.committer import CheckpointTransaction
from penstock.core.sink import WriterInitContext
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import MiniCluster

pytestmark = pytest.mark.kafka

GUARANTEES = list(DeliveryGuarantee)


def serializer(topic):
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return builder.set_value_serialization_schema(SimpleStringSchema()).build()


def sink_to(kafka, schema, guarantee=DeliveryGuarantee.AT_LEAST_ONCE, prefix=None, properties=None):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(schema)
    builder.set_delivery_guarantee(guarantee)
    for key, value in (properties or {}).items():
        builder.set_property(key, value)
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        builder.set_transactional_id_prefix(prefix or f"prefix-{random.randrange(2**40)}")
    return builder.build()


def write(sink, records, parallelism=1):
    """A job that writes records, given with their timestamps."""
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=7)).set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    stream.map(lambda record: record[0]).sink_to(sink)
    env.execute("write")


# -- all guarantees --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_every_record_arrives_with_its_event_timestamp(kafka, guarantee):
    topic = kafka.topic()
    write(sink_to(kafka, serializer(topic), guarantee), [(f"v{n}", 1_000 + n) for n in range(20)])
    found = kafka.messages(topic)
    assert [(message.value(), message.timestamp()[1]) for message in found] == [
        (b"v%d" % n, 1_000 + n) for n in range(20)
    ]


class ByFirst(KafkaTopicSelector):
    def __init__(self, topics):
        self.topics = topics

    def apply(self, data):
        return self.topics[data[0]]


class Longest(FlinkKafkaPartitioner):
    def partition(self, record, key, value, target_topic, partitions):
        assert (key, value, list(partitions)) == (record[1].encode(), record[2].encode(), [0, 1])
        return 1 if len(value) > 3 else 0


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_topic_key_partition_and_headers_are_the_users_choice(kafka, guarantee):
    topics = {"a": kafka.topic(2), "b": kafka.topic(2)}
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(ByFirst(topics))
        .set_key_serialization_schema(RowFieldExtractorSchema(1))
        .set_value_serialization_schema(RowFieldExtractorSchema(2))
        .set_partitioner(Longest())
        .set_header_provider(lambda record: {"kind": record[0].encode()})
        .build()
    )
    write(sink_to(kafka, schema, guarantee), [(("a", "k", "long value"), 5), (("b", "k", "abc"), 6)])
    for name, expected in [
        ("a", (b"k", b"long value", 1, [("kind", b"a")])),
        ("b", (b"k", b"abc", 0, [("kind", b"b")])),
    ]:
        (message,) = kafka.messages(topics[name])
        assert (message.key(), message.value(), message.partition(), message.headers()) == expected


class Everything(KafkaRecordSerializationSchema):
    """Written by hand: some records are left out, some are tombstones."""

    def __init__(self, topic):
        self.topic = topic

    def serialize(self, element, context, timestamp):
        if element == "skip":
            return None
        value = None if element == "tombstone" else element.encode()
        return ProducerRecord(self.topic, value, b"k", context.partitions_for_topic(self.topic)[-1], timestamp * 2)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_schema_may_be_written_by_hand(kafka, guarantee):
    topic = kafka.topic(3)
    write(sink_to(kafka, Everything(topic), guarantee), [("a", 1), ("skip", 2), ("tombstone", 3)])
    found = [(m.key(), m.value(), m.partition(), m.timestamp()[1]) for m in kafka.messages(topic)]
    assert found == [(b"k", b"a", 2, 2), (b"k", None, 2, 6)]


def murmur2_partition(key, partitions):
    """Where Kafka's Java client puts a key."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    for i in range(0, len(key) - 3, 4):
        k = int.from_bytes(key[i : i + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    rest = key[len(key) & ~3 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE])
def test_a_key_goes_to_the_partition_javas_client_would_choose(kafka, guarantee):
    topic = kafka.topic(7)
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
    builder.set_key_serialization_schema(SimpleStringSchema()).set_value_serialization_schema(SimpleStringSchema())
    write(sink_to(kafka, builder.build(), guarantee), [("k" * (n % 5) + str(n), n) for n in range(60)])
    found = kafka.messages(topic)
    assert len(found) == 60
    assert all(message.partition() == murmur2_partition(message.key(), 7) for message in found)


def test_the_fixed_partitioner_gives_every_task_one_partition(kafka):
    topic = kafka.topic(3)
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic).set_partitioner(FlinkFixedPartitioner())
    schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()
    sink = sink_to(kafka, schema)
    for subtask in range(2):
        writer = sink.create_writer(WriterInitContext(subtask_id=subtask, parallelism=2, checkpoint_id=1))
        writer.write_batch([subtask] * 3, None)
        writer.flush(end_of_input=True)
        writer.close()
    assert sorted((m.partition(), m.value()) for m in kafka.messages(topic)) == [(0, b"0")] * 3 + [(1, b"1")] * 3


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_record_that_cannot_be_serialized_is_named(kafka, guarantee):
    builder = KafkaRecordSerializationSchema.builder().set_topic(kafka.topic())
    schema = builder.set_value_serialization_schema(RowFieldExtractorSchema(1)).build()
    with pytest.raises(KafkaError, match=r"record \('alone',\) cannot be serialized for Kafka: IndexError"):
        write(sink_to(kafka, schema, guarantee), [(("a", "b"), 1), (("alone",), 2)])


def test_a_record_that_is_not_delivered_fails_the_job(kafka):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers)
    builder.set_record_serializer(serializer("no-such-topic"))
    builder.set_property("topic.metadata.propagation.max.ms", "100")
    with pytest.raises(KafkaError, match=r"a record for topic no-such-topic was not delivered"):
        write(builder.build(), [("a", 1)])


def test_a_transaction_for_a_topic_that_is_not_there_fails_the_job(kafka, monkeypatch):
    monkeypatch.setattr(committer, "_TOPIC_SECONDS", 0.2)
    sink = sink_to(kafka, serializer("no-such-topic"), DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(KafkaError, match=r"Kafka has no topic no-such-topic: create it"):
        write(sink, [("a", 1)])


# -- exactly once ----------------------------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield f"{ctx.get_current_key()} {self.count.value()}"


class CountingJob:
    """Kafka -> count by key -> Kafka, which can be stopped anywhere and continued from its last checkpoint."""

    KEYS = 5

    def __init__(self, kafka, records=120, parallelism=2, prefix=None):
        self.kafka = kafka
        self.records = records
        self.parallelism = parallelism
        self.source, self.target = kafka.topic(3), kafka.topic(2)
        self.prefix = prefix or f"count-{self.target}"
        for partition in range(3):
            kafka.send(self.source, range(partition, records, 3), partition=partition)
        self.checkpoint = None
        self.properties = {}

    def start(self):
        env = StreamExecutionEnvironment(executor=MiniCluster(max_records=30)).set_parallelism(self.parallelism)
        builder = KafkaSource.builder().set_bootstrap_servers(self.kafka.bootstrap_servers).set_topics(self.source)
        builder.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(SimpleStringSchema())
        stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "source").uid("source")
        counts = stream.key_by(lambda value: int(value) % 5).process(Count()).uid("count")
        schema, once = serializer(self.target), DeliveryGuarantee.EXACTLY_ONCE
        sink = sink_to(self.kafka, schema, once, self.prefix, self.properties)
        counts.sink_to(sink).uid("sink")
        return env._executor.start(env.sinks, env.job_settings("count"), snapshot=self.checkpoint)

    def check(self):
        counts = {key: len(range(key, self.records, self.KEYS)) for key in range(self.KEYS)}
        expected = sorted(f"{key} {n}" for key, total in counts.items() for n in range(1, total + 1))
        assert sorted(self.kafka.values(self.target)) == expected


class SimulatedCrashError(BaseException):
    """The end of the process, as far as the job can tell."""


@pytest.mark.parametrize("target", [None, "__looks_internal"])
def test_a_batch_replayed_after_its_commit_is_not_written_again(kafka, target):
    program = CountingJob(kafka)
    program.target = kafka.topic(name=target) if target else program.target
    for _ in range(2):
        job = program.start()
        job.run_batch()
        program.checkpoint = job.snapshot()
        job.run_batch()  # committed in Kafka, and then the driver is gone before Spark knows
    program.start().run()
    program.check()


@pytest.mark.parametrize("step", ["begin_transaction", "send_offsets_to_transaction", "commit_transaction"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_step_of_the_commit_loses_and_doubles_nothing(kafka, monkeypatch, step, moment):
    program = CountingJob(kafka)
    original = CheckpointTransaction.write
    left = [2]  # batches until the crash

    def crash_in(self, chunks, checkpoint_id):
        left[0] -= 1
        if left[0] == 0:
            self.producer.client = Crashing(self.producer.client, step, moment)
        original(self, chunks, checkpoint_id)

    monkeypatch.setattr(CheckpointTransaction, "write", crash_in)
    for _ in range(2):
        left[0] = 2
        job = program.start()
        job.run_batch()
        program.checkpoint = job.snapshot()
        with pytest.raises(SimulatedCrashError):
            job.run_batch()
    monkeypatch.undo()
    program.start().run()
    program.check()


class Crashing:
    """A client that takes the process with it at one call."""

    def __init__(self, client, step, moment):
        self._client, self._step, self._moment = client, step, moment

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if name != self._step:
            return method

        def crash(*arguments):
            if self._moment == "after":
                method(*arguments)
            raise SimulatedCrashError

        return crash


def test_an_answer_that_got_lost_is_found_out_by_asking_again(kafka, monkeypatch):
    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka import KafkaException

    program = CountingJob(kafka)
    original = CheckpointTransaction.write
    lost = []

    def lose_answers(self, chunks, checkpoint_id):
        original(self, chunks, checkpoint_id)
        if len(lost) < 3 and checkpoint_id not in lost:
            lost.append(checkpoint_id)
            raise KafkaException(ClientError(ClientError._TIMED_OUT, "no answer"))

    monkeypatch.setattr(CheckpointTransaction, "write", lose_answers)
    program.start().run()
    assert lost == [1, 2, 3]
    program.check()


def test_a_commit_that_keeps_failing_is_an_error_that_says_why(kafka, monkeypatch):
    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka import KafkaException

    def fail(self, chunks, checkpoint_id):
        raise KafkaException(ClientError(ClientError._TIMED_OUT, "no answer"))

    monkeypatch.setattr(CheckpointTransaction, "write", fail)
    program = CountingJob(kafka)
    with pytest.raises(KafkaError, match="checkpoint 1 could not be written to Kafka: no answer"):
        program.start().run()


def test_a_zombie_is_fenced_off(kafka):
    program = CountingJob(kafka)
    zombie = program.start()
    zombie.run_batch()
    program.checkpoint = zombie.snapshot()
    successor = program.start()
    successor.run_batch()
    with pytest.raises(KafkaError, match=f"another job took over the transactional id 'count-{program.target}'"):
        zombie.run()
    successor.run()
    program.check()


def test_an_open_transaction_of_a_dead_driver_is_ended_by_the_next(kafka):
    program = CountingJob(kafka)
    dead = kafka.producer(transactional_id=program.prefix)
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(program.target, b"never committed", partition=0)
    dead.produce(program.target, b"never committed", partition=1)
    dead.flush(30)
    program.start().run()
    program.check()
    assert "never committed" in kafka.values(program.target, level="read_uncommitted")


def test_a_job_that_starts_anew_writes_everything_again(kafka):
    program = CountingJob(kafka)
    program.start().run()
    once = kafka.values(program.target)
    program.start().run()  # no checkpoint: another line of checkpoints, with the same prefix
    assert sorted(kafka.values(program.target)) == sorted(once + once)


def test_the_number_of_tasks_may_change_between_commit_and_replay(kafka):
    """The whole checkpoint is one transaction, so who wrote what does not matter."""
    target = kafka.topic()
    sink = sink_to(kafka, serializer(target), DeliveryGuarantee.EXACTLY_ONCE)

    def commit(parallelism, values, checkpoint_id):
        committables = []
        for subtask in range(parallelism):
            context = WriterInitContext(subtask, parallelism, checkpoint_id, job_id="job")
            writer = sink.create_writer(context)
            writer.write_batch(values[subtask::parallelism], None)
            writer.flush(end_of_input=False)
            committables += writer.prepare_commit()
        sink.create_committer().commit(committables, checkpoint_id)

    commit(1, "abcd", 1)
    commit(3, "abcd", 1)
    commit(3, "ef", 2)
    assert sorted(kafka.values(target)) == list("abcdef")


def test_readers_see_a_checkpoint_of_all_tasks_or_nothing(kafka, monkeypatch):
    program = CountingJob(kafka, parallelism=3)
    sizes = []
    original = CheckpointTransaction.write

    def look(self, chunks, checkpoint_id):
        before = len(kafka.values(program.target))
        original(self, chunks, checkpoint_id)
        sizes.append(len(kafka.values(program.target)) - before)
        assert sizes[-1] == sum(len(chunk.values) for chunk in chunks)

    monkeypatch.setattr(CheckpointTransaction, "write", look)
    job = program.start()
    job.run_batch()
    job.run_batch()
    assert all(sizes)
    assert len(sizes) == 2


def test_a_checkpoint_without_output_needs_no_transaction(kafka, monkeypatch):
    monkeypatch.setattr(committer, "CheckpointTransaction", None)
    target = kafka.topic()
    env = StreamExecutionEnvironment(executor=MiniCluster())
    stream = env.from_collection([1, 2, 3]).filter(lambda n: n > 5)
    stream.sink_to(sink_to(kafka, serializer(target), DeliveryGuarantee.EXACTLY_ONCE))
    env.execute("nothing")
    assert kafka.values(target) == []


# -- the builder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: KafkaSink.builder().build(), "needs set_bootstrap_servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("x").build(), "needs set_record_serializer"),
        (
            lambda: (
                KafkaSink.builder()
                .set_bootstrap_servers("x")
                .set_record_serializer(serializer("t"))
                .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .build()
            ),
            "needs set_transactional_id_prefix",
        ),
        (lambda: KafkaSink.builder().set_delivery_guarantee("exactly-once"), "expected a DeliveryGuarantee"),
        (lambda: KafkaSink.builder().set_record_serializer(str), "takes a KafkaRecordSerializationSchema"),
        (lambda: KafkaRecordSerializationSchema.builder().build(), "needs set_topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), "needs set_value_serialization"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").set_topic("u"), "takes one topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic_selector("t"), "takes a KafkaTopicSelector"),
        (lambda: KafkaRecordSerializationSchema.builder().set_partitioner(len), "takes a FlinkKafkaPartitioner"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_key_serialization_schema(str),
            "expected a SerializationSchema",
        ),
    ],
)
def test_the_builder_says_what_is_wrong(build, message):
    with pytest.raises(InvalidProgramError, match=message):
        build()
