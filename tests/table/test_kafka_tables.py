"""The connectors kafka and upsert-kafka on a real broker (T112, T120, T124)."""

import datetime as dt
import json

import pytest

from penstock.util.exceptions import ValidationException

BOUNDED = "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"


def create(t_env, name, columns, options, connector="kafka"):
    t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}', {options})")


def servers(kafka, topic):
    return f"'topic' = '{topic}', 'properties.bootstrap.servers' = '{kafka.broker.bootstrap_servers}'"


@pytest.mark.kafka
def test_rows_go_into_a_topic_and_come_back_with_key_and_metadata(sql, kafka):
    topic = kafka.topic()
    options = f"{servers(kafka, topic)}, 'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'json'"
    create(sql.t_env, "t", "k STRING, v INT", f"{options}, {BOUNDED}")
    sql.t_env.execute_sql("INSERT INTO t VALUES ('a', 1), ('b', 2)").wait()
    assert [json.loads(value) for value in kafka.values(topic)] == [{"k": "a", "v": 1}, {"k": "b", "v": 2}]
    columns = "k STRING, v INT, o BIGINT METADATA FROM 'offset', p INT METADATA FROM 'partition' VIRTUAL"
    create(sql.t_env, "with_metadata", columns, f"{options}, {BOUNDED}")
    assert sql.rows("SELECT k, v, o, p FROM with_metadata") == [("a", 1, 0, 0), ("b", 2, 1, 0)]


@pytest.mark.kafka
def test_the_time_of_a_record_is_a_rowtime(sql, kafka):
    topic = kafka.topic()
    kafka.send(topic, ['{"v": 1}', '{"v": 2}', '{"v": 4}'], timestamps=[1_000, 2_000, 12_000])
    columns = "v INT, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts"
    create(sql.t_env, "t", columns, f"{servers(kafka, topic)}, 'format' = 'json', {BOUNDED}")
    query = """SELECT window_start, SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))
               GROUP BY window_start, window_end"""
    first = dt.datetime(1970, 1, 1)
    assert sql.rows(query) == [(first, 3), (first + dt.timedelta(seconds=10), 4)]


@pytest.mark.kafka
def test_changes_of_a_database_come_from_a_topic(sql, kafka):
    topic = kafka.topic()
    messages = [
        {"before": None, "after": {"id": 1, "v": 5}, "op": "c"},
        {"before": {"id": 1, "v": 5}, "after": {"id": 1, "v": 7}, "op": "u"},
    ]
    kafka.send(topic, [json.dumps(message) for message in messages])
    create(sql.t_env, "t", "id INT, v INT", f"{servers(kafka, topic)}, 'format' = 'debezium-json', {BOUNDED}")
    assert sql.changelog("SELECT * FROM t") == [("+I", 1, 5), ("-U", 1, 5), ("+U", 1, 7)]


@pytest.mark.kafka
def test_t124_upsert_kafka_writes_the_last_row_of_a_key_and_reads_it_with_what_it_replaces(sql, kafka):
    topic = kafka.topic()
    options = f"{servers(kafka, topic)}, 'key.format' = 'json', 'value.format' = 'json'"
    columns = "k STRING, c BIGINT, PRIMARY KEY (k) NOT ENFORCED"
    create(sql.t_env, "t", columns, f"{options}, 'scan.bounded.mode' = 'latest-offset'", "upsert-kafka")
    sql.table("s", ["k", "v"], ("a", 8), ("b", 7), ("a", 1), ("b", -5))
    sql.t_env.execute_sql("INSERT INTO t SELECT k, SUM(v) FROM s GROUP BY k HAVING SUM(v) > 5").wait()
    written = kafka.messages(topic)
    assert [message.value() for message in written if message.key() == b'{"k":"b"}'][-1] is None
    assert sql.final("SELECT * FROM t") == [("a", 9)]
    assert sql.changelog("SELECT * FROM t WHERE k = 'b'") == [("+I", "b", 7), ("-D", "b", 7)]
    assert sql.final("SELECT SUM(c) FROM t") == [(9,)]


@pytest.mark.parametrize(
    ("connector", "options", "message"),
    [
        ("kafka", "'format' = 'json'", "properties.bootstrap.servers"),
        ("kafka", "'properties.bootstrap.servers' = 'h:1', 'format' = 'json'", "either 'topic' or 'topic-pattern'"),
        ("kafka", "'properties.bootstrap.servers' = 'h:1', 'topic' = 't', 'format' = 'json'", "properties.group.id"),
        (
            "kafka",
            "'properties.bootstrap.servers' = 'h:1', 'topic' = 't', 'format' = 'json', 'scan.startup.mode' = 'first'",
            "'scan.startup.mode' must be earliest-offset",
        ),
        (
            "kafka",
            "'properties.bootstrap.servers' = 'h:1', 'topic' = 't', 'format' = 'json', 'key.fields' = 'k'",
            "needs the option 'key.format'",
        ),
        (
            "upsert-kafka",
            "'properties.bootstrap.servers' = 'h:1', 'topic' = 't', 'key.format' = 'json', 'value.format' = 'json'",
            "require to define a PRIMARY KEY",
        ),
    ],
)
def test_t120_wrong_options_are_rejected_when_the_table_is_used(sql, connector, options, message):
    pytest.importorskip("confluent_kafka")
    create(sql.t_env, "t", "k STRING", options, connector)
    with pytest.raises(ValidationException, match=message):
        sql.rows("SELECT * FROM t")
