"""Window table functions and aggregates of windows (T60 to T68)."""

import datetime as dt

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.util.exceptions import ValidationException

SUMS = "SELECT window_start, window_end, SUM(v) FROM TABLE({}) GROUP BY window_start, window_end"


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


def windows(rows):
    """Rows whose first two columns are a window, as seconds."""
    return [(int((a - at(0)).total_seconds()), int((b - at(0)).total_seconds()), *rest) for a, b, *rest in rows]


def test_t60_tumbling_windows_drop_late_rows(sql):
    timed(sql, "t", ["v"], (1, at(3)), (2, at(11)), (4, at(8)), (8, at(12)), (16, at(9)), delay=2)
    query = SUMS.format("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)")
    assert windows(sql.rows(query)) == [(0, 10, 5), (10, 20, 10)]


def test_t46_a_row_is_late_behind_the_last_millisecond_of_its_window(sql):
    timed(sql, "t", ["v"], (1, at(2)), (2, at(6)), (4, at(4)), (8, at(5)), delay=1)
    query = SUMS.format("TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '5' SECOND)")
    assert windows(sql.rows(query)) == [(0, 5, 1), (5, 10, 10)]


def test_t60_window_time_is_the_last_millisecond(sql):
    timed(sql, "t", ["v"], (1, at(3)))
    query = "SELECT v, window_time FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    assert sql.rows(query) == [(1, at(9) + dt.timedelta(milliseconds=999))]


def test_t60_hopping_windows(sql):
    timed(sql, "t", ["v"], (3, at(5)))
    query = SUMS.format("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND)")
    assert windows(sql.rows(query)) == [(2, 6, 3), (4, 8, 3)]


def test_t61_windows_have_offsets(sql):
    timed(sql, "t", ["v"], (1, at(3)), (2, at(4)))
    query = SUMS.format("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '4' SECOND)")
    assert windows(sql.rows(query)) == [(-6, 4, 1), (4, 14, 2)]


def test_t61_windows_are_aligned_before_1970(sql):
    timed(sql, "t", ["v"], (1, dt.datetime(1969, 12, 31, 23, 59, 57)))
    query = SUMS.format("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)")
    assert sql.rows(query) == [(dt.datetime(1969, 12, 31, 23, 59, 55), dt.datetime(1970, 1, 1), 1)]


@pytest.mark.parametrize("name", ["HOP", "CUMULATE"])
def test_t61_sizes_are_multiples(sql, name):
    timed(sql, "t", ["v"], (1, at(3)))
    with pytest.raises(ValidationException, match="integral multiple"):
        sql.t_env.sql_query(SUMS.format(f"{name}(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '5' SECOND)"))


def test_t62_with_one_window_column_it_is_an_ordinary_group_by(sql):
    timed(sql, "t", ["v"], (1, at(3)), (2, at(4)))
    query = "SELECT SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_end"
    assert sql.changelog(query) == [("+I", 1), ("-U", 1), ("+U", 3)]


def test_t62_windows_have_keys_and_distinct_aggregates(sql):
    timed(sql, "t", ["k", "v"], ("a", 1, at(1)), ("b", 2, at(2)), ("a", 1, at(3)), ("a", 5, at(12)))
    query = (
        "SELECT k, COUNT(DISTINCT v), COUNT(*), MAX(v), window_start FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
        "INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end"
    )
    assert [row[:4] for row in sql.rows(query)] == [("a", 1, 2, 1), ("b", 1, 1, 2), ("a", 1, 1, 5)]


def test_t57_grouping_sets_in_windows(sql):
    timed(sql, "t", ["k", "v"], ("a", 1, at(1)), ("b", 2, at(2)))
    query = (
        "SELECT window_start, window_end, k, SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end, GROUPING SETS ((k), ())"
    )
    expected = [(0, 10, "a", 1), (0, 10, "b", 2), (0, 10, None, 3)]
    assert sorted(windows(sql.rows(query)), key=repr) == sorted(expected, key=repr)


def test_t63_cumulating_windows(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(4)))
    query = SUMS.format("CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '6' SECOND)")
    assert windows(sql.rows(query)) == [(0, 3, 1), (0, 6, 3)]
    query = SUMS.format("CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)")
    assert windows(sql.rows(query)) == [(0, 2, 1), (0, 4, 1), (0, 6, 3)]


def test_t64_sessions_that_touch_merge(sql):
    timed(sql, "t", ["v"], (1, at(1)), (1, at(5)), (1, at(10)), delay=20)
    query = SUMS.format("SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND)")
    assert windows(sql.rows(query)) == [(1, 9, 2), (10, 14, 1)]


def test_t64_sessions_of_keys_drop_late_rows(sql):
    timed(sql, "t", ["k", "v"], ("a", 1, at(1)), ("b", 2, at(2)), ("a", 4, at(30)), ("a", 8, at(2)), ("b", 3, at(29)))
    query = (
        "SELECT window_start, window_end, k, SUM(v) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '5' SECOND)) GROUP BY window_start, window_end, k"
    )
    expected = [(1, 6, "a", 1), (2, 7, "b", 2), (29, 34, "b", 3), (30, 35, "a", 4)]
    assert windows(sql.rows(query)) == expected


def test_t67_windows_of_windows(sql):
    timed(sql, "t", ["v"], (1, at(3)), (2, at(6)), (4, at(12)))
    inner = (
        "SELECT window_start AS a, window_end AS b, window_time AS wt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE t, "
        "DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end, window_time"
    )
    sql.t_env.create_temporary_view("five", sql.t_env.sql_query(inner))
    query = (
        "SELECT window_start, window_end, SUM(s), COUNT(*) FROM TABLE(TUMBLE(TABLE five, DESCRIPTOR(wt), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    assert windows(sql.rows(query)) == [(0, 10, 3, 2), (10, 20, 4, 1)]


def test_t140_windows_in_batch_mode(batch):
    timed(batch, "t", ["v"], (1, at(3)), (2, at(11)), (4, at(8)), (8, at(32)), (16, at(9)))
    query = SUMS.format("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)")
    assert sorted(windows(batch.rows(query))) == [(0, 10, 21), (10, 20, 2), (30, 40, 8)]


def test_windows_at_a_higher_parallelism():
    queries = Queries(table_environment(3))
    timed(queries, "t", ["k", "v"], *((i % 7, i, at(i)) for i in range(200)))
    query = (
        "SELECT k, window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        "GROUP BY k, window_start, window_end"
    )
    expected = {}
    for i in range(200):
        count, total = expected.get((i % 7, at(i // 60 * 60)), (0, 0))
        expected[i % 7, at(i // 60 * 60)] = (count + 1, total + i)
    assert sorted(queries.rows(query)) == sorted((*key, *value) for key, value in expected.items())


def test_t46_a_row_may_be_late_for_some_of_its_windows_only(sql):
    timed(sql, "t", ["v"], (1, at(1)), (2, at(5)), (4, at(3)))
    query = SUMS.format("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND)")
    assert windows(sql.rows(query)) == [(-2, 2, 1), (0, 4, 1), (2, 6, 6), (4, 8, 2)]


AGGREGATES = "COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v), SUM(v) FILTER (WHERE v > 5), COUNT(*) FILTER (WHERE v < 3)"


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("keys", ["", "k, "])
@pytest.mark.parametrize("window", ["HOP", "CUMULATE", "TUMBLE"])
def test_t62_aggregates_in_two_phases_are_those_of_one(window, keys, batch):
    queries = Queries(table_environment(2, batch=batch))
    rows = [(i % 3, None if i % 5 == 0 else i * 7 % 11, at(i * 13 % 100)) for i in range(100)]
    timed(queries, "t", ["k", "v"], *rows, delay=100)
    lengths = "INTERVAL '10' SECOND" if window == "TUMBLE" else "INTERVAL '5' SECOND, INTERVAL '20' SECOND"
    grouped = f"FROM TABLE({window}(TABLE t, DESCRIPTOR(ts), {lengths})) GROUP BY {keys}window_start, window_end"
    both = queries.rows(f"SELECT {keys}window_start, window_end, {AGGREGATES} {grouped}")
    # AVG cannot be merged, so it keeps the aggregates in one phase.
    single = queries.rows(f"SELECT {keys}window_start, window_end, {AGGREGATES}, AVG(v) {grouped}")
    assert sorted(both, key=repr) == sorted((row[:-1] for row in single), key=repr)
    assert len(both) >= 10
