"""Subqueries in conditions and as values (T34, T35, T77)."""

import pytest

from penstock.util.exceptions import TableException


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
