"""Aggregates over rows that come and go (T54, T55, T59), and the mini-batch option (T18)."""

import statistics

import pytest
from tests.table.conftest import Queries, table_environment

from penstock.table.expressions import JsonOnNull, col, json_array_agg, json_object_agg


@pytest.mark.parametrize("name", ["STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "STDDEV", "VARIANCE"])
def test_t59_deviations(sql, name):
    values = [1.5, 4.0, -2.25, 8.0]
    sql.table("t", ["v"], *((v,) for v in values))
    reference = {"STDDEV": statistics.stdev, "VARIANCE": statistics.variance, "VAR_SAMP": statistics.variance}
    reference |= {"STDDEV_POP": statistics.pstdev, "STDDEV_SAMP": statistics.stdev, "VAR_POP": statistics.pvariance}
    assert sql.final(f"SELECT {name}(v) FROM t") == [(pytest.approx(reference[name](values)),)]


def test_t59_deviations_of_one_row(sql):
    sql.table("t", ["v"], (1.5,))
    query = "SELECT STDDEV_SAMP(v), VAR_SAMP(v), STDDEV_POP(v), VAR_POP(v) FROM t"
    assert sql.final(query) == [(None, None, 0.0, 0.0)]


UPDATED = "(SELECT k, MAX(v) AS m FROM t GROUP BY k)"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("VAR_POP(CAST(m AS DOUBLE))", 4.0),
        ("COLLECT(m)", {5: 1, 9: 1}),
        ("LISTAGG(CAST(m AS STRING), '-')", "5-9"),
        ("LISTAGG(k)", "b,a"),
        ("FIRST_VALUE(m)", 5),
        ("LAST_VALUE(m)", 9),
        ("ARRAY_AGG(m)", [5, 9]),
        ("JSON_ARRAYAGG(m)", "[5,9]"),
        ("JSON_OBJECTAGG(KEY k VALUE m)", '{"a":9,"b":5}'),
    ],
)
def test_t55_values_are_taken_away(sql, call, expected):
    sql.table("t", ["k", "v"], ("a", 1), ("b", 5), ("a", 9), ("b", 2))
    assert sql.final(f"SELECT {call} FROM {UPDATED}") == [(expected,)]


def test_json_aggregates_and_null(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", None))
    query = (
        "SELECT JSON_ARRAYAGG(v), JSON_ARRAYAGG(v NULL ON NULL), JSON_OBJECTAGG(KEY k VALUE v), "
        "JSON_OBJECTAGG(KEY k VALUE v ABSENT ON NULL) FROM t"
    )
    assert sql.final(query) == [("[1]", "[1,null]", '{"a":1,"b":null}', '{"a":1}')]
    table = sql.t_env.from_path("t").select(
        json_array_agg(JsonOnNull.NULL, col("v")).alias("x"), json_object_agg(JsonOnNull.ABSENT, col("k"), col("v"))
    )
    assert sql.final(table) == [("[1,null]", '{"a":1}')]


def test_t18_mini_batch_emits_one_change_for_each_key_and_batch():
    queries = Queries(table_environment())
    queries.t_env.get_config().set("table.exec.mini-batch.enabled", "true")
    queries.table("t", ["k", "v"], ("a", 1), ("b", 5), ("a", 9), ("b", 2))
    assert queries.changelog("SELECT k, SUM(v) FROM t GROUP BY k") == [("+I", "a", 10), ("+I", "b", 7)]


def test_percentile_lies_between_values(sql):
    sql.table("p", ["k", "v"], ("a", 1), ("a", 2), ("a", 4), ("b", 7), ("b", None))
    query = "SELECT k, PERCENTILE(v, 0.5), PERCENTILE(v, ARRAY[0.0, 0.75, 1.0]) FROM p GROUP BY k"
    assert sql.final(query) == [("a", 2.0, [1.0, 3.0, 4.0]), ("b", 7.0, [7.0, 7.0, 7.0])]
    assert sql.final("SELECT PERCENTILE(v, 0.5, 3) FROM p WHERE v IS NULL") == [(None,)]


def test_t55_percentile_takes_values_away(sql):
    sql.table("p", ["k", "v"], ("a", 1), ("b", 5), ("a", 9))
    query = "SELECT PERCENTILE(m, 1.0) FROM (SELECT k, MIN(v) + MAX(v) AS m FROM p GROUP BY k)"
    assert sql.final(query) == [(10.0,)]


def test_current_database_is_that_of_the_session(sql):
    sql.t_env.execute_sql("CREATE DATABASE shop")
    sql.t_env.execute_sql("USE shop")
    assert sql.value("CURRENT_DATABASE()") == "shop"
