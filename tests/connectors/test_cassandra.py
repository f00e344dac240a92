"""Rows into a real Cassandra: tuples, rows and dataclasses, upserts, a write-ahead log, kills."""

import importlib
import itertools
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from crashing import TROUBLE, Crashing, troublesome

from penstock.common import Row, Types
from penstock.common.errors import PenstockError, RetryCommitError
from penstock.core.sink import WriterInitContext
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import (
    CassandraCommitter,
    CassandraFailureHandler,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
    column,
    table,
)
from penstock.testing import MiniCluster
from penstock.testing.server import ServerUnavailableError

pytest.importorskip("cassandra")
pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

INSERT = "INSERT INTO example.{} (k, v) VALUES (?, ?)"
TABLES = itertools.count()


@pytest.fixture(scope="module")
def server():
    from penstock.testing.cassandra_server import CassandraServer

    try:
        running = CassandraServer().start()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    running.execute("CREATE KEYSPACE example WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    yield running
    running.stop()


@pytest.fixture
def name(server):
    """A new table of keys and values."""
    name = f"t{next(TABLES)}"
    server.execute(f"CREATE TABLE example.{name} (k text PRIMARY KEY, v int, w int)")
    return name


@pytest.fixture
def sink(server):
    def make(query=None, **settings):
        return CassandraSink.sink(query, host=server.host, port=server.port, **settings)

    return make


def rows(server, name, what="k, v"):
    return {tuple(row) for row in server.execute(f"SELECT {what} FROM example.{name}")}


def write(sink, batches, first_time=1_000):
    """Each batch has a processing time and a checkpoint of its own."""
    writer = sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1))
    for number, records in enumerate(batches):
        writer.current_processing_time = first_time + number
        writer.write_batch(records, None)
        writer.flush(end_of_input=False)
    writer.close()


@table("readings", keyspace="example")
@dataclass
class Reading:
    sensor: str = column("sensorId")
    value: float | None
    note: str = column(transient=True, default="")


@pytest.fixture(scope="module")
def readings(server):
    server.execute("CREATE TABLE example.readings (sensorId text PRIMARY KEY, value double)")
    return "readings"


# -- what is written ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ([("a", 1), ("b", 2), ("a", 3)], None),
        ([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()])),
        ([Row("a", 1), Row("b", 2), Row("a", 3)], Types.ROW([Types.STRING(), Types.INT()])),
        ([Row(v=1, k="a"), Row(k="b", v=2), ("a", 3)], Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()])),
    ],
)
def test_tuples_and_rows_are_upserts_by_a_query(tmp_path, server, name, records, kind):
    def build(env):
        stream = env.from_collection(records, type_info=kind)
        builder = CassandraSink.add_sink(stream).set_host(server.host, server.port)
        builder.set_query(INSERT.format(name)).build().set_parallelism(1)

    assert Crashing(tmp_path, build, parallelism=1).run() == 0
    assert rows(server, name) == {("a", 3), ("b", 2)}


@pytest.mark.parametrize("write_ahead_log", [False, True])
def test_mapped_dataclasses_need_no_query(tmp_path, server, readings, sink, write_ahead_log):
    server.execute(f"TRUNCATE example.{readings}")
    to_cassandra = sink(write_ahead_log=write_ahead_log)

    def build(env):
        env.from_collection([Reading("a", 1.5, "x"), Reading("b", None), Reading("a", 2.5)]).sink_to(to_cassandra)

    assert Crashing(tmp_path, build, parallelism=1).run() == 0
    assert rows(server, readings, "sensorId, value") == {("a", 2.5), ("b", None)}


def test_the_last_write_of_a_row_wins_though_all_are_under_way_at_once(server, name, sink):
    records = [(str(key), round_) for round_ in range(100) for key in range(3)]
    write(sink(INSERT.format(name), max_concurrent_requests=200), [records])
    assert rows(server, name) == {("0", 99), ("1", 99), ("2", 99)}


def test_types_of_cassandra_take_the_values_of_python(server, sink):
    server.execute("CREATE TYPE example.place (x int, y int)")
    server.execute(
        "CREATE TABLE example.types (k uuid PRIMARY KEY, at timestamp, places list<frozen<place>>, "
        "counts map<text, int>, raw blob, price decimal)"
    )
    from datetime import UTC, datetime
    from decimal import Decimal

    key, at = uuid.uuid4(), datetime(2024, 5, 1, 12, tzinfo=UTC)
    record = (key, at, [Row(1, 2)], {"a": 1}, b"\0\1", Decimal("1.50"))
    write(sink("INSERT INTO example.types (k, at, places, counts, raw, price) VALUES (?, ?, ?, ?, ?, ?)"), [[record]])
    (found,) = server.execute("SELECT * FROM example.types")
    assert (found.k, found.at.replace(tzinfo=UTC), found.raw, found.price) == (key, at, b"\0\1", Decimal("1.50"))
    assert (dict(found.counts), [(place.x, place.y) for place in found.places]) == ({"a": 1}, [(1, 2)])


@pytest.mark.parametrize(("ignored", "left"), [(False, {("a", None)}), (True, {("a", 1)})])
def test_none_deletes_a_value_unless_it_is_to_be_ignored(server, name, sink, ignored, left):
    write(sink(INSERT.format(name), ignore_null_fields=ignored), [[("a", 1)], [("a", None)]])
    assert rows(server, name) == left


def test_mapper_options_reach_cassandra(server, readings, sink):
    server.execute(f"TRUNCATE example.{readings}")
    options = MapperOptions(ttl=3_600, timestamp=77, consistency_level=ConsistencyLevel.ONE, tracing=True)
    write(sink(mapper_options=options), [[Reading("a", 1.0)]])
    ((value, time, left),) = rows(server, readings, "value, writetime(value), ttl(value)")
    assert (value, time) == (1.0, 77)
    assert 0 < left <= 3_600
    write(sink(mapper_options=MapperOptions(if_not_exists=True)), [[Reading("a", 2.0), Reading("b", 2.0)]])
    assert rows(server, readings, "sensorId, value") == {("a", 1.0), ("b", 2.0)}
    write(sink(mapper_options=MapperOptions().save_null_fields(False)), [[Reading("b", None)]], first_time=2**40)
    assert rows(server, readings, "sensorId, value") == {("a", 1.0), ("b", 2.0)}


def test_a_record_that_cassandra_rejects_fails_the_job_and_is_shown(tmp_path, server, name, sink):
    to_cassandra = sink(INSERT.format(name))

    def build(env):
        env.from_collection([("a", 1), ("b", "text"), ("c", 3)]).sink_to(to_cassandra).set_parallelism(1)

    with pytest.raises(PenstockError, match=r"rejected the record \('b', 'text'\): TypeError"):
        Crashing(tmp_path, build, max_records=10).start().run()


def test_a_failure_handler_skips_what_cassandra_rejects(server, name, sink):
    skipped = []
    handler = CassandraFailureHandler(lambda failure: skipped.append(failure.record))
    write(sink(INSERT.format(name), failure_handler=handler), [[("a", 1), ("", 2), ("c", 3)]])
    assert rows(server, name) == {("a", 1), ("c", 3)}
    assert skipped == ["('', 2)"]


def test_a_query_that_is_wrong_fails_the_job_with_cassandras_words(server, sink):
    with pytest.raises(PenstockError, match="missing"):
        write(sink(INSERT.format("missing")), [[("a", 1)]])


def test_a_cluster_builder_is_a_function_or_arguments_of_the_driver(server, name):
    from cassandra.cluster import Cluster
    from cassandra.policies import RoundRobinPolicy

    host, port = server.host, server.port

    def connect():
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile

        profiles = {EXEC_PROFILE_DEFAULT: ExecutionProfile(load_balancing_policy=RoundRobinPolicy())}
        return Cluster(
            [host], port=port, execution_profiles=profiles, protocol_version=4, timestamp_generator=lambda: 9
        )

    write(CassandraSink.sink(INSERT.format(name), cluster_builder=ClusterBuilder(connect)), [[("a", 1)]])
    builder = ClusterBuilder(contact_points=[host], port=port, connect_timeout=30)
    write(CassandraSink.sink(INSERT.format(name), cluster_builder=builder), [[("b", 1)]])
    assert rows(server, name, "k, writetime(v)") == {("a", 9), ("b", 1_000_000)}  # a clock of the user's own stays


# -- failures -------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_repeated_writes_the_same_rows_with_the_same_times(server, name, sink):
    """So neither a repetition nor a task that was given up replaces anything newer."""
    batches = [[("a", 1), ("b", 1)], [("a", 2), ("a", 3)]]
    write(sink(INSERT.format(name)), batches)
    before = rows(server, name, "k, v, writetime(v)")
    write(sink(INSERT.format(name)), batches[:1])
    assert rows(server, name, "k, v, writetime(v)") == before == {("a", 3, 1_001_001), ("b", 1, 1_000_001)}


def test_every_row_is_right_in_the_end_whatever_crashes(tmp_path, server, name, sink):
    to_cassandra = sink(INSERT.format(name))
    TROUBLE.update(dict.fromkeys((7, 22), True))

    def build(env):
        numbers = env.from_sequence(1, 30).map(troublesome)
        numbers.map(lambda n: (f"k{n % 5}", n)).set_parallelism(1).sink_to(to_cassandra).set_parallelism(1)

    assert Crashing(tmp_path, build, max_records=3, cold=True, parallelism=1).run() == 2
    assert rows(server, name) == {(f"k{n % 5}", n) for n in range(26, 31)}


def test_a_write_ahead_log_writes_checkpoint_by_checkpoint_and_notes_each_in_a_table(tmp_path, server, name, sink):
    to_cassandra = sink(INSERT.format(name), write_ahead_log=True)
    seen = []

    def build(env):
        env.from_sequence(1, 6).map(lambda n: (str(n), n)).sink_to(to_cassandra).uid("rows")

    job = Crashing(
        tmp_path, build, max_records=2, parallelism=1, after_step=lambda: seen.append(len(rows(server, name)))
    )
    assert job.run() == 0
    assert seen[:3] == [2, 4, 6]
    assert rows(server, name) == {(str(n), n) for n in range(1, 7)}
    noted = server.execute(
        "SELECT * FROM penstock_auxiliary.checkpoints WHERE job_id = %s ALLOW FILTERING", [job.job_id]
    )
    ((_, _, subtask, checkpoint),) = noted
    assert (subtask, checkpoint >= 3) == (0, True)


def test_with_a_write_ahead_log_a_program_that_is_not_deterministic_writes_each_record_once(
    tmp_path, server, name, sink
):
    """Each run of a batch makes other keys. Those of a run that failed are not in the table."""
    with_log = sink(INSERT.format(name), write_ahead_log=True)
    TROUBLE.update(dict.fromkeys((4, 9, 17), True))

    def build(env):
        made = env.from_sequence(1, 20).map(lambda n: (str(uuid.uuid4()), n))
        made.map(lambda pair: troublesome(pair[1]) and pair).sink_to(with_log).uid("rows")

    assert Crashing(tmp_path, build, max_records=3, cold=True).run() == 3
    found = rows(server, name)
    assert sorted(n for _, n in found) == list(range(1, 21))


def test_a_segment_that_the_table_knows_is_not_written_again(server):
    builder = ClusterBuilder(contact_points=[server.host], port=server.port)

    def committer(job_id):
        made = CassandraCommitter.default_checkpoint_committer(builder, "notes")
        made.set_job_id(job_id)
        made.set_operator_id("sink")
        made.create_resource()
        made.open()
        return made

    first = committer("job")
    first.commit_checkpoint(0, 7)
    first.commit_checkpoint(1, 6)
    first.close()
    again, other = committer("job"), committer("other job")
    assert [again.is_checkpoint_committed(0, n) for n in (6, 7, 8)] == [True, True, False]
    assert [again.is_checkpoint_committed(1, n) for n in (6, 7)] == [True, False]
    assert not other.is_checkpoint_committed(0, 1)
    again.close()
    other.close()


def test_a_committer_whose_cassandra_is_away_asks_to_be_called_again():
    committer = CassandraCommitter(ClusterBuilder(contact_points=["127.0.0.1"], port=9, connect_timeout=1))
    with pytest.raises(RetryCommitError, match="Cassandra is unavailable"):
        committer.create_resource()


def test_a_cassandra_that_is_killed_and_comes_back_has_every_row(tmp_path, server, name, sink):
    """One job with both sinks. It waits for Cassandra or crashes and is restarted, whichever comes first."""
    server.execute(f"CREATE TABLE example.{name}_log (k text PRIMARY KEY, v int)")
    plain = sink(INSERT.format(name), max_retries=100)
    logged = sink(INSERT.format(f"{name}_log"), max_retries=100, write_ahead_log=True)
    killed = []

    def build(env):
        pairs = env.from_sequence(1, 60).map(lambda n: (f"k{n % 10}", n))
        pairs.sink_to(plain).uid("plain")
        pairs.map(lambda pair: (str(uuid.uuid4()), pair[1])).sink_to(logged).uid("logged")

    def kill_once():
        if not killed and len(rows(server, name)) >= 5:
            server.kill()
            server.resume(wait=False)
            killed.append(True)

    Crashing(tmp_path, build, max_records=6, parallelism=1, after_step=kill_once).run(attempts=200)
    assert killed
    assert rows(server, name) == {(f"k{n % 10}", n) for n in range(51, 61)}
    assert sorted(n for _, n in rows(server, f"{name}_log")) == list(range(1, 61))


# -- the example ----------------------------------------------------------------------------------------------------


def test_the_example_prints_its_tables(server, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples" / "connectors"))
    program = importlib.import_module("cassandra_tables")

    def mini_environment():
        return StreamExecutionEnvironment(executor=MiniCluster(max_records=2)).set_parallelism(2)

    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(mini_environment))
    assert program.main(["--host", server.host, "--port", str(server.port)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sensors  sensor_1 69.0",
        "sensors  sensor_2 70.5",
        "sensors  sensor_3 74.5",
        "highest  sensor_1 69.0",
        "highest  sensor_2 71.0",
        "highest  sensor_3 74.5",
        "alerts   sensor_2 70.5",
        "alerts   sensor_2 71.0",
        "alerts   sensor_3 74.5",
    ]
