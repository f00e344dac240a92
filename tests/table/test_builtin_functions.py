"""Built-in functions: each with an example of Flink's documentation or a rule on NULL."""

import pytest

from penstock.runtime.table.functions.registry import find_scalar_function

EXAMPLES = [
    ("MD5('a')", "0cc175b9c0f1b6a831c399e269772661"),
    ("SHA1('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ("SHA256('a')", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ("SHA2('a', 224)", "abd37534c7d9a2efb9465de931cd7055ffdb8879563ae98078d6d6d5"),
    ("TO_BASE64('hello world')", "aGVsbG8gd29ybGQ="),
    ("FROM_BASE64('aGVsbG8gd29ybGQ=')", "hello world"),
    ("HEX(20)", "14"),
    ("HEX('hello,world')", "68656C6C6F2C776F726C64"),
    ("BIN(4)", "100"),
    ("URL_ENCODE('a b&c')", "a+b%26c"),
    ("URL_DECODE('a+b%26c')", "a b&c"),
    ("DECODE(ENCODE('hé', 'UTF-8'), 'UTF-8')", "hé"),
    ("STARTSWITH('hello', 'he')", True),
    ("ENDSWITH('hello', 'he')", False),
    ("BTRIM('  a ')", "a"),
    ("ASCII('abc')", 97),
    ("CHR(97)", "a"),
    ("INSTR('hello', 'l')", 3),
    ("LOCATE('l', 'hello', 4)", 4),
    ("TRANSLATE('abcde', 'abc', 'x')", "xde"),
    ("REGEXP('abc', 'b.')", True),
    ("REGEXP_COUNT('abab', 'a')", 2),
    ("REGEXP_INSTR('abab', 'b')", 2),
    ("REGEXP_SUBSTR('abab', 'b.')", "ba"),
    ("REGEXP_EXTRACT_ALL('a1b2', '([a-z])([0-9])', 2)", ["1", "2"]),
    ("ELT(2, 'a', 'b')", "b"),
    ("ELT(3, 'a', 'b')", None),
    ("PARSE_URL('https://flink.apache.org/path?k=v#r', 'HOST')", "flink.apache.org"),
    ("PARSE_URL('https://flink.apache.org/path?k=v#r', 'QUERY', 'k')", "v"),
    ("ARRAY_DISTINCT(ARRAY[1, 2, 1])", [1, 2]),
    ("ARRAY_REVERSE(ARRAY[1, 2])", [2, 1]),
    ("ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", [2]),
    ("ARRAY_POSITION(ARRAY['a', 'b'], 'b')", 2),
    ("ARRAY_CONCAT(ARRAY[1], ARRAY[2])", [1, 2]),
    ("ARRAY_APPEND(ARRAY[1], 2)", [1, 2]),
    ("ARRAY_PREPEND(ARRAY[1], 2)", [2, 1]),
    ("ARRAY_UNION(ARRAY[1, 1], ARRAY[2])", [1, 2]),
    ("ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2])", [2]),
    ("ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2])", [1]),
    ("ARRAY_MAX(ARRAY[1, 3, 2])", 3),
    ("ARRAY_MIN(ARRAY[3, 1])", 1),
    ("ARRAY_SORT(ARRAY[3, 1, 2])", [1, 2, 3]),
    ("ARRAY_SORT(ARRAY[3, 1, 2], FALSE)", [3, 2, 1]),
    ("ARRAY_SLICE(ARRAY[1, 2, 3, 4], 2, 3)", [2, 3]),
    ("ARRAY_SLICE(ARRAY[1, 2, 3, 4], -2)", [3, 4]),
    ("ARRAY_JOIN(ARRAY['a', 'b'], '-')", "a-b"),
    ("MAP_KEYS(MAP['a', 1])", ["a"]),
    ("MAP_VALUES(MAP['a', 1])", [1]),
    ("MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1])", {"a": 1}),
    ("MAP_UNION(MAP['a', 1], MAP['a', 2])", {"a": 2}),
    ("SPLIT('a,b', ',')", ["a", "b"]),
    ("STR_TO_MAP('k1=v1,k2=v2')", {"k1": "v1", "k2": "v2"}),
]


@pytest.mark.parametrize(("expression", "expected"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_function_gives_what_the_documentation_says(sql, expression, expected):
    assert sql.value(expression) == expected


@pytest.mark.parametrize(
    "expression",
    ["MD5(CAST(NULL AS STRING))", "ARRAY_MAX(CAST(NULL AS ARRAY<INT>))", "INSTR('a', CAST(NULL AS STRING))"],
)
def test_null_in_null_out(sql, expression):
    assert sql.value(expression) is None


def test_names_of_functions_have_no_case():
    assert find_scalar_function("md5") is find_scalar_function("MD5")
