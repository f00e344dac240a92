"""GROUP BY in SQL and in the Table API (T50 to T58)."""

import pytest
from tests.table.conftest import Queries, table_environment

from penstock.table.expressions import col
from penstock.util.exceptions import ValidationException


@pytest.fixture(autouse=True)
def _sales(sql):
    sql.table("sales", ["k", "v"], ("x", 2), ("y", 7), ("x", 5))


def test_t50_results_are_updated(sql):
    expected = [("+I", "x", 2), ("+I", "y", 7), ("-U", "x", 2), ("+U", "x", 7)]
    assert sql.changelog("SELECT k, SUM(v) FROM sales GROUP BY k") == expected
    table = sql.t_env.from_path("sales").group_by(col("k")).select(col("k"), col("v").sum)
    assert sql.changelog(table) == expected


def test_t14_having_treats_the_halves_of_an_update_one_by_one(sql):
    sql.table("t", ["k", "v"], ("k", 4), ("k", 9), ("k", -8))
    query = "SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING SUM(v) > 10"
    assert sql.changelog(query) == [("+U", "k", 13), ("-U", "k", 13)]


def test_t16_a_projection_passes_updates_on_although_nothing_is_left_of_them(sql):
    query = "SELECT k FROM (SELECT k, SUM(v) AS s FROM sales GROUP BY k)"
    assert sql.changelog(query) == [("+I", "x"), ("+I", "y"), ("-U", "x"), ("+U", "x")]


def test_t51_unchanged_results_are_not_emitted(sql):
    sql.table("t", ["k", "v"], ("p", 6), ("p", 2), ("p", None), ("q", None), ("p", 7))
    query = "SELECT k, MAX(v) AS m FROM t GROUP BY k"
    assert sql.changelog(query) == [("+I", "p", 6), ("+I", "q", None), ("-U", "p", 6), ("+U", "p", 7)]


def test_t53_a_global_aggregate_of_nothing_is_nothing_in_streaming_mode(sql, batch):
    assert sql.changelog("SELECT COUNT(*) FROM sales WHERE k = 'z'") == []
    batch.table("sales", ["k", "v"], ("x", 2))
    assert batch.rows("SELECT COUNT(*), SUM(v) FROM sales WHERE k = 'z'") == [(0, None)]


def test_t55_maximum_under_retraction(sql):
    inner = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
    sql.table("t", ["k", "v"], ("a", 3), ("b", 8), ("b", -7))
    assert sql.changelog(f"SELECT MAX(s) FROM ({inner})") == [("+I", 3), ("-U", 3), ("+U", 8), ("-U", 8), ("+U", 3)]


def test_t56_distinct_and_filter(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 1), ("a", 2), ("a", 3))
    query = "SELECT COUNT(DISTINCT v), COUNT(DISTINCT v) FILTER (WHERE v > 1), SUM(DISTINCT v), COUNT(*) FROM t"
    assert sql.final(query) == [(3, 2, 6, 4)]


def test_t57_grouping_sets_rollup_and_cube(sql):
    sql.table("t", ["a", "b", "v"], ("x", "y", 1))
    query = "SELECT a, GROUPING(a), SUM(v) FROM t GROUP BY GROUPING SETS ((a), ())"
    assert sql.final(query) == [("x", 0, 1), (None, 1, 1)]
    assert len(sql.final("SELECT a, b, COUNT(*) FROM t GROUP BY ROLLUP (a, b)")) == 3
    assert len(sql.final("SELECT a, b, COUNT(*) FROM t GROUP BY CUBE (a, b)")) == 4
    assert sql.final("SELECT GROUPING_ID(a, b) FROM t GROUP BY CUBE (a, b)") == [(0,), (1,), (2,), (3,)]


def test_t58_count_of_counts(sql):
    sql.table("users", ["u"], ("p",), ("q",), ("p",))
    query = "SELECT c, COUNT(*) FROM (SELECT u, COUNT(*) AS c FROM users GROUP BY u) GROUP BY c"
    assert sql.changelog(query) == [
        ("+I", 1, 1),
        ("-U", 1, 1),
        ("+U", 1, 2),
        ("-U", 1, 2),
        ("+U", 1, 1),
        ("+I", 2, 1),
    ]


def test_t18_mini_batch_emits_the_last_change(sql):
    sql.t_env.get_config().set("table.exec.mini-batch.enabled", "true")
    assert sql.changelog("SELECT k, SUM(v) FROM sales GROUP BY k") == [("+I", "x", 7), ("+I", "y", 7)]


def test_t130_columns_must_be_grouped(t_env):
    with pytest.raises(ValidationException, match="Expression 'v' is not being grouped"):
        t_env.sql_query("SELECT v, COUNT(*) FROM sales GROUP BY k")
    with pytest.raises(ValidationException, match="Aggregate function 'SUM' is not allowed here"):
        t_env.sql_query("SELECT k FROM sales WHERE SUM(v) > 1")


def test_t140_batch_mode_gives_final_results_only(batch):
    batch.table("sales", ["k", "v"], ("x", 2), ("y", 7), ("x", 5))
    assert sorted(batch.rows("SELECT k, SUM(v), COUNT(*) FROM sales GROUP BY k")) == [("x", 7, 2), ("y", 7, 1)]


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("cluster", [{}, {"max_records": 1}, {"max_records": 3, "cold": True}])
def test_t17_the_table_is_the_same_however_the_job_is_cut(parallelism, cluster):
    queries = Queries(table_environment(parallelism, **cluster))
    queries.table("t", ["k", "v"], *[(f"k{n % 7}", n * n % 13) for n in range(60)])
    query = "SELECT s, COUNT(*), COUNT(DISTINCT k) FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k) GROUP BY s"
    sums = {}
    for n in range(60):
        sums[n % 7] = sums.get(n % 7, 0) + n * n % 13
    expected = [(s, list(sums.values()).count(s)) for s in set(sums.values())]
    assert queries.final(query) == sorted(((s, n, n) for s, n in expected), key=repr)


def test_expressions_over_groups(sql):
    query = "SELECT UPPER(k) || '!', SUM(v) * 2 + COUNT(*) FROM sales GROUP BY k HAVING UPPER(k) = 'X'"
    assert sql.final(query) == [("X!", 16)]
    computed = "SELECT v % 2 AS odd, COUNT(*) FROM sales GROUP BY v % 2"
    assert sql.final(computed) == [(0, 1), (1, 2)]


def test_t53_count_of_all_rows_needs_no_column(sql, batch):
    for queries in (sql, batch):
        queries.table("t", ["a"], (1,), (2,), (3,))
        assert queries.final("SELECT COUNT(*) FROM t WHERE a > 1") == [(2,)]
        assert queries.final("SELECT COUNT(*) FROM t") == [(3,)]
