"""Projection, filter, union: stateless work in columns."""

import pytest

from penstock.table import DataTypes
from penstock.table.expressions import col, lit
from penstock.util.exceptions import SqlParserException, ValidationException


@pytest.fixture(autouse=True)
def _orders(sql):
    sql.table("orders", ["id", "item", "price"], (1, "pen", 2.5), (2, "ink", None), (3, "pen", 1.0))


def test_select_and_where(sql):
    assert sql.rows("SELECT id + 1, UPPER(item) AS item FROM orders WHERE price > 1") == [(2, "PEN")]


def test_t34_where_keeps_true_only(sql):
    assert sql.rows("SELECT id FROM orders WHERE price > 1 OR price <= 1") == [(1,), (3,)]
    assert sql.rows("SELECT id FROM orders WHERE NOT (price > 1)") == [(3,)]


def test_a_table_has_no_rows_to_print_until_it_is_executed(t_env):
    with pytest.raises(
        AttributeError, match=r"no column 'print': its columns are id, item, price\. .*execute\(\)\.print\(\)"
    ):
        t_env.from_path("orders").print()


def test_t3_unknown_names_fail_at_once(t_env):
    with pytest.raises(ValidationException, match="Column 'nope' not found"):
        t_env.sql_query("SELECT nope FROM orders")
    with pytest.raises(ValidationException, match="Object 'nope' not found"):
        t_env.sql_query("SELECT * FROM nope")
    with pytest.raises(ValidationException, match=r"Cannot resolve field \[nope\]"):
        t_env.from_path("orders").select(col("nope"))


def test_t130_text_that_is_no_statement_is_a_parser_error(t_env):
    with pytest.raises(SqlParserException, match="does not begin a statement"):
        t_env.execute_sql("SELEC 1")
    with pytest.raises(SqlParserException, match="line 1, column"):
        t_env.sql_query("SELECT FROM WHERE")
    with pytest.raises(SqlParserException, match="exactly one"):
        t_env.sql_query("SELECT 1; SELECT 2")


def test_t130_wrong_types_are_validation_errors(t_env):
    with pytest.raises(ValidationException, match="WHERE must be a condition of type BOOLEAN"):
        t_env.sql_query("SELECT * FROM orders WHERE id")
    with pytest.raises(ValidationException, match=r"Cannot apply 'UPPER' to arguments of type 'UPPER\(<BIGINT>\)'"):
        t_env.sql_query("SELECT UPPER(id) FROM orders")
    with pytest.raises(ValidationException, match="No match found for function signature NOPE"):
        t_env.sql_query("SELECT NOPE(id) FROM orders")


def test_t21_names_are_case_sensitive_and_backticks_quote(sql, t_env):
    with pytest.raises(ValidationException):
        t_env.sql_query("SELECT ID FROM orders")
    assert sql.rows("SELECT `id` AS `day` FROM orders WHERE id = 1") == [(1,)]


def test_the_text_of_a_table_is_its_name_in_sql(sql, t_env):
    pens = t_env.from_path("orders").filter(col("item") == "pen")
    assert sql.rows(f"SELECT id FROM {pens} WHERE price > 2") == [(1,)]
    name = str(pens)
    assert str(pens) == name
    assert str(pens.select(col("id"))) != name
    assert repr(pens) == "Table(id, item, price)"


def test_plus_joins_texts_in_the_table_api(sql, t_env):
    pens = t_env.from_path("orders").filter(col("id") == 1)
    assert sql.rows(pens.select(col("item") + "s", "a " + col("item"), col("item") + col("id"), col("id") + 1)) == [
        ("pens", "a pen", "pen1", 2)
    ]


def test_t13_union_all_keeps_all_rows(sql):
    assert sql.rows("SELECT id FROM orders UNION ALL SELECT 7") == [(1,), (2,), (3,), (7,)]


def test_t23_union_takes_the_common_type(t_env):
    table = t_env.sql_query("SELECT CAST(1 AS INT) AS a UNION ALL SELECT CAST(1.5 AS DECIMAL(5, 2))")
    assert table.get_resolved_schema().get_column_data_types()[0].same_type(DataTypes.DECIMAL(12, 2))


def test_common_table_expressions_and_subqueries_in_from(sql):
    query = "WITH pens AS (SELECT id AS n FROM orders WHERE item = 'pen') SELECT n FROM (SELECT n FROM pens) AS x"
    assert sql.rows(query) == [(1,), (3,)]


def test_values_and_select_without_from(sql):
    assert sql.rows("VALUES (1, 'a'), (2, NULL)") == [(1, "a"), (2, None)]
    assert sql.rows("SELECT 1, 'x'") == [(1, "x")]


def test_table_api_columns(sql, t_env):
    orders = t_env.from_path("orders")
    assert sql.rows(orders.add_columns((col("id") * 10).alias("ten")).drop_columns(col("price"))) == [
        (1, "pen", 10),
        (2, "ink", 20),
        (3, "pen", 30),
    ]
    renamed = orders.rename_columns(col("item").alias("what")).select(col("what")).distinct()
    assert sql.final(renamed) == [("ink",), ("pen",)]
    assert orders.add_or_replace_columns(lit(1).alias("id")).get_schema().get_field_names() == ["id", "item", "price"]


def test_t6_a_table_can_be_used_twice(sql, t_env):
    orders = t_env.from_path("orders").where(col("id") == 1)
    assert sql.rows(orders.union_all(orders).select(col("item"))) == [("pen",), ("pen",)]


def test_a_case_branch_sees_only_its_rows(sql):
    assert sql.rows("SELECT CASE WHEN id = 2 THEN -1 ELSE 6 / (id - 2) END FROM orders") == [(-6,), (-1,), (6,)]
    assert sql.rows("SELECT id FROM orders WHERE id <> 2 AND 6 / (id - 2) > 0") == [(3,)]


def test_t39_not_negates_like_and_similar_to(sql):
    assert sql.rows("SELECT id FROM orders WHERE item NOT LIKE 'p%'") == [(2,)]
    assert sql.rows("SELECT id FROM orders WHERE item NOT LIKE 'p!%' ESCAPE '!' AND id = 1") == [(1,)]
    assert sql.rows("SELECT id FROM orders WHERE item NOT SIMILAR TO '(pen|x)'") == [(2,)]


def test_t83_qualify_is_a_condition_on_functions_over_rows(sql):
    query = "SELECT id, item FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY item ORDER BY id DESC) = 1"
    assert sql.final(query) == [(2, "ink"), (3, "pen")]


_FIRST = "ROW_NUMBER() OVER (PARTITION BY item ORDER BY id DESC)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT id, {_FIRST} AS rn FROM orders QUALIFY rn = 1", [(2, 1), (3, 1)]),
        (f"SELECT id FROM orders QUALIFY {_FIRST} = 1 ORDER BY id DESC LIMIT 1", [(3,)]),
        (f"SELECT DISTINCT id > 1 FROM orders QUALIFY {_FIRST} = 1", [(True,)]),
        (f"SELECT * FROM (SELECT id, item FROM orders) QUALIFY {_FIRST} = 1", [(2, "ink"), (3, "pen")]),
        (
            f"SELECT o.*, n FROM (SELECT id, item, 7 AS n FROM orders) o QUALIFY {_FIRST} = 1 AND o.id > 2",
            [(3, "pen", 7, 7)],
        ),
        (
            f"SELECT id FROM (SELECT * FROM orders QUALIFY {_FIRST} = 1) QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
            [(2,)],
        ),
        (f"WITH q AS (SELECT id FROM orders QUALIFY {_FIRST} = 1) SELECT * FROM q WHERE id > 2", [(3,)]),
        ("SELECT item FROM orders GROUP BY item QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(id) DESC) = 1", [("pen",)]),
        (
            "SELECT item, COUNT(*) AS c FROM orders GROUP BY item QUALIFY ROW_NUMBER() OVER (ORDER BY c) = 1",
            [("ink", 1)],
        ),
        ("SELECT id FROM orders QUALIFY ROW_NUMBER() OVER w = 1 WINDOW w AS (ORDER BY id)", [(1,)]),
    ],
)
def test_t83_qualify_filters_before_distinct_order_by_and_limit(sql, query, expected):
    assert sql.final(query) == expected


def test_t83_qualify_needs_a_function_over_rows(t_env):
    with pytest.raises(ValidationException, match="QUALIFY must contain a function with OVER"):
        t_env.sql_query("SELECT id FROM orders QUALIFY id = 1")


def test_t38_replace_with_an_empty_text_ends(sql):
    assert sql.rows("SELECT REPLACE(item, '', '-') FROM orders WHERE id = 1") == [("-p-e-n-",)]


def test_t76_the_fields_of_a_row_expand(sql):
    assert sql.rows("SELECT r.* FROM (SELECT CAST(ROW(id, item) AS ROW<a INT, b STRING>) AS r FROM orders)")[0] == (
        1,
        "pen",
    )


def test_t76_a_star_of_a_table_precedes_the_fields_of_a_row_of_its_name(sql):
    rows = "SELECT id, CAST(ROW(id, item) AS ROW<a INT, b STRING>) AS r FROM orders WHERE id = 1"
    ((number, row),) = sql.rows(f"SELECT r.* FROM ({rows}) AS r")
    assert (number, *row) == (1, 1, "pen")
    assert sql.rows(f"SELECT r.r.* FROM ({rows}) AS r") == [(1, "pen")]
