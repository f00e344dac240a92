"""OVER windows (T80 to T82)."""

import datetime as dt

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.util.exceptions import TableException


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


def over(call, window, table="t"):
    return f"SELECT v, {call} OVER ({window}) FROM {table}"


def test_t80_rows_come_in_the_order_of_time(sql):
    timed(sql, "t", ["v"], (5, at(4)), (1, at(2)), (2, at(3)), delay=3)
    query = over("SUM(v)", "ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
    assert sql.rows(query) == [(1, 1), (2, 3), (5, 7)]


def test_t80_rows_of_equal_time_are_peers(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(2)), (4, at(2)), delay=1)
    assert sql.rows(over("SUM(v)", "ORDER BY ts")) == [(1, 1), (2, 7), (4, 7)]
    query = over("SUM(v)", "ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    assert sql.rows(query) == [(1, 1), (2, 3), (4, 7)]


def test_t80_range_looks_at_time(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(3)), (4, at(6)), (8, at(6)), (16, at(8)), delay=1)
    query = over("SUM(v)", "ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW")
    assert sql.rows(query) == [(1, 1), (2, 3), (4, 14), (8, 14), (16, 28)]


def test_t46_late_rows_are_dropped(sql):
    timed(sql, "t", ["v"], (1, at(5)), (2, at(3)), (4, at(9)))
    assert sql.rows(over("SUM(v)", "ORDER BY ts")) == [(1, 1), (4, 5)]


def test_t46_a_frame_that_keeps_rows_takes_rows_up_to_its_last_result(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(5)), (4, at(3)), (8, at(9)), (16, at(2)), delay=1)
    query = over("SUM(v)", "ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
    assert sql.rows(query) == [(1, 1), (4, 5), (2, 6), (8, 10)]


def test_t80_partitions_have_their_own_windows(sql):
    timed(sql, "t", ["k", "v"], *(("ab"[i % 2], i, at(i)) for i in range(6)))
    assert sql.rows(over("COUNT(*)", "PARTITION BY k ORDER BY ts")) == [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3)]


AGGREGATES = {
    "SUM(v)": sum,
    "COUNT(v)": len,
    "MIN(v)": min,
    "MAX(v)": max,
    "COUNT(DISTINCT v)": lambda values: len(set(values)),
    "FIRST_VALUE(v)": lambda values: values[0],
    "LAST_VALUE(v)": lambda values: values[-1],
}


@pytest.mark.parametrize("call", AGGREGATES)
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("frame", ["ROWS BETWEEN 3 PRECEDING", "RANGE BETWEEN INTERVAL '7' SECOND PRECEDING"])
def test_t80_bounded_frames_of_all_aggregates(call, batch, frame):
    queries = Queries(table_environment(2, batch=batch))
    rows = [(i % 3, i * 37 % 11, at(i // 2 * 2)) for i in range(60)]
    timed(queries, "t", ["k", "v"], *rows, delay=5)
    query = f"SELECT k, v, ts, {call} OVER (PARTITION BY k ORDER BY ts {frame} AND CURRENT ROW) FROM t"
    expected = []
    for k in range(3):
        mine = [row for row in rows if row[0] == k]
        for i, (_, v, ts) in enumerate(mine):
            if frame.startswith("ROWS"):
                values = [row[1] for row in mine[max(0, i - 3) : i + 1]]
            else:
                values = [row[1] for row in mine if ts - dt.timedelta(seconds=7) <= row[2] <= ts]
            expected.append((k, v, ts, AGGREGATES[call](values)))
    assert sorted(queries.rows(query)) == sorted(expected)


def test_t80_ranking_and_lag_by_time(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(2)), (4, at(2)), (8, at(3)), delay=1)
    assert sql.rows(over("ROW_NUMBER()", "ORDER BY ts")) == [(1, 1), (2, 2), (4, 3), (8, 4)]
    assert sql.rows(over("RANK()", "ORDER BY ts")) == [(1, 1), (2, 2), (4, 2), (8, 4)]
    assert sql.rows(over("DENSE_RANK()", "ORDER BY ts")) == [(1, 1), (2, 2), (4, 2), (8, 3)]
    assert sql.rows(over("LAG(v)", "ORDER BY ts")) == [(1, None), (2, 1), (4, 2), (8, 4)]
    assert sql.rows(over("LAG(v, 2, -1)", "ORDER BY ts")) == [(1, -1), (2, -1), (4, 1), (8, 2)]


def test_t45_over_processing_time_is_in_order_of_arrival(sql):
    sql.table("t0", ["v"], (5,), (1,), (2,))
    source = "(SELECT *, PROCTIME() AS p FROM t0)"
    assert sql.rows(over("SUM(v)", "ORDER BY p", source)) == [(5, 5), (1, 6), (2, 8)]
    query = over("SUM(v)", "ORDER BY p ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", source)
    assert sql.rows(query) == [(5, 5), (1, 6), (2, 3)]
    query = over("SUM(v)", "ORDER BY p RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW", source)
    assert sql.rows(query)[-1] == (2, 8)


def test_t81_over_another_column_updates_rows_behind_a_new_one(sql):
    sql.table("t", ["v", "w"], (1, 10), (5, 30), (2, 20))
    query = "SELECT v, w, SUM(v) OVER (ORDER BY w) FROM t"
    assert sql.final(query) == [(1, 10, 1), (2, 20, 3), (5, 30, 8)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_t81_over_another_column_of_an_updating_table(parallelism):
    queries = Queries(table_environment(parallelism))
    rows = [(i % 4, i * 13 % 9, i % 7) for i in range(120)]
    queries.table("t", ["g", "k", "v"], *rows)
    query = (
        "SELECT g, k, s, SUM(s) OVER (PARTITION BY g ORDER BY s) FROM (SELECT g, k, SUM(v) AS s FROM t GROUP BY g, k)"
    )
    sums = {}
    for g, k, v in rows:
        sums[g, k] = sums.get((g, k), 0) + v
    expected = [
        (g, k, s, sum(other for (h, _), other in sums.items() if h == g and other <= s)) for (g, k), s in sums.items()
    ]
    assert queries.final(query) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (over("SUM(v)", "ORDER BY ts DESC"), "must be ascending"),
        (over("SUM(v)", "ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"), "after the current row"),
        (over("LEAD(v)", "ORDER BY ts"), "LEAD Function is not supported in stream mode"),
        ("SELECT SUM(v) OVER (ORDER BY ts), SUM(v) OVER (PARTITION BY v ORDER BY ts) FROM t", "same window"),
        (over("SUM(v)", "PARTITION BY v"), "need an ORDER BY"),
    ],
)
def test_t82_other_windows_are_rejected(sql, query, message):
    timed(sql, "t", ["v"], (1, at(4)))
    with pytest.raises(TableException, match=message):
        sql.t_env.execute_sql(query)


def test_t82_over_by_time_of_an_updating_table_is_rejected(sql):
    timed(sql, "t", ["v"], (1, at(4)))
    latest = "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS rn FROM t) WHERE rn = 1)"
    with pytest.raises(TableException, match="doesn't support consuming update"):
        sql.t_env.execute_sql(over("SUM(v)", "ORDER BY ts", latest))


def test_t140_whole_partitions_in_batch_mode(batch):
    batch.table("t", ["k", "v"], ("a", 1), ("b", 2), ("a", 4), ("a", 4))
    query = "SELECT k, v, {} FROM t"
    rows = batch.rows(query.format("SUM(v) OVER (PARTITION BY k), COUNT(*) OVER (PARTITION BY k)"))
    assert sorted(rows) == [("a", 1, 9, 3), ("a", 4, 9, 3), ("a", 4, 9, 3), ("b", 2, 2, 1)]
    window = "OVER (PARTITION BY k ORDER BY v)"
    functions = f"RANK() {window}, DENSE_RANK() {window}, PERCENT_RANK() {window}, CUME_DIST() {window}"
    rows = sorted(batch.rows(query.format(functions)))
    third = pytest.approx(1 / 3)
    assert rows == [
        ("a", 1, 1, 1, 0.0, third),
        ("a", 4, 2, 2, 0.5, 1.0),
        ("a", 4, 2, 2, 0.5, 1.0),
        ("b", 2, 1, 1, 0.0, 1.0),
    ]


def test_t140_following_rows_in_batch_mode(batch):
    batch.table("t", ["v"], *((v,) for v in (1, 2, 4, 8, 16)))
    query = over("SUM(v)", "ORDER BY v ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING")
    assert batch.rows(query) == [(1, 3), (2, 7), (4, 14), (8, 28), (16, 24)]
    query = over("SUM(v)", "ORDER BY v ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
    assert batch.rows(query) == [(1, 31), (2, 30), (4, 28), (8, 24), (16, 16)]
    assert batch.rows(over("LEAD(v)", "ORDER BY v")) == [(1, 2), (2, 4), (4, 8), (8, 16), (16, None)]
    assert batch.rows(over("NTILE(3)", "ORDER BY v")) == [(1, 1), (2, 1), (4, 2), (8, 2), (16, 3)]


def test_t80_windows_have_names(sql):
    timed(sql, "t", ["k", "v"], ("a", 1, at(1)), ("b", 2, at(2)), ("a", 4, at(3)))
    query = (
        "SELECT v, SUM(v) OVER w, COUNT(*) OVER w, MAX(v) OVER w + 1 FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)"
    )
    assert sql.rows(query) == [(1, 1, 1, 2), (2, 2, 1, 3), (4, 5, 2, 5)]


def test_t83_ranks_with_other_functions_of_the_same_window(sql):
    sql.table("t", ["k", "v"], ("a", 3), ("a", 1), ("b", 7), ("a", 2))
    query = (
        "SELECT k, v, rn, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS rn, SUM(v) OVER "
        "(PARTITION BY k ORDER BY v) AS s FROM t) WHERE rn <= 2"
    )
    assert sql.final(query) == [("a", 1, 1, 1), ("a", 2, 2, 3), ("b", 7, 1, 7)]
