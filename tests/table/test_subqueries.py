"""Subqueries in conditions and as values (T34, T35, T77)."""

import pytest

from penstock.util.exceptions import TableException, ValidationException


def _tables(queries):
    queries.table("l", ["k", "a"], (1, "a"), (2, "b"), (None, "n"), (1, "c"))
    queries.table("r", ["k", "x"], (1, "x"), (1, "y"), (3, "z"), (None, "m"))


def _result(request, fixture, query):
    queries = request.getfixturevalue(fixture)
    _tables(queries)
    return queries.final(query) if fixture == "sql" else sorted(queries.rows(query), key=repr)


@pytest.mark.parametrize("fixture", ["sql", "batch"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k IN (SELECT k FROM r)", "ac"),
        ("k NOT IN (SELECT k FROM r)", ""),
        ("k NOT IN (SELECT k FROM r WHERE k IS NOT NULL)", "b"),
        ("k NOT IN (SELECT k FROM r WHERE k > 7)", "abcn"),
        ("k NOT IN (SELECT k FROM r WHERE x > a AND r.k IS NOT NULL)", "b"),
        ("EXISTS (SELECT * FROM r WHERE r.k = l.k AND x > 'x')", "ac"),
        ("NOT EXISTS (SELECT * FROM r WHERE r.k = l.k)", "bn"),
        ("EXISTS (SELECT * FROM r WHERE x = 'z')", "abcn"),
        ("(k, 'x') IN (SELECT k, x FROM r)", "ac"),
        ("k IN (SELECT k FROM r) AND a <> 'a'", "c"),
        ("(SELECT COUNT(*) FROM r WHERE r.k = l.k) = 0", "bn"),
        ("a < (SELECT MIN(x) FROM r)", "abc"),
    ],
)
def test_t77_subqueries_as_conditions(request, fixture, condition, expected):
    found = _result(request, fixture, f"SELECT a FROM l WHERE {condition}")
    assert "".join(value for (value,) in found) == expected


@pytest.mark.parametrize("fixture", ["sql", "batch"])
def test_t77_scalar_subqueries_are_values(request, fixture):
    query = "SELECT a, (SELECT COUNT(*) FROM r WHERE r.k = l.k) AS n, (SELECT MAX(x) FROM r) AS m FROM l"
    assert _result(request, fixture, query) == [("a", 2, "z"), ("b", 0, "z"), ("c", 2, "z"), ("n", 0, "z")]


def test_t77_a_scalar_subquery_without_a_row_is_null(sql):
    _tables(sql)
    query = "SELECT a, (SELECT x FROM r WHERE r.k = l.k AND x <> 'y') FROM l"
    assert sql.final(query) == [("a", "x"), ("b", None), ("c", "x"), ("n", None)]


@pytest.mark.parametrize("inner", ["SELECT x FROM r WHERE r.k = l.k", "SELECT x FROM r"])
def test_t77_more_than_one_row_of_a_scalar_subquery_fails_the_job(sql, inner):
    _tables(sql)
    with pytest.raises(Exception, match="more than one row"):
        sql.final(f"SELECT a, ({inner}) FROM l")


def test_t77_a_scalar_subquery_compared_by_more_than_equality_is_rejected(sql):
    _tables(sql)
    with pytest.raises(TableException, match="equality only"):
        sql.final("SELECT a, (SELECT x FROM r WHERE r.k > l.k) FROM l")


@pytest.fixture
def sides(sql):
    sql.table("el", ["x", "y"], (1, "a"), (2, "b"), (None, "c"), (3, "d"))
    sql.table("er", ["x", "z"], (2, 10), (2, 20), (5, 30))
    return sql


def test_t77_in_is_a_value_too(sides):
    query = "SELECT y, x IN (SELECT x FROM er) FROM el"
    assert sides.final(query) == [("a", False), ("b", True), ("c", None), ("d", False)]
    assert sides.final("SELECT y FROM el WHERE x IN (SELECT x FROM er) OR y = 'a'") == [("a",), ("b",)]


def test_t77_in_as_a_value_is_null_if_null_may_be_the_one(sides):
    sides.table("nulls", ["x"], (2,), (None,))
    query = "SELECT y, x IN (SELECT x FROM nulls) FROM el"
    assert sides.final(query) == [("a", None), ("b", True), ("c", None), ("d", None)]
    assert sides.final("SELECT y, x IN (SELECT x FROM er WHERE z > 99) FROM el WHERE y = 'c'") == [("c", False)]


def test_t77_exists_is_a_value_too(sides):
    query = "SELECT y, EXISTS (SELECT 1 FROM er WHERE er.x = el.x) FROM el"
    assert sides.final(query) == [("a", False), ("b", True), ("c", False), ("d", False)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > SOME (SELECT x FROM er)", ["d"]),
        ("x = ANY (SELECT x FROM er)", ["b"]),
        ("x <> ALL (SELECT x FROM er)", ["a", "d"]),
        ("x <= ALL (SELECT x FROM er)", ["a", "b"]),
    ],
)
def test_t77_comparisons_with_some_and_all_rows(sides, condition, expected):
    assert sides.final(f"SELECT y FROM el WHERE {condition}") == [(one,) for one in expected]


@pytest.mark.parametrize("condition", ["<> SOME", "= ALL", "> SOME", "<= ALL"])
def test_t77_rows_of_several_columns_are_compared_for_equality_only(sides, condition):
    rows = "(SELECT x, z FROM er)"
    with pytest.raises(TableException, match="several columns"):
        sides.final(f"SELECT y FROM el WHERE (x, 10) {condition} {rows}")
    assert sides.final(f"SELECT y FROM el WHERE (x, 10) = SOME {rows}") == [("b",)]
    assert sides.final(f"SELECT y FROM el WHERE (x, 30) <> ALL {rows}") == [("a",), ("b",), ("d",)]


def test_t77_a_lateral_query_refers_to_the_tables_in_front_of_it(sides):
    inner = "LATERAL (SELECT z FROM er WHERE er.x = el.x)"
    assert sides.final(f"SELECT y, m FROM el CROSS JOIN {inner} AS s(m)") == [("b", 10), ("b", 20)]
    query = f"SELECT y, m FROM el LEFT JOIN {inner} AS s(m) ON TRUE"
    assert sides.final(query) == [("a", None), ("b", 10), ("b", 20), ("c", None), ("d", None)]
    counted = "SELECT y, c FROM el, LATERAL (SELECT COUNT(*) AS c FROM er WHERE er.x = el.x)"
    assert sides.final(counted) == [("b", 2)]


def test_t77_having_compares_with_a_query(sides):
    query = "SELECT x, COUNT(*) AS c FROM er GROUP BY x HAVING COUNT(*) > (SELECT COUNT(*) - 3 FROM el)"
    assert sides.final(query) == [(2, 2)]
    assert sides.final("SELECT x FROM er GROUP BY x HAVING x IN (SELECT x FROM el)") == [(2,)]


@pytest.fixture
def groups(sql):
    sql.table("t", ["v", "w", "k"], (10, 1, "a"), (20, 1, "a"), (30, 2, "b"), (10, 1, "b"))
    sql.table("u", ["x", "y", "k"], (5, 10, "a"), (25, 20, "a"), (35, 30, "b"), (99, 1, "c"))
    return sql


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT w, COUNT(*), (SELECT MAX(x) FROM u WHERE u.y = t.v) FROM t GROUP BY w, v",
            [(1, 1, 25), (1, 2, 5), (2, 1, 35)],
        ),
        (
            "SELECT k, SUM(v) FROM t GROUP BY k HAVING SUM(v) > (SELECT MAX(x) FROM u WHERE u.k = t.k)",
            [("a", 30), ("b", 40)],
        ),
        ("SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND y < 20)", [("a",)]),
        (
            "SELECT w + 1, k FROM t GROUP BY w + 1, k HAVING 30 IN (SELECT y FROM u WHERE u.k = t.k)",
            [(2, "b"), (3, "b")],
        ),
        (
            "SELECT s.k, (SELECT MAX(x) FROM u WHERE u.k = s.k) FROM t JOIN (SELECT k FROM u) s USING (k) GROUP BY k",
            [("a", 25), ("b", 35)],
        ),
        (
            "SELECT w, k, (SELECT MAX(x) FROM u WHERE u.k = t.k) FROM t GROUP BY ROLLUP(w, k) HAVING w = 1",
            [(1, "a", 25), (1, "b", 35), (1, None, None)],
        ),
    ],
)
def test_t77_a_subquery_of_a_grouped_query_refers_to_the_keys(groups, query, expected):
    assert groups.final(query) == expected


@pytest.mark.parametrize(
    "query", ["SELECT k, (SELECT MAX(x) FROM u WHERE u.y = t.v) FROM t GROUP BY k", "SELECT * FROM t GROUP BY k"]
)
def test_t77_a_column_that_is_no_key_is_unknown_in_a_grouped_query(groups, query):
    with pytest.raises(ValidationException):
        groups.final(query)
