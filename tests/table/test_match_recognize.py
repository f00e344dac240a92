"""MATCH_RECOGNIZE (T90 to T93)."""

import datetime as dt

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.util.exceptions import TableException, ValidationException


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


def match(body, partition="", order="ts"):
    partition = f"PARTITION BY {partition} " if partition else ""
    return f"SELECT * FROM t MATCH_RECOGNIZE ({partition}ORDER BY {order} {body}) AS m"


def rows(sql, *values, columns=("v",), delay=0):
    timed(sql, "t", list(columns), *values, delay=delay)


def numbers(sql, *values):
    rows(sql, *((v, at(i)) for i, v in enumerate(values)))


def test_t90_partition_keys_come_before_measures(sql):
    rows(sql, ("p", 1, at(1)), ("q", 1, at(1)), ("p", 5, at(2)), ("q", 7, at(3)), columns=("k", "v"), delay=1)
    query = match("MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS B.v > A.v", "k")
    assert sql.rows(query) == [("p", 1, 5), ("q", 1, 7)]
    assert sql.rows(query.replace("SELECT *", "SELECT m.b, k")) == [(5, "p"), (7, "q")]


def test_t90_rows_are_sorted_by_time_first(sql):
    rows(sql, ("b", at(3)), ("a", at(2)), ("a", at(5)), ("b", at(1)), columns=("c",), delay=9)
    query = match("MEASURES A.ts AS x, B.ts AS y PATTERN (A B) DEFINE A AS A.c = 'a', B AS B.c = 'b'")
    assert sql.rows(query) == [(at(2), at(3))]


def test_t90_rows_of_equal_time_are_sorted_by_more_columns(sql):
    rows(sql, (2, at(1)), (1, at(1)), delay=1)
    assert sql.rows(match("MEASURES A.v AS a, B.v AS b PATTERN (A B)", order="ts, v")) == [(1, 2)]


SKIPS = {
    "SKIP PAST LAST ROW": [(1, 3), (4, 6)],
    "SKIP TO NEXT ROW": [(1, 3), (2, 4), (3, 5), (4, 6)],
    "SKIP TO LAST C": [(1, 3), (3, 5)],
    "SKIP TO FIRST B": [(1, 3), (2, 4), (3, 5), (4, 6)],
}


def test_t90_without_a_skip_clause_every_row_may_begin_a_match(sql):
    numbers(sql, 1, 2, 3, 4, 5, 6)
    assert sql.rows(match("MEASURES A.v AS a, C.v AS c PATTERN (A B C)")) == SKIPS["SKIP TO NEXT ROW"]


@pytest.mark.parametrize("skip", SKIPS)
def test_t90_after_match(sql, skip):
    numbers(sql, 1, 2, 3, 4, 5, 6)
    assert sql.rows(match(f"MEASURES A.v AS a, C.v AS c AFTER MATCH {skip} PATTERN (A B C)")) == SKIPS[skip]


def test_t93_skip_to_the_first_row_of_the_match_fails_the_job(sql):
    numbers(sql, 1, 2, 3)
    with pytest.raises(Exception, match=r"(?i)skip|first"):
        sql.rows(match("MEASURES A.v AS a AFTER MATCH SKIP TO FIRST A PATTERN (A B)"))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A B* C", []),  # what B takes, C does not get
        ("A B*? C", [(1, 3)]),
        ("A B+ D", [(1, 0)]),
        ("A B{2} D", [(1, 0)]),
        ("A B{1,3} D", [(1, 0)]),
        ("A B{3,} D", []),
        ("A E? B", [(1, 2)]),
    ],
)
def test_t91_quantifiers(sql, pattern, expected):
    numbers(sql, 1, 2, 3, 0)
    last = pattern.split()[-1]
    define = [f"{name} AS {name}.{what}" for name, what in (("A", "v = 1"), ("B", "v > 1"), ("C", "v > 2"))]
    define += ["D AS D.v = 0", "E AS E.v = 9"]
    used = ", ".join(one for one in define if one[0] in pattern)
    query = match(f"MEASURES A.v AS a, {last[0]}.v AS z PATTERN ({pattern}) DEFINE {used}")
    assert sql.rows(query) == expected


def test_t91_a_variable_without_definition_matches_every_row(sql):
    numbers(sql, 1, 2, 3)
    assert sql.rows(match("MEASURES X.v AS x, Y.v AS y PATTERN (X Y) DEFINE Y AS Y.v = 3")) == [(2, 3)]


def test_t92_last_first_and_aggregates(sql):
    numbers(sql, 10, 9, 7, 4, 8)
    body = (
        "MEASURES FIRST(D.v) AS f, LAST(D.v) AS l, LAST(D.v, 1) AS l1, FIRST(D.v, 2) AS f2, SUM(D.v) AS s, "
        "COUNT(D.*) AS n, AVG(D.v * 2) AS a, U.v AS u, v AS any_last, LAST(D.v, 9) AS missing "
        "AFTER MATCH SKIP PAST LAST ROW PATTERN (S D+ U) "
        "DEFINE D AS (LAST(D.v, 1) IS NULL AND D.v < S.v) OR D.v < LAST(D.v, 1), "
        "U AS U.v > LAST(D.v)"
    )
    assert sql.rows(match(body)) == [(9, 4, 7, 4, 20, 3, 13, 8, 8, None)]


def test_t92_aggregates_in_conditions_include_the_current_row(sql):
    numbers(sql, 3, 4, 5, 6)
    body = "MEASURES COUNT(A.v) AS n, SUM(A.v) AS s, B.v AS b {} PATTERN (A+ B) DEFINE A AS SUM(A.v) < 8"
    assert sql.rows(match(body.format("AFTER MATCH SKIP PAST LAST ROW"))) == [(2, 7, 5)]
    assert sql.rows(match(body.format(""))) == [(2, 7, 5), (1, 4, 5), (1, 5, 6)]


def test_t92_match_rowtime_is_a_time_attribute(sql):
    numbers(sql, 1, 2, 3, 4)
    query = match("MEASURES B.v AS b, MATCH_ROWTIME() AS rt AFTER MATCH SKIP PAST LAST ROW PATTERN (A B)")
    assert sql.rows(query) == [(2, at(1)), (4, at(3))]
    windows = f"SELECT SUM(b) FROM ({query}) GROUP BY TUMBLE(rt, INTERVAL '2' SECOND)"
    assert sql.rows(windows) == [(2,), (4,)]


def test_t93_within_is_less_than_the_interval(sql):
    rows(sql, ("a", at(1)), ("b", at(3)), ("a", at(5)), ("b", at(9)), columns=("c",))
    body = (
        "MEASURES A.ts AS x AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) WITHIN INTERVAL '4' SECOND "
        "DEFINE A AS A.c = 'a', B AS B.c = 'b'"
    )
    assert sql.rows(match(body)) == [(at(1),)]


def test_t90_by_processing_time(sql):
    sql.table("t0", ["v"], (1,), (2,), (3,))
    sql.t_env.create_temporary_view("t", sql.t_env.sql_query("SELECT v, PROCTIME() AS ts FROM t0"))
    assert sql.rows(match("MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS B.v > 2")) == [(2, 3)]


def test_t140_in_batch_mode_and_at_a_higher_parallelism():
    for queries in (Queries(table_environment(2, batch=True)), Queries(table_environment(3))):
        timed(queries, "t", ["k", "v"], *((i % 4, i * 7 % 5, at(i)) for i in range(80)))
        query = match("MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS B.v > A.v", "k")
        expected = []
        for k in range(4):
            values = [i * 7 % 5 for i in range(80) if i % 4 == k]
            position = 0
            while position + 1 < len(values):
                if values[position + 1] > values[position]:
                    expected.append((k, values[position], values[position + 1]))
                    position += 1
                position += 1
        assert sorted(queries.rows(query)) == sorted(expected)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("MEASURES A.v AS a ALL ROWS PER MATCH PATTERN (A)", TableException, "ONE ROW PER MATCH"),
        ("MEASURES A.v AS a PATTERN (A | B)", TableException, "alternatives"),
        ("MEASURES A.v AS a PATTERN ((A B)+ C)", TableException, "groups"),
        ("MEASURES A.v AS a PATTERN (A B*)", TableException, "Greedy quantifiers are not allowed as the last"),
        ("MEASURES A.v AS a PATTERN (A B??)", TableException, "Reluctant optional"),
        ("MEASURES A.v AS a PATTERN (A) DEFINE Z AS Z.v > 1", ValidationException, "Unknown pattern 'Z'"),
        ("MEASURES SUM(A.v + B.v) AS a PATTERN (A B)", ValidationException, "one variable"),
        ("MEASURES A.nope AS a PATTERN (A)", ValidationException, "nope"),
    ],
)
def test_t91_other_patterns_are_rejected(sql, body, error, message):
    numbers(sql, 1, 2)
    with pytest.raises(error, match=message):
        sql.t_env.execute_sql(match(body))


def test_t90_the_order_begins_with_time(sql):
    numbers(sql, 1, 2)
    with pytest.raises(TableException, match="rowtime or proctime"):
        sql.t_env.execute_sql(match("MEASURES A.v AS a PATTERN (A)", order="v"))
