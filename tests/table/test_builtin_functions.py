"""Built-in functions: each with an example of Flink's documentation or a rule on NULL."""

import datetime as dt
from decimal import Decimal

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
    ("TIMESTAMPADD(MONTH, 1, DATE '2024-01-31')", dt.date(2024, 2, 29)),
    ("TIMESTAMPADD(HOUR, 5, DATE '2024-01-31')", dt.datetime(2024, 1, 31, 5)),
    ("TIMESTAMPDIFF(DAY, TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-03 09:59:59')", 1),
    ("TIMESTAMPDIFF(MONTH, DATE '2024-01-31', DATE '2024-02-29')", 1),
    ("TIMESTAMPDIFF(HOUR, TIMESTAMP '2024-01-01 10:30:00', TIMESTAMP '2024-01-01 09:00:00')", -1),
    ("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00"),
    ("FROM_UNIXTIME(44)", "1970-01-01 00:00:44"),
    ("UNIX_TIMESTAMP('1970-01-01 00:01:00')", 60),
    ("(TIME '2:55:00', INTERVAL '1' HOUR) OVERLAPS (TIME '3:30:00', INTERVAL '2' HOUR)", True),
    ("(TIME '9:00:00', TIME '10:00:00') OVERLAPS (TIME '10:15:00', INTERVAL '3' HOUR)", False),
    ("TRUNCATE(42.345, 2)", Decimal("42.34")),
    ("TRUNCATE(1234, -2)", 1200),
    ("ROUND(2.345, 2)", Decimal("2.35")),
    ("DEGREES(PI())", 180.0),
    ("RADIANS(180)", 3.141592653589793),
    ("IS_ALPHA('a1')", False),
    ("IS_DIGIT('12')", True),
    ("IS_DECIMAL('12.5')", True),
    ("TYPEOF(1 + CAST(2 AS BIGINT))", "BIGINT NOT NULL"),
    ("ELEMENT(ARRAY[5])", 5),
    ("PRINTF('%d and %s', 3, 'x')", "3 and x"),
    ("DATE_FORMAT('2024-02-29 12:30:45', 'yyyy')", "2024"),
    (
        "TO_TIMESTAMP_LTZ('1970-01-01 09:00:00', 'yyyy-MM-dd HH:mm:ss', 'Asia/Tokyo')",
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    ),
    ("99999999999999999999 + 1", Decimal(100000000000000000000)),
    ("INSTR('abcabc', 'b', 3)", 5),
    ("INSTR('abcabc', 'b', -1, 2)", 2),
    ("INSTR('abcabc', 'x', 3)", 0),
    ("SPLIT_INDEX('a;b', 59, 1)", "b"),
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
