"""State of keys that are not written for some time (T51, T122, T126)."""

import datetime as dt
import queue

import pyarrow as pa
import pytest
from tests.table.conftest import Queries, timed

from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.table.aggregates.numeric import CountAggregate
from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
from penstock.table import StreamTableEnvironment
from penstock.testing import ManualClock, MiniCluster
from penstock.testing.table_harness import TableOperatorHarness
from penstock.util.exceptions import ValidationException

SECOND = 1_000
KEYED = "SELECT {hint} k, SUM(v) AS total FROM t GROUP BY k"


def run(query, steps, *, ttl=None, tables=None, cold=False):
    """Read one row of each table for every step; a step is what the clock does before. The changes of each step."""
    clock = ManualClock(1_000_000)
    cluster = MiniCluster(clock=clock, max_records=1, cold=cold)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    queries = Queries(StreamTableEnvironment.create(env))
    if ttl is not None:
        queries.t_env.get_config().set("table.exec.state.ttl", ttl)
    for name, rows in tables.items():
        queries.table(name, ["k", "v"], *rows)
    sink = CollectSink()
    queries.t_env.to_changelog_stream(queries.t_env.sql_query(query)).sink_to(sink)
    job = cluster.start(list(env.sinks), env.job_settings(None))
    result = []
    for step in steps:
        clock.advance(step * SECOND)
        job.run_batch()
        result.append(_changes(sink))
    return result


def _changes(sink):
    rows = []
    while True:
        try:
            rows += [(str(row.get_row_kind()), *row) for row in sink.records.get_nowait()]
        except (queue.Empty, TypeError):
            return rows


@pytest.mark.parametrize("cold", [False, True])
def test_t126_a_group_that_is_not_written_for_the_ttl_begins_anew(cold):
    tables = {"t": [("a", 1), ("a", 2), ("a", 3)]}
    assert run(KEYED.format(hint=""), [0, 9, 10], ttl="10 s", tables=tables, cold=cold) == [
        [("+I", "a", 1)],
        [("-U", "a", 1), ("+U", "a", 3)],
        [("+I", "a", 3)],
    ]


def test_t126_without_ttl_state_is_kept_for_ever():
    tables = {"t": [("a", 1), ("a", 2)]}
    assert run(KEYED.format(hint=""), [0, 10**7], tables=tables)[1] == [("-U", "a", 1), ("+U", "a", 3)]


def test_t51_with_ttl_results_that_have_not_changed_are_emitted():
    tables = {"t": [("a", 1), ("a", 0)]}
    assert run(KEYED.format(hint=""), [0, 1], ttl="1 h", tables=tables)[1] == [("-U", "a", 1), ("+U", "a", 1)]


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("v DESC", [[("+I", "a", 3)], [], [("+I", "a", 1)]]),
        ("pt DESC", [[("+I", "a", 3)], [("-U", "a", 3), ("+U", "a", 2)], [("+I", "a", 1)]]),
    ],
)
def test_t126_rows_of_a_rank_are_forgotten(order, expected, cold):
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS rn FROM p"
    tables = {"t": [("a", 3), ("a", 2), ("a", 1)]}
    query = f"WITH p AS (SELECT *, PROCTIME() AS pt FROM t) SELECT k, v FROM ({ranked}) WHERE rn = 1"
    assert run(query, [0, 9, 10], ttl="10 s", tables=tables, cold=cold) == expected


@pytest.mark.parametrize("cold", [False, True])
def test_t126_rows_of_a_join_are_forgotten(cold):
    tables = {"l": [("a", 1), ("b", 2), ("c", 3)], "r": [("x", 0), ("a", 10), ("b", 20)]}
    query = "SELECT l.k, l.v, r.v FROM l JOIN r ON l.k = r.k"
    assert run(query, [0, 9, 10], ttl="10 s", tables=tables, cold=cold) == [[], [("+I", "a", 1, 10)], []]


def test_t122_the_hint_state_ttl_gives_each_side_of_a_join_its_own_time():
    tables = {"l": [("a", 1), ("b", 2), ("c", 3)], "r": [("b", 10), ("x", 0), ("a", 20)]}
    query = "SELECT /*+ STATE_TTL('l' = '1 d', 'q' = '5 s') */ l.k, l.v, q.v FROM l JOIN r AS q ON l.k = q.k"
    assert run(query, [0, 5, 100], ttl="50 s", tables=tables) == [[], [], [("+I", "a", 1, 20)]]


def test_t122_the_hint_state_ttl_of_a_group_goes_before_the_option():
    tables = {"t": [("a", 1), ("a", 2), ("a", 3)]}
    changes = run(KEYED.format(hint="/*+ STATE_TTL('t' = '5 s') */"), [0, 4, 5], ttl="1 d", tables=tables)
    assert changes[1:] == [[("-U", "a", 1), ("+U", "a", 3)], [("+I", "a", 3)]]


def test_t122_a_table_of_the_hint_that_is_not_read_is_named(sql):
    sql.table("t", ["k", "v"], ("a", 1))
    with pytest.raises(ValidationException, match="cannot match the name of input tables or views: 'u'"):
        sql.t_env.sql_query(KEYED.format(hint="/*+ STATE_TTL('u' = '5 s') */"))


def test_t122_unknown_hints_are_ignored(sql):
    sql.table("t", ["k", "v"], ("a", 1))
    assert sql.rows("SELECT /*+ BROADCAST(t) */ k FROM t") == [("a",)]


def test_t126_windows_and_interval_joins_ignore_the_option(sql):
    sql.t_env.get_config().set("table.exec.state.ttl", "1 ms")
    start = dt.datetime(2024, 5, 1, 12, 0)
    timed(sql, "t", ["k"], *(("a", start + dt.timedelta(seconds=second)) for second in range(120)))
    window = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
    counts = f"SELECT window_start, COUNT(*) FROM {window} GROUP BY window_start, window_end"
    assert [count for _, count in sql.rows(counts)] == [60, 60]
    pairs = "SELECT a.ts FROM t a JOIN t b ON a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND"
    assert len(sql.rows(pairs)) == 239


def counting(ttl):
    schema = pa.schema([("word", pa.string()), ("count", pa.int64())])
    operator = GroupAggFunction([0], [AggregateCall(CountAggregate(), [])], schema)
    operator.expire_state(ttl)
    return operator


WORDS = pa.schema([("word", pa.string())])


def test_t126_expired_keys_are_removed_from_state():
    harness = TableOperatorHarness(counting(10), WORDS)
    harness.set_processing_time(100)
    harness.process(*(("+I", f"word {number}") for number in range(50)))
    harness.snapshot()
    assert len(list(harness.context.keyed_backend.keys())) == 50
    harness.set_processing_time(109)
    harness.process(("+I", "word 7"))
    harness.snapshot()
    assert len(list(harness.context.keyed_backend.keys())) == 50
    harness.set_processing_time(110)
    harness.process(("+I", "another"))
    harness.snapshot()
    assert len(list(harness.context.keyed_backend.keys())) == 2


def test_t126_a_job_with_ttl_continues_from_state_without_and_back():
    harness = TableOperatorHarness(counting(0), WORDS)
    harness.set_processing_time(100)
    harness.process(("+I", "a"))
    harness = TableOperatorHarness(counting(10), WORDS, snapshot=harness.snapshot())
    harness.set_processing_time(1_000)  # counts as written now
    harness.process(("+I", "a"))
    assert harness.take() == [("-U", "a", 1), ("+U", "a", 2)]
    harness = TableOperatorHarness(counting(10), WORDS, snapshot=harness.snapshot())
    harness.set_processing_time(1_009)
    harness.process(("+I", "a"))
    assert harness.take() == [("-U", "a", 2), ("+U", "a", 3)]
    harness = TableOperatorHarness(counting(0), WORDS, snapshot=harness.snapshot())
    harness.set_processing_time(10_000)
    harness.process(("+I", "a"))
    assert harness.take() == [("-U", "a", 3), ("+U", "a", 4)]
