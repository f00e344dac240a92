"""Environments, statements and results (T1 to T7, T120 to T127)."""

import pytest
from tests.table.conftest import table_environment

from penstock.common import ConfigOptions
from penstock.table import DataTypes, ResultKind, Schema, TableDescriptor
from penstock.table.expressions import col
from penstock.util.exceptions import CatalogException, TableException, ValidationException

CREATE = "CREATE TABLE {} (id INT, name STRING) WITH ('connector' = '{}')"


def shown(t_env, statement):
    with t_env.execute_sql(statement).collect() as rows:
        return [row[0] for row in rows]


def test_t5_ddl_is_a_success_and_queries_have_content(t_env):
    assert t_env.execute_sql(CREATE.format("t", "print")).get_result_kind() is ResultKind.SUCCESS
    result = t_env.execute_sql("SELECT 1 AS one_, 'x' AS text")
    assert result.get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT
    assert result.get_resolved_schema().get_column_names() == ["one_", "text"]


def test_t4_a_result_is_collected_once(t_env):
    result = t_env.execute_sql("SELECT 1")
    with result.collect() as rows:
        assert len(list(rows)) == 1
    with pytest.raises(ValidationException, match="already collected"):
        result.collect()


def test_t4_print_shows_kinds_in_streaming_mode_only(t_env, batch_env, capsys):
    t_env.execute_sql("SELECT 1 AS n").print()
    printed = capsys.readouterr().out
    assert "| op |" in printed
    assert "| +I |" in printed
    assert "1 row in set" in printed
    batch_env.execute_sql("SELECT 1 AS n, CAST(NULL AS STRING) AS s").print()
    printed = capsys.readouterr().out
    assert "op" not in printed
    assert "| 1 | <NULL> |" in printed


def test_t2_insert_returns_at_once_and_wait_waits(t_env, capsys):
    t_env.execute_sql(CREATE.format("out", "print"))
    t_env.execute_sql("INSERT INTO out VALUES (1, 'a'), (2, CAST(NULL AS STRING))").wait()
    assert capsys.readouterr().out == "+I[1, a]\n+I[2, null]\n"


def test_t7_options_are_strings_and_unknown_ones_are_accepted(t_env):
    t_env.execute_sql("SET 'some.key' = 'some value'")
    assert t_env.get_config().get("some.key", "") == "some value"
    t_env.execute_sql("RESET 'some.key'")
    assert t_env.get_config().get("some.key", "-") == "-"


def test_t120_an_unknown_connector_fails_when_the_table_is_used(t_env):
    t_env.execute_sql(CREATE.format("t", "nope"))
    with pytest.raises(ValidationException, match="Could not find any connector 'nope'"):
        t_env.sql_query("SELECT * FROM t")
    t_env.execute_sql("CREATE TABLE o (id INT) WITH ('connector' = 'print', 'colour' = 'red')")
    with pytest.raises(ValidationException, match=r"Unsupported options found for 'print'.*colour"):
        t_env.execute_sql("INSERT INTO o SELECT 1")


def test_t120_computed_columns_and_keys(t_env):
    t_env.execute_sql(
        "CREATE TABLE t (id INT, twice AS id * 2, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '2', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '1', 'fields.id.end' = '2')"
    )
    with t_env.execute_sql("SELECT * FROM t").collect() as rows:
        assert [tuple(row) for row in rows] == [(1, 2), (2, 4)]
    with t_env.execute_sql("DESCRIBE t").collect() as rows:
        assert [tuple(row) for row in rows] == [
            ("id", "INT", False, "PRI(id)", None, None),
            ("twice", "INT", True, None, "AS `id` * 2", None),
        ]
    with pytest.raises(ValidationException, match="NOT ENFORCED"):
        t_env.execute_sql("CREATE TABLE e (id INT, PRIMARY KEY (id) ENFORCED) WITH ('connector' = 'print')")


def test_t121_names_and_temporary_objects(t_env):
    t_env.execute_sql("CREATE DATABASE other")
    t_env.execute_sql(CREATE.format("other.t", "print"))
    assert shown(t_env, "SHOW TABLES") == []
    t_env.execute_sql("USE other")
    assert shown(t_env, "SHOW TABLES") == ["t"]
    t_env.execute_sql("CREATE TEMPORARY VIEW t AS SELECT 42 AS answer")
    with t_env.execute_sql("SELECT answer FROM t").collect() as rows:
        assert [row[0] for row in rows] == [42]
    t_env.execute_sql("DROP TEMPORARY VIEW t")
    assert shown(t_env, "SHOW TABLES") == ["t"]
    with pytest.raises(CatalogException, match="nope"):
        t_env.execute_sql("USE nope")


def test_t121_alter_table(t_env):
    t_env.execute_sql(CREATE.format("t", "print"))
    t_env.execute_sql("ALTER TABLE t ADD (price DOUBLE, doubled AS price * 2)")
    t_env.execute_sql("ALTER TABLE t RENAME name TO title")
    t_env.execute_sql("ALTER TABLE t MODIFY id BIGINT")
    t_env.execute_sql("ALTER TABLE t SET ('print-identifier' = 'x')")
    assert shown(t_env, "DESCRIBE t") == ["id", "title", "price", "doubled"]
    t_env.execute_sql("ALTER TABLE t RENAME TO u")
    assert shown(t_env, "SHOW TABLES") == ["u"]
    t_env.execute_sql("DROP TABLE u")
    with pytest.raises(ValidationException, match="does not exist"):
        t_env.execute_sql("DROP TABLE u")
    t_env.execute_sql("DROP TABLE IF EXISTS u")


def test_t122_hints_change_options_of_a_table(t_env):
    t_env.execute_sql("CREATE TABLE t (id INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')")
    with t_env.execute_sql("SELECT id FROM t /*+ OPTIONS('number-of-rows' = '2') */").collect() as rows:
        assert len(list(rows)) == 2


def test_t123_insert_by_position_with_casts_that_cannot_lose(t_env, capsys):
    t_env.execute_sql("CREATE TABLE wide (id BIGINT, v DOUBLE) WITH ('connector' = 'print')")
    t_env.execute_sql("INSERT INTO wide SELECT CAST(1 AS INT), CAST(2 AS FLOAT)").wait()
    t_env.execute_sql("INSERT INTO wide (v) SELECT 0.5").wait()
    assert capsys.readouterr().out == "+I[1, 2.0]\n+I[null, 0.5]\n"
    with pytest.raises(ValidationException, match="Incompatible types for sink column 'id'"):
        t_env.execute_sql("INSERT INTO wide SELECT 'a', 1.0")
    with pytest.raises(ValidationException, match="Different number of columns"):
        t_env.execute_sql("INSERT INTO wide SELECT 1")


def test_t125_a_statement_set_is_one_job(t_env, capsys):
    t_env.execute_sql("CREATE TABLE a (id INT) WITH ('connector' = 'print', 'print-identifier' = 'a')")
    t_env.execute_sql("CREATE TABLE b (id INT) WITH ('connector' = 'print', 'print-identifier' = 'b')")
    statements = t_env.create_statement_set()
    statements.add_insert_sql("INSERT INTO a SELECT 1").add_insert("b", t_env.sql_query("SELECT 2"))
    statements.execute().wait()
    t_env.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 3; INSERT INTO b SELECT 4; END").wait()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "a> +I[1]", "a> +I[3]", "b> +I[2]", "b> +I[4]"]
    with pytest.raises(TableException, match="empty"):
        statements.execute()


def test_t127_explain_gives_text(t_env):
    plan = t_env.explain_sql("SELECT 1")
    assert "== Optimized Plan ==" in plan
    assert shown(t_env, "EXPLAIN SELECT COUNT(*) FROM (VALUES (1)) AS t (n)")[0].count("GroupAggregate") == 2


def test_descriptors(t_env, capsys):
    schema = Schema.new_builder().column("k", DataTypes.STRING()).column("n", "BIGINT").build()
    t_env.create_temporary_table("out", TableDescriptor.for_connector("print").schema(schema).build())
    table = t_env.from_elements([("a", 1), ("a", 2)], ["k", "n"]).group_by(col("k")).select(col("k"), col("n").sum)
    table.execute_insert("out").wait()
    assert capsys.readouterr().out == "+I[a, 1]\n-U[a, 1]\n+U[a, 3]\n"


def test_t22_types_are_found_in_values(t_env):
    table = t_env.from_elements([(1, 2.5, "a", True, [1, 2], {"k": 1})])
    schema = table.get_resolved_schema()
    assert schema.get_column_names() == ["_1", "_2", "_3", "_4", "_5", "_6"]
    assert list(map(str, schema.get_column_data_types())) == [
        "BIGINT",
        "DOUBLE",
        "STRING",
        "BOOLEAN",
        "ARRAY<BIGINT>",
        "MAP<STRING, BIGINT>",
    ]


def test_t127_explain_prints_the_plan_as_it_is(t_env, capsys):
    t_env.execute_sql("EXPLAIN SELECT a, COUNT(*) FROM (VALUES (1)) AS v(a) GROUP BY a").print()
    printed = capsys.readouterr().out
    assert printed.startswith("== ")
    assert "\n+- GroupAggregate(groupBy=" in printed


def test_t4_a_query_without_end_gives_rows_until_it_is_cancelled():
    t_env = table_environment(keeps_running=True)
    t_env.execute_sql("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000')")
    result = t_env.execute_sql("SELECT n FROM endless")
    with result.collect() as rows:
        assert len([row for row, _ in zip(rows, range(50), strict=False)]) == 50
    assert result.get_job_client().get_job_status().result().name == "CANCELED"


def test_the_options_of_a_descriptor_may_be_config_options():
    rows = ConfigOptions.key("number-of-rows").int_type().no_default_value()
    descriptor = TableDescriptor.for_connector("datagen").option(rows, 3).option("rows-per-second", "9").build()
    assert descriptor.get_options() == {"connector": "datagen", "number-of-rows": "3", "rows-per-second": "9"}
