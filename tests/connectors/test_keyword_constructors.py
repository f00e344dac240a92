"""Constructors with keywords make the same connectors as builders."""

import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.common import Duration, SimpleStringSchema, Types
from penstock.common.errors import InvalidProgramError
from penstock.connectors.file_system import BucketAssigner, FileSink, FileSource, OutputFileConfig, StreamFormat
from penstock.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream import StreamExecutionEnvironment
from penstock.formats.records import Csv, Json, Text
from penstock.testing import MiniCluster


@dataclass
class Order:
    user: str
    amount: float


ORDERS = [Order("ann", 1.5), Order("bob", 2.0), Order("ann", 4.0)]


@pytest.fixture
def env():
    return StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)


def built(**properties):
    builder = KafkaSource.builder().set_bootstrap_servers("a:1,b:2").set_value_only_deserializer(SimpleStringSchema())
    return builder.set_properties(properties)


def like(one, other, *names):
    return [vars(one)[name] for name in names] == [vars(other)[name] for name in names]


NAMES = ("_properties", "_settings", "_subscription", "_starting", "_stopping", "_boundedness")
EARLIEST = KafkaOffsetResetStrategy.EARLIEST


@pytest.mark.parametrize(
    ("keywords", "builder"),
    [
        ({"topics": "t"}, built().set_topics("t")),
        (
            {"topics": ["t", "u"], "start": "latest"},
            built().set_topics("t", "u").set_starting_offsets(KafkaOffsetsInitializer.latest()),
        ),
        ({"topics": re.compile("t.*"), "group": "g"}, built().set_topic_pattern("t.*").set_group_id("g")),
        (
            {"topics": "t", "group": "g", "start": "committed"},
            built()
            .set_topics("t")
            .set_group_id("g")
            .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(EARLIEST)),
        ),
        (
            {"topics": "t", "start": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "stop": 2_000},
            built()
            .set_topics("t")
            .set_starting_offsets(KafkaOffsetsInitializer.timestamp(1_000))
            .set_bounded(KafkaOffsetsInitializer.timestamp(2_000)),
        ),
        (
            {
                "topics": "t",
                "stop": KafkaOffsetsInitializer.latest(),
                "bounded": False,
                "properties": {"client.id": "c"},
            },
            built(**{"client.id": "c"}).set_topics("t").set_unbounded(KafkaOffsetsInitializer.latest()),
        ),
    ],
)
def test_a_kafka_source_is_the_builders(keywords, builder):
    source = KafkaSource(servers=["a:1", "b:2"], value=Text(), **keywords)
    assert like(source, builder.build(), *NAMES)


def test_a_kafka_sink_is_the_builders():
    schema = KafkaRecordSerializationSchema.builder().set_topic("t").set_value_serialization_schema(Json()).build()
    builder = KafkaSink.builder().set_bootstrap_servers("a:1").set_record_serializer(schema)
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("job")
    sink = KafkaSink(servers="a:1", topic="t", value=Json(), exactly_once="job")
    assert like(sink, builder.build(), "_settings", "_guarantee", "_transactional_id_prefix")


def test_the_key_of_a_kafka_record_is_a_field_a_function_or_a_schema():
    for key in ("user", lambda order: order.user.encode(), 0):
        sink = KafkaSink(servers="a:1", topic=lambda order: f"orders-{order.user}", value=Json(), key=key)
        record = sink._serializer.serialize(ORDERS[0], None, 5)
        assert (record.topic, record.key, record.value) == ("orders-ann", b"ann", b'{"user":"ann","amount":1.5}')


@pytest.mark.parametrize("make", [Json, Csv])
def test_files_of_a_class_are_read_as_they_were_written(env, tmp_path, make):
    env.from_collection(ORDERS).sink_to(
        FileSink(tmp_path, format=make(Order), buckets=BucketAssigner.base_path_bucket_assigner())
    )
    env.execute()
    stream = env.from_source(FileSource(tmp_path, format=make(Order)))
    assert stream.get_name() == "FileSource"
    assert list(stream.collect()) == ORDERS


def test_a_file_source_skips_the_header_and_reads_text(env, tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("user,amount\nann,1.5\n\nbob,2\n", encoding="utf-8")
    assert list(env.from_source(FileSource(path, format=Csv(Order, header=True))).collect()) == ORDERS[:2]
    assert list(env.from_source(FileSource(path, format=Text())).collect())[2:] == ["", "bob,2"]


def test_a_file_source_is_the_builders(tmp_path):
    text = StreamFormat.text_line_format()
    builder = FileSource.for_record_stream_format(text, tmp_path).monitor_continuously(Duration.of_seconds(5))
    source = FileSource(tmp_path, format=text, watch_every="5 s", reread_modified=True)
    assert vars(source) == vars(builder.reread_modified_files().build())


def test_a_file_sink_is_the_builders(tmp_path):
    text, names = Text().encoder(), OutputFileConfig("a", ".txt")
    builder = FileSink.for_row_format(tmp_path, text).with_output_file_config(names)
    one, other = FileSink(tmp_path, format=text, names=names)._options, builder.build()._options
    assert (one.base_path, one.encoder, one.names) == (other.base_path, other.encoder, other.names)


def test_a_broken_line_is_named_with_its_file(env, tmp_path):
    (tmp_path / "bad.json").write_text('{"user": "ann"}\n', encoding="utf-8")
    with pytest.raises(Exception, match=r"bad\.json: .*the field 'amount' of Order is missing"):
        list(env.from_source(FileSource(tmp_path, format=Json(Order))).collect())


@pytest.mark.parametrize(
    ("key", "rows"), [((), [("ann", 1.5), ("ann", 4.0), ("bob", 2.0)]), ("user", [("ann", 4.0), ("bob", 2.0)])]
)
@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_jdbc_sink_inserts_or_updates(env, tmp_path, key, rows, exactly_once):
    path = tmp_path / "orders.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE orders (user TEXT {'PRIMARY KEY' if key else ''}, amount REAL)")
    connection.close()
    env.from_collection(ORDERS).sink_to(
        JdbcSink(table="orders", url=f"jdbc:sqlite:{path}", record=Order, key=key, exactly_once=exactly_once)
    )
    env.execute()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT * FROM orders ORDER BY 1, 2").fetchall() == rows
    connection.close()


def test_a_jdbc_sink_is_the_factorys():
    row = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.DOUBLE()])
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:/tmp/none.db").build()
    made = JdbcSink.upsert_sink("orders", row, ["user"], connection)
    assert JdbcSink(table="orders", url="jdbc:sqlite:/tmp/none.db", record=Order, key="user").sql == made.sql


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: KafkaSource(servers="a:1", topics="t"),
            r"a Kafka source takes one of value=Json\(...\) and record=...",
        ),
        (
            lambda: KafkaSource(servers="a:1", topics="t", value=Text(), start="first"),
            "start and stop must be 'earliest'",
        ),
        (
            lambda: KafkaSink(servers="a:1", topic="t"),
            r"a Kafka sink needs topic=... and value=Json\(\), or record=...",
        ),
        (
            lambda: KafkaSink(servers="a:1", topic="t", value=Text(), exactly_once=True),
            "exactly_once must be a name for the sink's transactions",
        ),
        (lambda: FileSource(format=Text()), "needs the path of a file or a directory"),
        (lambda: FileSource("/tmp", format=5), "expected a FileFormat, got 5: use, for example, Csv"),
        (lambda: FileSink("/tmp", format=5), "a row format must be an Encoder, got 5"),
        (lambda: JdbcSink(table="t", record=Order), "a JDBC sink needs a statement and a database"),
        (
            lambda: JdbcSink(table="t", url="jdbc:sqlite:x", record=Order, key="id"),
            r"the key fields must be some of user, amount, got \['id'\]",
        ),
    ],
)
def test_what_is_missing_is_named(make, message):
    with pytest.raises(InvalidProgramError, match=message):
        make()
