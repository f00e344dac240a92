"""State of windows, joins, ranks and OVER: savepoints, another parallelism, processing time (T45, T48)."""

import datetime as dt
import queue
from collections import Counter
from dataclasses import replace

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.table.expressions import InputRef
from penstock.table import StreamTableEnvironment
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.relational import WatermarkRel
from penstock.table.table import Table
from penstock.testing import ManualClock, MiniCluster


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


ROWS = [(i * 7 % 5, i * 31 % 17, at(i)) for i in range(200)]
TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
QUERIES = {
    "window": f"SELECT k, window_start, SUM(v), COUNT(*) FROM {TUMBLE} GROUP BY k, window_start, window_end",
    "session": (
        "SELECT k, window_start, SUM(v), COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '3' SECOND)) GROUP BY k, window_start, window_end"
    ),
    "window rank": (
        "SELECT k, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY v) AS rn "
        f"FROM {TUMBLE}) WHERE rn <= 2"
    ),
    "rank": (
        "SELECT k, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 3"
    ),
    "rank of updates": (
        "SELECT k, s, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS rn FROM (SELECT k, SUM(v) AS s FROM t "
        "GROUP BY k)) WHERE rn <= 3"
    ),
    "last row": (
        "SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM t) WHERE rn = 1"
    ),
    "first row": (
        "SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM t) WHERE rn = 1"
    ),
    "over": ("SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t"),
    "over range": (
        "SELECT k, v, MAX(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT "
        "ROW) FROM t"
    ),
    "over another column": "SELECT k, v, ts, SUM(v) OVER (PARTITION BY k ORDER BY v) FROM t",
    "join": "SELECT a.k, a.v, b.ts FROM t a JOIN t b ON a.v = b.v AND a.k < b.k",
    "outer join of updates": (
        "SELECT a.k, a.s, b.n FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k) a FULL JOIN (SELECT v, COUNT(*) AS n "
        "FROM t GROUP BY v) b ON a.k = b.v"
    ),
    "interval join": (
        "SELECT a.k, a.ts, b.v FROM t a JOIN t b ON a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '9' SECOND"
    ),
    "sort": "SELECT k, v FROM t ORDER BY ts",
    "limit": "SELECT k FROM t LIMIT 150",
}


def final(changes):
    """What a changelog adds up to, in whatever order several sink writers have received it."""
    counts = Counter()
    for kind, *row in changes:
        counts[tuple(row)] += 1 if kind in ("+I", "+U") else -1
    assert min(counts.values()) >= 0
    return sorted(counts.elements(), key=repr)


def _changes(sink):
    rows = []
    while True:
        try:
            rows += [(str(row.get_row_kind()), *row) for row in sink.records.get_nowait()]
        except (queue.Empty, TypeError):
            return rows


def _job(cluster, parallelism, query, savepoint=None):
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    queries = Queries(StreamTableEnvironment.create(env))
    queries.t_env.get_config().set("table.local-time-zone", "UTC")
    timed(queries, "t", ["k", "v"], *ROWS, delay=5)
    sink = CollectSink()
    queries.t_env.to_changelog_stream(queries.t_env.sql_query(query)).sink_to(sink)
    return cluster.start(list(env.sinks), env.job_settings(None), savepoint=savepoint), sink


@pytest.mark.parametrize("name", QUERIES)
def test_state_continues_from_a_savepoint_at_another_parallelism(tmp_path, name):
    query = QUERIES[name]
    cluster = MiniCluster(clock=ManualClock(0), max_records=60)
    job, sink = _job(cluster, 2, query)
    job.run_batch()
    job.run_batch()
    path = job.stop_with_savepoint(str(tmp_path))
    changes = _changes(sink)
    job, sink = _job(cluster, 3, query, path)
    job.run()
    changes += _changes(sink)
    queries = Queries(table_environment())
    timed(queries, "t", ["k", "v"], *ROWS, delay=5)
    assert final(changes) == queries.final(query)


def test_t45_windows_of_processing_time_end_with_the_clock():
    clock = ManualClock(int(at(0).replace(tzinfo=dt.UTC).timestamp() * 1000))
    cluster = MiniCluster(clock=clock, max_records=50)
    query = (
        "SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE p, DESCRIPTOR(pt), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end"
    )
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    queries = Queries(StreamTableEnvironment.create(env))
    queries.t_env.get_config().set("table.local-time-zone", "Asia/Tokyo")
    queries.table("t", ["v"], *((v,) for v in range(120)))
    queries.t_env.create_temporary_view("p", queries.t_env.sql_query("SELECT v, PROCTIME() AS pt FROM t"))
    sink = CollectSink()
    queries.t_env.to_changelog_stream(queries.t_env.sql_query(query)).sink_to(sink)
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.run_batch()
    assert not _changes(sink)
    clock.advance(10_000)
    job.run_batch()
    tokyo = dt.timedelta(hours=9)
    assert _changes(sink) == [("+I", at(0) + tokyo, at(10) + tokyo, 50)]
    clock.advance(10_000)
    job.run()  # the third batch, and the end: what is open then is not emitted
    assert _changes(sink) == [("+I", at(10) + tokyo, at(20) + tokyo, 50)]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai", "UTC"])
def test_t48_day_windows_of_instants_begin_at_local_midnight(zone):
    queries = Queries(table_environment())
    queries.t_env.get_config().set("table.local-time-zone", zone)
    timed(queries, "u", ["v"], *((hour, dt.datetime(2024, 5, 1) + dt.timedelta(hours=hour)) for hour in range(60)))
    queries.t_env.execute_sql("CREATE TEMPORARY VIEW t AS SELECT v, CAST(ts AS TIMESTAMP_LTZ(3)) AS lt FROM u")
    relation = queries.t_env.from_path("t")._relation
    fields = [relation.fields[0], replace(relation.fields[1], time=TimeAttribute.ROWTIME)]
    view = WatermarkRel(tuple(fields), relation, 1, InputRef(relation.fields[1].type, 1))
    queries.t_env.create_temporary_view("l", Table(view, queries.t_env))
    query = (
        "SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(lt), INTERVAL '1' DAY)) "
        "GROUP BY window_start, window_end"
    )
    day = dt.datetime(2024, 5, 1)
    one = dt.timedelta(days=1)
    assert queries.rows(query) == [
        (day, day + one, 24),
        (day + one, day + 2 * one, 24),
        (day + 2 * one, day + 3 * one, 12),
    ]
