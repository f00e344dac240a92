"""``penstock sql``: scripts, forms of output, the prompt, live results."""

import io
import json
import sys

import pytest
from tests.table.conftest import table_environment

from penstock.cli.main import main
from penstock.cli.sql import SqlClient
from penstock.cli.sql_prompt import completions, history_file, is_complete
from penstock.cli.sql_results import LiveTable
from penstock.common.types import Row, RowKind
from penstock.table import DataTypes
from penstock.table.sql.script import split_statements

VALUES = "SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS t(n, s)"


def run(*arguments):
    return main(["sql", "--mini", "-D", "table.local-time-zone=UTC", *arguments])


def test_a_statement_of_the_command_line_prints_a_table(capsys):
    assert run("-e", VALUES) == 0
    printed = capsys.readouterr().out
    assert "| +I |           1 |" in printed
    assert "2 rows in set" in printed


def test_results_as_csv_and_json(capsys):
    assert run("-o", "csv", "-e", VALUES) == 0
    assert capsys.readouterr().out == "op,n,s\n+I,1,a\n+I,2,\n"
    assert run("-o", "json", "--batch", "-e", VALUES) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_a_script_runs_its_statements_in_order_and_waits_for_inserts(tmp_path, capsys):
    script = tmp_path / "script.sql"
    out = tmp_path / "out"
    script.write_text(
        f"""-- a comment; with a semicolon
        CREATE TABLE f (n INT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv');
        INSERT INTO f VALUES (1), (2);
        SELECT COUNT(*) AS c
        FROM f"""
    )
    assert run("-o", "json", "--batch", "-f", str(script)) == 0
    assert json.loads(capsys.readouterr().out) == {"c": 2}


def test_an_init_script_runs_first(tmp_path, capsys):
    init = tmp_path / "init.sql"
    init.write_text("CREATE VIEW v AS SELECT 7 AS n;")
    assert run("-i", str(init), "-o", "csv", "-e", "SELECT n FROM v") == 0
    assert capsys.readouterr().out == "op,n\n+I,7\n"


def test_a_failing_statement_ends_the_script_and_names_its_line(tmp_path, capsys):
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n\nSELECT *\nFROM nowhere;\nSELECT 2;")
    assert run("-f", str(script)) == 1
    caught = capsys.readouterr()
    assert "nowhere" in caught.err
    assert "script.sql, line 3: SELECT * ..." in caught.err
    assert caught.out.count("in set") == 1


def test_statements_come_from_the_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS a; SELECT 2 AS b;"))
    assert run("-o", "csv") == 0
    assert capsys.readouterr().out == "op,a\n+I,1\nop,b\n+I,2\n"


def test_a_script_that_is_missing_is_an_error(tmp_path, capsys):
    assert run("-f", str(tmp_path / "none.sql")) == 1
    assert "cannot be read" in capsys.readouterr().err


# -- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1"], "SELECT 2"),
        ("SELECT ';', `a;b`; /* x; */ SELECT 2;;", ["SELECT ';', `a;b`", "SELECT 2"], ""),
        ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END; SELECT 3;", None, ""),
        ("SELECT /*+ OPTIONS('a'='b') */ 1;", ["SELECT /*+ OPTIONS('a'='b') */ 1"], ""),
    ],
)
def test_scripts_are_split_at_semicolons_outside_of_text_comments_and_statement_sets(script, statements, rest):
    found, left = split_statements(script)
    texts = [one.text for one in found]
    if statements is None:
        assert [text.split()[0] for text in texts] == ["BEGIN", "SELECT"]
    else:
        assert texts == statements
    assert left == rest


# -- the prompt -------------------------------------------------------------------------------------------------------


@pytest.fixture
def client():
    made = SqlClient(table_environment())
    made.interactive = True
    return made


def test_enter_ends_a_statement_only_behind_its_semicolon():
    assert not is_complete("SELECT 1\nFROM t")
    assert is_complete("SELECT 1\nFROM t;")
    assert is_complete("quit")


def test_completion_offers_tables_columns_keywords_and_functions(client):
    client.run("CREATE TEMPORARY VIEW orders AS SELECT 1 AS order_id, 2 AS price")
    assert list(completions(client, "SELECT * FROM ord"))[:2] == ["orders", "order_id"]
    assert "SELECT" in completions(client, "SEL")
    assert "upper" in completions(client, "select upp")


def test_the_client_answers_statements_and_commands(client, capsys):
    assert client.answer("HELP;")
    assert client.answer("SELECT * FROM nowhere;")
    assert client.answer("SELECT 1 AS n;")
    assert not client.answer("quit;")
    printed = capsys.readouterr().out
    assert "QUIT;" in printed
    assert "[ERROR] ValidationException" in printed
    assert "1 row after 1 change" in printed


def test_an_insert_runs_in_the_background_unless_the_session_waits(client, capsys):
    client.run("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')")
    client.run("INSERT INTO sink VALUES (1)")
    assert "The job is running" in capsys.readouterr().out
    client.run("SET 'table.dml-sync' = 'true'")
    client.run("INSERT INTO sink VALUES (1)")
    assert capsys.readouterr().out.endswith("[INFO] OK\n")
    client.close()


def test_a_typed_statement_is_remembered(client, tmp_path, monkeypatch, capsys):
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from penstock.cli.sql_prompt import converse

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as keys:
        keys.send_text("SELECT 5\rAS five;\rquit;\r")
        converse(client, input=keys, output=DummyOutput())
    assert "| five |" in capsys.readouterr().out
    assert history_file().is_relative_to(tmp_path)
    assert "+AS five;" in history_file().read_text()


# -- live results -----------------------------------------------------------------------------------------------------


def test_live_results_show_what_the_changes_add_up_to():
    out, now = io.StringIO(), [0.0]
    live = LiveTable(["k", "c"], [DataTypes.STRING(), DataTypes.BIGINT()], out, lambda: now[0])
    live.apply(Row("a", 1))
    live.apply(Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1))
    live.apply(Row.of_kind(RowKind.UPDATE_AFTER, "a", 2))
    assert live.rows == [("a", "2")]
    assert out.getvalue().count("after") == 1  # drawn once: no time has passed
    now[0] = 1.0
    live.apply(Row("b", None))
    assert "\x1b[6F\x1b[J" in out.getvalue()  # the first picture had six lines
    assert live.lines() == [
        "+---+------+",
        "| k |    c |",
        "+---+------+",
        "| a |    2 |",
        "| b | NULL |",
        "+---+------+",
        "2 rows after 4 changes",
    ]
