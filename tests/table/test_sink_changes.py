"""What sinks with a primary key or NOT NULL columns get (T112, T123, T124)."""

import pytest
from tests.table.rows_connector import RESULTS, ROWS

from penstock.util.exceptions import TableException, ValidationException


def create(sql, name, columns, mode):
    options = f"'connector' = 'test-rows', 'name' = '{name}', 'mode' = '{mode}'"
    sql.t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")


def sink(sql, columns, name="s", mode="upsert"):
    """A sink that keeps what it gets."""
    create(sql, name, columns, mode)


def source(sql, name, columns, *rows, mode="all"):
    ROWS[name] = list(rows)
    create(sql, name, columns, mode)


def insert(sql, query, name="s"):
    sql.t_env.execute_sql(f"INSERT INTO {name} {query}").wait()
    return RESULTS.get(name, [])


def upserted(changes, key=0):
    """What a table has that takes changes by key."""
    table = {}
    for kind, *row in changes:
        assert kind != "-U"
        if kind == "-D":
            table.pop(row[key], None)
        else:
            table[row[key]] = tuple(row)
    return sorted(table.values())


def test_t124_a_sink_whose_key_is_the_upsert_key_gets_upserts_alone(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", 2), ("a", 3))
    sink(sql, "k STRING, total BIGINT, PRIMARY KEY (k) NOT ENFORCED")
    assert insert(sql, "SELECT k, SUM(v) FROM t GROUP BY k") == [("+I", "a", 1), ("+I", "b", 2), ("+U", "a", 4)]


def test_t124_a_materializer_keeps_the_row_that_is_left_of_a_key(sql):
    source(
        sql,
        "t",
        "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED",
        ("+I", 1, "a", 10),
        ("+I", 2, "a", 20),
        ("-D", 1, "a", 10),  # the sink has the row of id 2, which stays
        ("+I", 3, "a", 30),
        ("-D", 3, "a", 30),  # the row of id 2 comes back
        ("-D", 2, "a", 20),
    )
    sink(sql, "k STRING, v INT, id INT, PRIMARY KEY (k) NOT ENFORCED")
    assert insert(sql, "SELECT k, v, id FROM t") == [
        ("+I", "a", 10, 1),
        ("+U", "a", 20, 2),
        ("+U", "a", 30, 3),
        ("+U", "a", 20, 2),
        ("-D", "a", 20, 2),
    ]


def test_t124_a_materializer_finds_the_row_that_an_update_replaces(sql):
    source(
        sql,
        "t",
        "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED",
        ("+I", 1, "a", 10),
        ("+I", 2, "a", 20),
        ("-U", 1, "a", 10),
        ("+U", 1, "b", 11),
        ("-U", 2, "a", 20),
        ("+U", 2, "a", 21),
    )
    sink(sql, "k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED")
    assert upserted(insert(sql, "SELECT k, v FROM t")) == [("a", 21), ("b", 11)]


def test_t124_a_query_without_upsert_key_is_materialized_by_whole_rows(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", 1), ("a", 2))
    sink(sql, "n BIGINT, PRIMARY KEY (n) NOT ENFORCED")
    assert upserted(insert(sql, "SELECT SUM(v) FROM t GROUP BY k")) == [(1,), (3,)]


def test_t124_a_row_whose_key_in_the_sink_changes_is_deleted_there(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 2), ("a", 0))
    sink(sql, "k STRING, top INT, n BIGINT, PRIMARY KEY (k, top) NOT ENFORCED")
    changes = insert(sql, "SELECT k, CAST(MAX(v) AS INT), COUNT(*) FROM t GROUP BY k")
    assert changes == [("+I", "a", 1, 1), ("-D", "a", 1, 1), ("+U", "a", 2, 2), ("+U", "a", 2, 3)]


@pytest.mark.parametrize(
    ("columns", "condition", "expected"),
    [
        ("id INT, k STRING, v INT", "rn = 1", [(2, "a", 5)]),
        ("id INT, k STRING, v INT, rn BIGINT", "rn <= 2", [(2, "a", 5, 1), (3, "a", 4, 2)]),
    ],
)
def test_t124_a_row_that_leaves_a_top_n_is_deleted_under_its_own_key(sql, columns, condition, expected):
    key = "PRIMARY KEY (id) NOT ENFORCED"
    rows = [("+I", 1, "a", 1), ("+I", 2, "a", 5), ("+I", 3, "a", 4)]
    source(sql, "t", f"id INT, k STRING, v INT, {key}", *rows, mode="insert")
    sink(sql, f"{columns}, {key}")
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t"
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    assert upserted(insert(sql, f"SELECT {names} FROM ({ranked}) WHERE {condition}")) == expected


@pytest.mark.parametrize(("mode", "expected"), [("NONE", [("b", 2)]), ("AUTO", [("a", 1), ("b", 2)])])
def test_t124_the_option_upsert_materialize_can_switch_it_off(sql, mode, expected):
    sql.t_env.get_config().set("table.exec.sink.upsert-materialize", mode)
    source(
        sql,
        "t",
        "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED",
        *(("+I", 1, "a", 1), ("+I", 2, "b", 2), ("+I", 3, "a", 3), ("-D", 3, "a", 3)),
    )
    sink(sql, "k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED")
    assert upserted(insert(sql, "SELECT k, v FROM t")) == expected


def test_t124_the_option_upsert_materialize_can_force_it(sql):
    sql.t_env.get_config().set("table.exec.sink.upsert-materialize", "force")
    sql.table("t", ["k"], ("a",), ("a",))
    sink(sql, "k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED")
    assert insert(sql, "SELECT k, COUNT(*) FROM t GROUP BY k") == [("+I", "a", 1), ("-D", "a", 1), ("+I", "a", 2)]
    sql.t_env.get_config().set("table.exec.sink.upsert-materialize", "maybe")
    with pytest.raises(ValidationException, match="one of AUTO, FORCE, NONE"):
        insert(sql, "SELECT k, COUNT(*) FROM t GROUP BY k")


def test_t124_a_sink_that_takes_all_changes_gets_them_unchanged(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 2))
    sink(sql, "n BIGINT, PRIMARY KEY (n) NOT ENFORCED", mode="all")
    assert insert(sql, "SELECT SUM(v) FROM t GROUP BY k") == [("+I", 1), ("-U", 1), ("+U", 3)]


def test_t124_inserts_only_refuse_updates(sql):
    sql.table("t", ["k"], ("a",))
    sink(sql, "k STRING, n BIGINT", mode="insert")
    with pytest.raises(TableException, match="doesn't support consuming update"):
        insert(sql, "SELECT k, COUNT(*) FROM t GROUP BY k")


def test_t112_upserts_of_a_source_get_the_rows_that_they_replace(sql):
    source(
        sql,
        "t",
        "id INT, k STRING, PRIMARY KEY (id) NOT ENFORCED",
        *(("+U", 1, "a"), ("+U", 2, "a"), ("+U", 1, "b"), ("-D", 2, None)),
        mode="upsert",
    )
    assert sql.final("SELECT k, COUNT(*) FROM t GROUP BY k") == [("b", 1)]


def test_t123_null_in_a_column_that_is_not_null_fails_the_job(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", None))
    sink(sql, "k STRING, v BIGINT NOT NULL", mode="insert")
    with pytest.raises(Exception, match="Column 'v' is NOT NULL, however, a null value is being written into it"):
        insert(sql, "SELECT k, v FROM t")


def test_t123_rows_with_null_are_dropped_if_the_option_says_so(sql):
    sql.t_env.get_config().set("table.exec.sink.not-null-enforcer", "DROP")
    sql.table("t", ["k", "v"], ("a", 1), ("b", None), (None, 3))
    sink(sql, "k STRING, v BIGINT NOT NULL", mode="insert")
    assert insert(sql, "SELECT k, v FROM t") == [("+I", "a", 1), ("+I", None, 3)]
