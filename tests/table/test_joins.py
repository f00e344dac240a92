"""Regular joins (T70 to T72) and set operations (T34)."""

import pyarrow as pa
import pytest
from tests.table.conftest import Queries, table_environment

from penstock.common import Types
from penstock.common.types import Row, RowKind
from penstock.runtime.table.expressions import EvaluationContext
from penstock.runtime.table.join_state import Form
from penstock.runtime.table.operators.streaming_join import JoinSide, StreamingJoinOperator
from penstock.testing.table_harness import TableOperatorHarness

KINDS = {
    "+I": RowKind.INSERT,
    "-U": RowKind.UPDATE_BEFORE,
    "+U": RowKind.UPDATE_AFTER,
    "-D": RowKind.DELETE,
}
TYPES = [pa.string(), pa.string()]


def changes(queries, name, columns, *rows):
    """A view of changes ``(kind, value, ...)``; columns are strings unless the first row has numbers."""
    types = [Types.LONG() if isinstance(value, int) else Types.STRING() for value in rows[0][1:]]
    made = []
    for kind, *values in rows:
        row = Row(*values)
        row.set_row_kind(KINDS[kind])
        made.append(row)
    t_env = queries.t_env
    stream = t_env._env.from_collection(made, type_info=Types.ROW_NAMED(columns, types))
    t_env.create_temporary_view(name, t_env.from_changelog_stream(stream))


def harness(kind, left=Form.COUNTS, right=Form.COUNTS, null_safe=False):
    """A join of (k, a) and (k, x) on k."""
    semi = kind in ("SEMI", "ANTI")
    names = ["k", "a"] if semi else ["k", "a", "k2", "x"]
    sides = []
    for number, form in enumerate((left, right)):
        outer = kind in ("FULL", "RIGHT" if number else "LEFT")
        counted = outer or (semi and number == 0)
        sides.append(JoinSide(TYPES, [0], Form.PARTNERS if counted else form, outer))
    schema = pa.schema([(name, pa.string()) for name in names])
    operator = StreamingJoinOperator(*sides, kind, [null_safe], None, schema, EvaluationContext())
    inputs = [pa.schema([("k", pa.string()), (name, pa.string())]) for name in ("a", "x")]
    return TableOperatorHarness(operator, *inputs)


def test_t71_a_left_row_is_padded_until_its_first_partner_comes():
    join = harness("LEFT")
    steps = [
        (join.process, ("+I", "k", "a"), [("+I", "k", "a", None, None)]),
        (join.process2, ("+I", "k", "x"), [("-D", "k", "a", None, None), ("+I", "k", "a", "k", "x")]),
        (join.process2, ("+I", "k", "y"), [("+I", "k", "a", "k", "y")]),
        (join.process2, ("-D", "k", "x"), [("-D", "k", "a", "k", "x")]),
        (join.process2, ("-D", "k", "y"), [("-D", "k", "a", "k", "y"), ("+I", "k", "a", None, None)]),
        (join.process, ("-D", "k", "a"), [("-D", "k", "a", None, None)]),
    ]
    for process, row, expected in steps:
        process(row)
        assert join.take() == expected


def test_t71_one_batch_gives_the_changes_of_its_rows_one_by_one():
    join = harness("LEFT")
    join.process(("+I", "k", "a"), ("+I", "k", "a"))
    join.take()
    join.process2(("+I", "k", "x"), ("-D", "k", "x"), ("+I", "k", "y"))
    assert join.take() == [
        ("-D", "k", "a", None, None),
        ("-D", "k", "a", None, None),
        ("+I", "k", "a", "k", "x"),
        ("+I", "k", "a", "k", "x"),
        ("-D", "k", "a", "k", "x"),
        ("-D", "k", "a", "k", "x"),
        ("+I", "k", "a", None, None),
        ("+I", "k", "a", None, None),
        ("-D", "k", "a", None, None),
        ("-D", "k", "a", None, None),
        ("+I", "k", "a", "k", "y"),
        ("+I", "k", "a", "k", "y"),
    ]


def test_t71_a_full_join_pads_both_sides():
    join = harness("FULL")
    join.process2(("+I", "k", "x"))
    join.process(("+I", "k", "a"))
    join.process(("-D", "k", "a"))
    assert join.take() == [
        ("+I", None, None, "k", "x"),
        ("-D", None, None, "k", "x"),
        ("+I", "k", "a", "k", "x"),
        ("-D", "k", "a", "k", "x"),
        ("+I", None, None, "k", "x"),
    ]


@pytest.mark.parametrize("right", [Form.COUNTS, Form.NUMBER])
def test_t72_an_anti_join_takes_a_row_back_when_a_partner_comes(right):
    join = harness("ANTI", right=right)
    steps = [
        (join.process, ("+I", "k", "a"), [("+I", "k", "a")]),
        (join.process2, ("+I", "k", "x"), [("-D", "k", "a")]),
        (join.process2, ("+I", "k", "x"), []),
        (join.process2, ("-D", "k", "x"), []),
        (join.process2, ("-D", "k", "x"), [("+I", "k", "a")]),
    ]
    for process, row, expected in steps:
        process(row)
        assert join.take() == expected


def test_t72_a_semi_join_gives_a_left_row_once():
    join = harness("SEMI", right=Form.NUMBER)
    join.process(("+I", "k", "a"))
    assert join.take() == []
    join.process2(("+I", "k", "x"), ("+I", "k", "y"))
    assert join.take() == [("+I", "k", "a")]
    join.process(("+I", "k", "b"))
    assert join.take() == [("+I", "k", "b")]
    join.process2(("-D", "k", "x"), ("-D", "k", "y"))
    assert sorted(join.take()) == [("-D", "k", "a"), ("-D", "k", "b")]


def test_t70_an_inner_join_keeps_the_kinds_of_its_rows():
    join = harness("INNER")
    join.process2(("+I", "k", "x"))
    join.process(("+I", "k", "a"), ("-U", "k", "a"), ("+U", "k", "b"))
    assert join.take() == [("+I", "k", "a", "k", "x"), ("-U", "k", "a", "k", "x"), ("+U", "k", "b", "k", "x")]


def test_t70_null_keys_never_match_but_null_safe_ones_do():
    for null_safe, expected in ((False, []), (True, [("+I", None, "a", None, "x")])):
        join = harness("INNER", Form.ROWS, Form.ROWS, null_safe=null_safe)
        join.process(("+I", None, "a"))
        join.process2(("+I", None, "x"))
        assert join.take() == expected


def test_t70_a_key_without_rows_has_no_state():
    join = harness("INNER")
    join.process(("+I", "k", "a"), ("+I", None, "b"))
    join.process(("-D", "k", "a"), ("-D", "j", "a"))
    assert list(join.operator._state.keys()) == []


# -- queries ----------------------------------------------------------------------------------------------------------


def _tables(sql):
    sql.table("l", ["k", "a"], (1, "a"), (2, "b"), (None, "n"), (1, "c"))
    sql.table("r", ["k", "x"], (1, "x"), (1, "y"), (3, "z"), (None, "m"))


INNER_ROWS = [(1, "a", 1, "x"), (1, "a", 1, "y"), (1, "c", 1, "x"), (1, "c", 1, "y")]
LEFT_ROWS = [(2, "b", None, None), (None, "n", None, None)]
RIGHT_ROWS = [(None, None, 3, "z"), (None, None, None, "m")]


@pytest.mark.parametrize("fixture", ["sql", "batch"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("JOIN", INNER_ROWS),
        ("LEFT JOIN", [*INNER_ROWS, *LEFT_ROWS]),
        ("RIGHT JOIN", [*INNER_ROWS, *RIGHT_ROWS]),
        ("FULL JOIN", [*INNER_ROWS, *LEFT_ROWS, *RIGHT_ROWS]),
    ],
)
def test_t70_joins_of_all_kinds(request, fixture, kind, expected):
    queries = request.getfixturevalue(fixture)
    _tables(queries)
    query = f"SELECT l.k, a, r.k, x FROM l {kind} r ON l.k = r.k"
    found = queries.final(query) if fixture == "sql" else sorted(queries.rows(query), key=repr)
    assert found == sorted(expected, key=repr)


def test_t13_an_inner_join_of_inserts_gives_inserts(sql):
    _tables(sql)
    assert len(sql.rows("SELECT * FROM l JOIN r ON l.k = r.k")) == 4


def test_t70_conditions_besides_the_equality_decide_about_partners(sql):
    _tables(sql)
    assert sql.final("SELECT a, x FROM l LEFT JOIN r ON l.k = r.k AND a > 'b' AND x <> 'y'") == [
        ("a", None),
        ("b", None),
        ("c", "x"),
        ("n", None),
    ]
    assert sql.final("SELECT a, x FROM l, r WHERE l.k = r.k AND a < x AND x < 'y'") == [("a", "x"), ("c", "x")]


def test_t70_a_join_without_equality_pairs_all_rows(sql):
    _tables(sql)
    assert len(sql.rows("SELECT a, x FROM l CROSS JOIN r")) == 16
    assert sql.final("SELECT a, x FROM l JOIN r ON l.k > r.k") == [("b", "x"), ("b", "y")]


def test_t70_keys_of_different_types_meet():
    queries = Queries(table_environment(parallelism=2))
    queries.t_env.execute_sql(
        "CREATE TEMPORARY VIEW i AS SELECT CAST(k AS INT) AS k FROM (VALUES (1), (2), (-7)) AS t (k)"
    )
    queries.t_env.execute_sql(
        "CREATE TEMPORARY VIEW d AS SELECT CAST(k AS DECIMAL(9, 2)) AS k FROM (VALUES (2), (-7)) AS t (k)"
    )
    queries.t_env.execute_sql(
        "CREATE TEMPORARY VIEW s AS SELECT CAST(k AS BIGINT) AS k FROM (VALUES (2), (1)) AS t (k)"
    )
    assert queries.final("SELECT i.k FROM i JOIN d ON i.k = d.k") == [(-7,), (2,)]
    assert queries.final("SELECT i.k FROM i JOIN s ON i.k = s.k") == [(1,), (2,)]


def test_t71_updates_of_both_sides_reach_the_result(sql):
    changes(sql, "l", ["id", "v"], ("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b"), ("+I", 2, "c"), ("-D", 2, "c"))
    changes(sql, "r", ["id", "w"], ("+I", 1, "x"), ("+I", 2, "y"), ("-U", 1, "x"), ("+U", 1, "z"))
    assert sql.final("SELECT l.id, v, w FROM l JOIN r ON l.id = r.id") == [(1, "b", "z")]
    assert sql.final("SELECT l.id, v, w FROM l FULL JOIN r ON l.id = r.id") == [(1, "b", "z"), (None, None, "y")]


def test_t71_joins_of_joins_and_aggregates(sql):
    _tables(sql)
    sql.table("s", ["x", "n"], ("x", 10), ("y", 20), ("x", 30))
    query = """
        SELECT l.a, t.total FROM l LEFT JOIN (
            SELECT r.k, SUM(s.n) AS total FROM r JOIN s ON r.x = s.x GROUP BY r.k
        ) AS t ON l.k = t.k
    """
    assert sql.final(query) == [("a", 60), ("b", None), ("c", 60), ("n", None)]


def test_t70_using_gives_the_common_column_once(sql):
    _tables(sql)
    assert sql.final("SELECT * FROM l JOIN r USING (k)") == sorted((1, a, x) for a in "ac" for x in "xy")
    assert (3, None, "z") in sql.final("SELECT * FROM l FULL JOIN r USING (k)")


# -- set operations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", ["sql", "batch"])
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("INTERSECT", [1, None]),
        ("INTERSECT ALL", [1, 1, None]),
        ("EXCEPT", [2]),
        ("EXCEPT ALL", [1, 2]),
        ("UNION", [1, 2, 3, None]),
    ],
)
def test_t34_set_operations_treat_nulls_as_equal(request, fixture, operation, expected):
    queries = request.getfixturevalue(fixture)
    queries.table("p", ["k"], (1,), (2,), (None,), (1,), (1,))
    queries.table("q", ["k"], (1,), (3,), (None,), (1,), (None,))
    query = f"SELECT k FROM p {operation} SELECT k FROM q"
    found = queries.final(query) if fixture == "sql" else sorted(queries.rows(query), key=repr)
    assert found == [(value,) for value in expected]


def test_t70_columns_of_using_keep_the_names_of_their_tables(sql):
    sql.table("x", ["k", "a"], (1, "p"), (2, "q"))
    sql.table("y", ["k", "b"], (1, "r"), (3, "s"))
    assert sql.final("SELECT x.k, y.k, k, a, b FROM x JOIN y USING (k)") == [(1, 1, 1, "p", "r")]
    assert sql.final("SELECT x.k, b FROM x LEFT JOIN y USING (k)") == [(1, "r"), (2, None)]
    assert sql.final("SELECT * FROM x JOIN y USING (k)") == [(1, "p", "r")]
    chained = "SELECT x.k, y.b, z.a FROM x JOIN y USING (k) JOIN x AS z ON z.k = x.k"
    assert sql.final(chained) == [(1, "r", "p")]
