"""JSON functions: examples of Flink's documentation."""

import pytest

from penstock.table.expression_options import JsonOnNull
from penstock.table.expressions import col, json_array, json_object, json_string, lit

EXAMPLES = [
    ("""'{"a": 1}' IS JSON""", True),
    ("""'abc' IS JSON""", False),
    ("""'{"a": 1}' IS JSON OBJECT""", True),
    ("""'[1]' IS JSON SCALAR""", False),
    ("""'"abc"' IS NOT JSON""", False),
    ("""JSON_EXISTS('{"a": true}', '$.a')""", True),
    ("""JSON_EXISTS('{"a": true}', '$.b')""", False),
    ("""JSON_EXISTS('{"a": [{ "b": 1 }]}', '$.a[0].b')""", True),
    ("""JSON_EXISTS('{"a": true}', 'strict $.b' TRUE ON ERROR)""", True),
    ("""JSON_EXISTS('{"a": true}', 'strict $.b' UNKNOWN ON ERROR)""", None),
    ("""JSON_VALUE('{"a": true}', '$.a')""", "true"),
    ("""JSON_VALUE('{"a": true}', '$.a' RETURNING BOOLEAN)""", True),
    ("""JSON_VALUE('{"a": 12}', '$.a' RETURNING INTEGER)""", 12),
    ("""JSON_VALUE('{"a.b": [0.998,0.996]}','$.["a.b"][0]' RETURNING DOUBLE)""", 0.998),
    ("""JSON_VALUE('{"a": true}', 'lax $.b' DEFAULT 'none' ON EMPTY)""", "none"),
    ("""JSON_VALUE('{"a": true}', 'strict $.b' NULL ON ERROR)""", None),
    ("""JSON_VALUE('{"a": true}', 'strict $.b' DEFAULT FALSE ON ERROR)""", "false"),
    ("""JSON_VALUE('{"contains blank": "right"}', 'strict $.["contains blank"]' NULL ON EMPTY)""", "right"),
    ("""JSON_QUERY('{ "a": { "b": 1 } }', '$.a')""", '{"b":1}'),
    ("""JSON_QUERY('[1, 2]', '$')""", "[1,2]"),
    ("""JSON_QUERY('{"a":[{"c":"c1"},{"c":"c2"}]}', 'lax $.a[*].c')""", '["c1","c2"]'),
    ("""JSON_QUERY('{"a":[{"c":"c1"},{"c":"c2"}]}', 'lax $.a[*].c' RETURNING ARRAY<STRING>)""", ["c1", "c2"]),
    ("""JSON_QUERY('{}', '$' WITH CONDITIONAL ARRAY WRAPPER)""", "{}"),
    ("""JSON_QUERY('[1, 2]', '$' WITH UNCONDITIONAL ARRAY WRAPPER)""", "[[1,2]]"),
    ("""JSON_QUERY('1', '$')""", None),
    ("""JSON_QUERY('{}', 'lax $.invalid' EMPTY OBJECT ON EMPTY)""", "{}"),
    ("""JSON_QUERY('{}', 'strict $.invalid' EMPTY ARRAY ON ERROR)""", "[]"),
    ("JSON_STRING(CAST(NULL AS INT))", None),
    ("JSON_STRING(1)", "1"),
    ("JSON_STRING(TRUE)", "true"),
    ("JSON_STRING('Hello, World!')", '"Hello, World!"'),
    ("JSON_STRING(ARRAY[1, 2])", "[1,2]"),
    ("JSON_OBJECT()", "{}"),
    ("JSON_OBJECT('K1' VALUE 'V1', 'K2' VALUE 'V2')", '{"K1":"V1","K2":"V2"}'),
    ("JSON_OBJECT(KEY 'K1' VALUE CAST(NULL AS STRING) NULL ON NULL)", '{"K1":null}'),
    ("JSON_OBJECT(KEY 'K1' VALUE CAST(NULL AS STRING) ABSENT ON NULL)", "{}"),
    ("JSON_OBJECT('K1' VALUE JSON_OBJECT('K2' VALUE 1))", '{"K1":{"K2":1}}'),
    ("""JSON_OBJECT('K' VALUE JSON('{"x": [1]}'))""", '{"K":{"x":[1]}}'),
    ("JSON_ARRAY()", "[]"),
    ("JSON_ARRAY(1, '2', TRUE)", '[1,"2",true]'),
    ("JSON_ARRAY(CAST(NULL AS STRING) NULL ON NULL)", "[null]"),
    ("JSON_ARRAY(CAST(NULL AS STRING))", "[]"),
    ("JSON_ARRAY(JSON_ARRAY(1))", "[[1]]"),
    ("""JSON_QUOTE('say "hi"')""", '"say \\"hi\\""'),
    ("""JSON_UNQUOTE('"a\\u0041"')""", "aA"),
    ("JSON_UNQUOTE('plain')", "plain"),
]


@pytest.mark.parametrize(("expression", "expected"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_json_function_gives_what_the_documentation_says(sql, expression, expected):
    assert sql.value(expression) == expected


@pytest.mark.parametrize(
    "expression",
    ["""JSON_VALUE('{}', 'lax $.a' ERROR ON EMPTY)""", """JSON_EXISTS('x', '$.a' ERROR ON ERROR)"""],
)
def test_error_on_empty_fails_the_job(sql, expression):
    with pytest.raises(Exception, match="failed"):
        sql.value(expression)


def test_json_functions_of_the_table_api(sql):
    sql.table("t", ["doc"], ('{"a": {"b": [1, "x"]}}',))
    table = sql.t_env.from_path("t").select(
        col("doc").json_value("$.a.b[1]"),
        col("doc").json_query("$.a"),
        col("doc").json_exists("$.z"),
        col("doc").is_json(),
        json_object(JsonOnNull.NULL, "k", json_array(JsonOnNull.ABSENT, 1, lit(2.5))),
        json_string(lit(3)),
    )
    assert sql.rows(table) == [("x", '{"b":[1,"x"]}', False, True, '{"k":[1,2.5]}', "3")]
