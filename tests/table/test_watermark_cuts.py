"""Batches are cut only where a watermark makes a difference; late rows are the same ones as with all watermarks."""

import datetime as dt
import random

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.runtime.table.operators.watermark_assigner import Cuts
from penstock.table.plan import planner, watermarks

START = dt.datetime(2024, 5, 1)
TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND))"
SESSION = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
QUERIES = [
    f"SELECT k, window_start, SUM(v), COUNT(*) FROM {TUMBLE} GROUP BY k, window_start, window_end",
    f"SELECT k, window_start, window_end, SUM(v) FROM {SESSION} GROUP BY k, window_start, window_end",
    "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
    "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM t) WHERE rn = 1",
    "SELECT a.v, b.v FROM t a LEFT JOIN t b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND",
]


def disordered_rows(seed):
    source = random.Random(seed)
    rows = []
    for number in range(60):
        milliseconds = number * 400 - source.choice((0, 0, 0, 300, 1000, 1001, 2500, 6000))
        rows.append((source.choice("ab"), number, START + dt.timedelta(milliseconds=milliseconds)))
    return rows


def results(query, seed, max_records):
    queries = Queries(table_environment(max_records=max_records))
    timed(queries, "t", ["k", "v"], *disordered_rows(seed), delay=1)
    return queries.final(query)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("query", QUERIES)
def test_t46_late_rows_are_those_of_all_watermarks(query, seed, monkeypatch):
    few = results(query, seed, 25)
    monkeypatch.setattr(planner, "wanted_cuts", lambda _: Cuts.EXACT)
    assert few == results(query, seed, 25)


@pytest.mark.parametrize(
    ("query", "cuts"),
    [
        ("SELECT k, COUNT(*) FROM t GROUP BY k", Cuts.NONE),
        ("SELECT k, v FROM t WHERE v > 1", Cuts.NONE),
        (QUERIES[0], Cuts.LATE),
        (QUERIES[4], Cuts.LATE),
        ("SELECT v, CURRENT_WATERMARK(ts) FROM t", Cuts.EXACT),
    ],
)
def test_t43_only_current_watermark_sees_every_watermark(sql, query, cuts):
    timed(sql, "t", ["k", "v"], ("a", 1, START))
    planned = sql.t_env._planner().optimize(sql.t_env.sql_query(query)._relation)
    assert watermarks.wanted_cuts(planned) is cuts
