"""What a Cassandra sink is made of, without a Cassandra: builder, mapped dataclasses, values, writes that fail."""

import subprocess
import sys
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from penstock.common import Duration, Instant, Row, Types
from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.connectors.cassandra.executor import ExecutorSettings, WriteExecutor
from penstock.connectors.cassandra.mapping import insert_statement
from penstock.connectors.cassandra.statements import MappedStatements, QueryStatements
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import (
    CassandraFailureHandler,
    CassandraSink,
    CassandraWriteError,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
    column,
    table,
)
from penstock.testing import MiniCluster

pytest.importorskip("cassandra")
from cassandra import InvalidRequest, OperationTimedOut
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException
from cassandra.query import UNSET_VALUE

QUERY = "INSERT INTO example.sensors (sensorId, temperature) VALUES (?, ?)"


@table("sensors", keyspace="example")
@dataclass
class Reading:
    sensor_id: str = column("sensorId")
    temperature: float | None
    comment: str = column(transient=True, default="")


@table("sensors")
@dataclass
class Elsewhere:
    sensor_id: str


def stream(type_info=None):
    env = StreamExecutionEnvironment(executor=MiniCluster())
    return env.from_collection([("a", 1.0)], type_info=type_info)


# -- the builder ----------------------------------------------------------------------------------------------------


def test_a_sink_is_named_and_configured_as_in_pyflink():
    rows = stream(Types.ROW([Types.STRING(), Types.DOUBLE()]))
    builder = CassandraSink.add_sink(rows).set_host("localhost", 9876).set_query("query").enable_ignore_null_fields()
    options = MapperOptions().ttl(1).timestamp(100).tracing(True).if_not_exists(False)
    options.consistency_level(ConsistencyLevel.ANY).save_null_fields(True)
    sink = builder.set_mapper_options(options).set_max_concurrent_requests(1000, Duration.of_seconds(5)).build()
    assert sink.get_transformation().name == "Sink: Cassandra Sink"
    sink.name("cassandra_sink").uid("cassandra").set_parallelism(3).disable_chaining().slot_sharing_group("sinks")
    node = sink.get_transformation()
    assert (node.name, node.uid, node.parallelism) == ("Sink: cassandra_sink", "cassandra", 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"query": QUERY}, "either a host or a ClusterBuilder"),
        ({"query": QUERY, "host": "here", "cluster_builder": ClusterBuilder()}, "either a host or a ClusterBuilder"),
        ({"query": " ", "host": "here"}, "must not be empty"),
        ({"query": QUERY, "host": "here", "default_keyspace": "k"}, "for mapped dataclasses"),
        ({"query": QUERY, "host": "here", "max_concurrent_requests": 0}, "must be at least 1"),
        ({"query": QUERY, "host": "here", "max_retries": -1}, "must be at least 0"),
        ({"query": QUERY, "cluster_builder": "here"}, "expected a ClusterBuilder"),
        ({"query": QUERY, "host": "here", "write_ahead_log": "yes"}, "takes a CheckpointCommitter"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error(settings, message):
    with pytest.raises(InvalidProgramError, match=message):
        CassandraSink.sink(**settings)


def test_tuples_and_rows_need_a_query_and_other_types_are_no_rows():
    pairs = stream(Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    with pytest.raises(InvalidProgramError, match="tuples and rows need set_query"):
        CassandraSink.add_sink(pairs).set_host("here").build()
    with pytest.raises(InvalidProgramError, match="takes tuples, rows and mapped dataclasses, not"):
        CassandraSink.add_sink(pairs.map(str, Types.STRING()))


def test_options_are_keywords_or_methods():
    assert MapperOptions(ttl=5, if_not_exists=True) == MapperOptions().ttl(5).if_not_exists(True)
    with pytest.raises(InvalidProgramError, match="time to live must be at least 0"):
        MapperOptions().ttl(-1)


def test_a_missing_driver_is_named_with_the_extra_to_install():
    program = f"""
import sys
sys.modules["cassandra"] = None
from penstock.core.sink import WriterInitContext
from penstock.datastream.connectors.cassandra import CassandraSink
sink = CassandraSink.sink({QUERY!r}, host="127.0.0.1")
sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'penstock[cassandra]'" in done.stderr.splitlines()[-1]


# -- records as statements ------------------------------------------------------------------------------------------


def test_a_mapped_dataclass_is_an_insert_of_its_columns():
    statements = MappedStatements(MapperOptions(), None, nulls_delete=True)
    assert statements.bind(Reading("a", 20.5, "not a column")) == (QUERY, ("a", 20.5))


def test_mapper_options_are_part_of_the_insert():
    options = MapperOptions(ttl=60, timestamp=7, if_not_exists=True)
    assert insert_statement(Reading, options) == f"{QUERY} IF NOT EXISTS USING TTL 60 AND TIMESTAMP 7"
    statements = MappedStatements(
        MapperOptions(consistency_level=ConsistencyLevel.LOCAL_QUORUM, save_null_fields=False), None, nulls_delete=True
    )
    assert (statements.consistency_level, statements.nulls_delete) == (6, False)


def test_a_table_without_a_keyspace_is_in_the_default_one():
    expected = "INSERT INTO example.sensors (sensor_id) VALUES (?)"
    assert MappedStatements(MapperOptions(), "example", nulls_delete=True).bind(Elsewhere("a")) == (expected, ("a",))
    with pytest.raises(InvalidProgramError, match="Elsewhere has no keyspace"):
        MappedStatements(MapperOptions(), None, nulls_delete=True).bind(Elsewhere("a"))


def test_a_name_that_cassandra_cannot_read_is_an_error():
    with pytest.raises(InvalidProgramError, match="double quotes"):
        table("sensors; DROP TABLE x")
    with pytest.raises(InvalidProgramError, match="above @dataclass"):
        table("sensors")(type("Plain", (), {}))
    assert column('"sensorId"').metadata["penstock.cassandra.column"] == '"sensorId"'


ROW_TYPE = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("record", "row_type", "values"),
    [
        (("a", 1), None, ("a", 1)),
        (["a", 1], None, ["a", 1]),
        (Row("a", 1), None, ["a", 1]),
        (Row(b=1, a="a"), ROW_TYPE, ["a", 1]),
        ({"b": 1, "a": "a"}, ROW_TYPE, ["a", 1]),
        ((Instant.of_epoch_milli(1_500), [Row("x", 1)], {"k": Row(2)}), None, [1_500, [("x", 1)], {"k": (2,)}]),
    ],
)
def test_the_fields_of_a_record_are_the_values_of_the_query(record, row_type, values):
    assert QueryStatements("q", row_type, nulls_delete=True).bind(record) in [("q", values), ("q", tuple(values))]


@pytest.mark.parametrize(
    ("query", "record", "message"),
    [
        (QUERY, Reading("a", 1.0), "use @table without a query"),
        (QUERY, "text", "takes tuples and rows"),
        (None, ("a", 1), "dataclasses with @table"),
    ],
)
def test_a_record_of_the_wrong_kind_is_shown_with_what_to_do(query, record, message):
    if query is None:
        statements = MappedStatements(MapperOptions(), None, nulls_delete=True)
    else:
        statements = QueryStatements(query, None, nulls_delete=True)
    with pytest.raises(InvalidProgramError, match=message):
        statements.bind(record)


# -- writes that fail -----------------------------------------------------------------------------------------------


class Fake:
    """A Cassandra that fails when it is told to; it answers at once."""

    def __init__(self, failures=(), opens=()):
        self.failures, self.opens = list(failures), list(opens)
        self.written, self.sessions = [], 0
        self.holds = False

    def open(self):
        self.sessions += 1
        if self.opens and (error := self.opens.pop(0)) is not None:
            raise error

    def close(self):
        pass

    def prepare(self, cql):
        return SimpleNamespace(column_metadata=[1, 2], bind=lambda values: SimpleNamespace(values=values))

    def execute_async(self, statement, *, timestamp, trace):
        error = self.failures.pop(0) if self.failures else None
        if error is None and not self.holds:
            self.written.append((timestamp, *statement.values))

        def add_callbacks(succeeded, failed, errback_args):
            if not self.holds:
                succeeded([]) if error is None else failed(error, *errback_args)

        return SimpleNamespace(add_callbacks=add_callbacks)


def executor(fake, **settings):
    made = ExecutorSettings(retry_backoff=0.0, **settings)
    return WriteExecutor(fake, QueryStatements("q", None, nulls_delete=settings.get("max_retries") != 9), made)


def test_a_write_that_is_tried_again_keeps_its_time_so_it_does_not_replace_a_later_one():
    fake = Fake(failures=[OperationTimedOut()])
    writes = executor(fake)
    writes.begin_batch(5)
    writes.write_all([("a", 1), ("a", 2)])
    writes.flush()
    assert fake.written == [(5_001, "a", 2), (5_000, "a", 1)]


def test_times_of_writes_never_go_back_and_follow_from_the_batch():
    fake = Fake()
    writes = executor(fake)
    for processing_time in (5, 5, 4, 6):
        writes.begin_batch(processing_time)
        writes.write_all([("a", processing_time)])
    writes.flush()
    assert [time for time, *_ in fake.written] == [5_000, 5_001, 5_002, 6_000]


@pytest.mark.parametrize(
    "error",
    [InvalidRequest("no such column"), NoHostAvailable("", {"host": SyntaxException(1, "no", None)}), TypeError("no")],
)
def test_a_statement_that_cassandra_rejects_is_not_tried_again(error):
    fake = Fake(failures=[error])
    writes = executor(fake)
    writes.write_all([("a", 1), ("b", 2)])
    with pytest.raises(CassandraWriteError, match=r"rejected the record \('a', 1\)") as caught:
        writes.flush()
    assert caught.value.__cause__ is error
    assert fake.written == [(1, "b", 2)]


def test_a_cassandra_that_stays_away_fails_the_job_after_the_retries():
    away = NoHostAvailable("Unable to connect", {"host": ConnectionRefusedError()})
    fake = Fake(failures=[away, away], opens=[away, None, away])
    writes = executor(fake, max_retries=3)
    writes.write_all([("a", 1)])
    with pytest.raises(CassandraWriteError, match="NoHostAvailable"):
        writes.flush()
    assert fake.sessions == 3
    assert fake.written == []


def test_a_failure_handler_may_skip_a_record():
    skipped = []
    handler = CassandraFailureHandler(lambda failure: skipped.append(failure.record))
    fake = Fake(failures=[None, InvalidRequest("no")])
    writes = executor(fake, failure_handler=handler, max_concurrent_requests=1)
    writes.write_all([("a", 1), ("b", 2), ("c", 3)])
    writes.flush()
    assert skipped == ["('b', 2)"]
    assert [row for _, *row in fake.written] == [["a", 1], ["c", 3]]


def test_a_record_with_too_few_fields_is_an_error():
    writes = executor(Fake())
    writes.write_all([("a",)])
    with pytest.raises(CassandraWriteError, match="the query has 2 question marks, the record 1 fields"):
        writes.flush()


def test_fields_that_are_none_are_left_out_if_they_are_to_be_ignored():
    fake = Fake()
    writes = executor(fake, max_retries=9)
    writes.write_all([("a", None)])
    assert fake.written == [(0, "a", UNSET_VALUE)]


def test_no_more_requests_than_allowed_are_under_way():
    fake = Fake()
    fake.holds = True
    writes = executor(fake, max_concurrent_requests=2, permit_timeout=0.01)
    with pytest.raises(JobExecutionError, match=r"none of 2 concurrent requests .* record \('c', 3\) waits"):
        writes.write_all([("a", 1), ("b", 2), ("c", 3)])
    thread = threading.Thread(target=lambda: writes._start(writes_of(("c", 3))))
    thread.start()
    writes._succeeded([])
    thread.join(60)
    assert not thread.is_alive()


def writes_of(record):
    return SimpleNamespace(record=record, timestamp=0)
