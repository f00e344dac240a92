"""Results that Flink SQL gave, compared with Penstock's: one test for each rule and kind of query."""

import pytest
from tests.table.conftest import table_environment
from tests.table.flink_results import changes_of, create_tables, final, load, statement_of, values_of

RECORDED = load()
BEFORE_THE_JOB = {"SqlParserException", "ValidationException", "TableException", "CatalogException"}


def environment(block, directory):
    """The environment of a block: values of expressions come from batch mode, scripts say their mode."""
    t_env = table_environment(batch="values" in block or block.get("batch", False))
    for key, value in block.get("options", {}).items():
        t_env.get_config().set(key, value)
    for statement in create_tables(RECORDED["tables"], block.get("tables", []), directory):
        t_env.execute_sql(statement)
    return t_env


@pytest.mark.parametrize("block", RECORDED["expressions"], ids=[block["rule"] for block in RECORDED["expressions"]])
def test_expressions_have_the_values_of_flink(block, tmp_path):
    values = values_of(environment(block, tmp_path), statement_of(block))
    different = {
        expression: (value, expected)
        for (expression, expected), value in zip(block["values"], values, strict=True)
        if value != expected
    }
    assert not different
    for expression in block["errors"]:
        failing = {**block, "values": [[expression, None]]}
        with pytest.raises(Exception):  # noqa: B017 - some fail as statements, others in the job
            values_of(environment(block, tmp_path), statement_of(failing))


@pytest.mark.parametrize("script", RECORDED["scripts"], ids=[script["name"] for script in RECORDED["scripts"]])
def test_statements_have_the_results_of_flink(script, tmp_path):
    t_env = environment(script, tmp_path)
    for statement, expected in script["steps"]:
        if isinstance(expected, str):
            with pytest.raises(Exception) as raised:
                changes_of(t_env, statement)
            assert expected not in BEFORE_THE_JOB or raised.type.__name__ == expected, statement
            continue
        changes = changes_of(t_env, statement)
        if script["compare"] == "changelog":
            assert changes == expected, statement
        elif script["compare"] == "changes":
            assert sorted(changes) == sorted(expected), statement
        else:
            assert final(changes) == final(expected), statement
