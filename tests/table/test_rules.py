"""Rules on environments, values, text and time that have no file of their own."""

import datetime as dt
from decimal import Decimal

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.datastream import StreamExecutionEnvironment
from penstock.table import DataTypes, StreamTableEnvironment
from penstock.testing import MiniCluster
from penstock.util.exceptions import ValidationException

START = dt.datetime(2024, 5, 1)


def at(second):
    return START + dt.timedelta(seconds=second)


def test_t1_a_stream_table_environment_shares_parallelism_and_configuration():
    env = StreamExecutionEnvironment(executor=MiniCluster())
    env.set_parallelism(3)
    t_env = StreamTableEnvironment.create(env)
    t_env.create_temporary_view("t", t_env.from_elements([(n,) for n in range(20)], ["a"]))
    assert Queries(t_env).final("SELECT COUNT(*) FROM t") == [(20,)]
    t_env.get_config().set("parallelism.default", "2")
    assert env.get_parallelism() == 2


def test_t10_an_update_is_taken_away_directly_before_it_is_added(sql):
    sql.table("t", ["k", "v"], ("x", 2), ("y", 7), ("x", 5), ("y", 1))
    changes = sql.changelog("SELECT k, SUM(v) FROM t GROUP BY k")
    for position, (kind, key, _) in enumerate(changes):
        if kind == "+U":
            assert changes[position - 1][:2] == ("-U", key)


def test_t12_a_filter_outside_the_key_needs_what_an_update_replaces(sql):
    sql.table("t", ["k", "v"], ("x", 4), ("x", 9), ("x", -8))
    query = "SELECT k, s FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k) WHERE s > 10"
    assert sql.changelog(query) == [("+U", "x", 13), ("-U", "x", 13)]


def test_t20_columns_are_nullable_unless_declared(t_env):
    t_env.execute_sql("CREATE TABLE t (a INT, b INT NOT NULL) WITH ('connector' = 'blackhole')")
    types = t_env.sql_query("SELECT a, b, a + b, COALESCE(a, 1) FROM (VALUES (1, 2)) AS v(a, b)")
    assert [one.is_nullable for one in types.get_resolved_schema().get_column_data_types()] == [False] * 4
    assert DataTypes.INT().is_nullable
    assert not DataTypes.INT().not_null().is_nullable
    assert not DataTypes.INT(nullable=False).is_nullable


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-9 / 4", -2),
        ("-9 % 4", -1),
        ("MOD(9, -4)", 1),
        ("CAST(1 AS DOUBLE) / 0", float("inf")),
        ("CAST(CAST(-1 AS DOUBLE) / 0 AS STRING)", "-Infinity"),
        ("CAST(CAST(0 AS DOUBLE) / 0 AS STRING)", "NaN"),
        ("CAST('-9223372036854775808' AS BIGINT) / -1", -(2**63)),
        ("CAST('-9223372036854775808' AS BIGINT) % -1", 0),
        ("CAST('-2147483648' AS INT) / -1", -(2**31)),
    ],
)
def test_t31_integers_are_cut_towards_zero_and_doubles_have_infinity(sql, expression, value):
    assert sql.value(expression) == value


@pytest.mark.parametrize("expression", ["v / 0", "CAST(v AS DECIMAL(5, 2)) / 0", "MOD(v, 0)"])
def test_t31_division_by_zero_fails_the_job(sql, expression):
    sql.table("t", ["v"], (1,))
    with pytest.raises(Exception, match="Division by zero"):
        sql.rows(f"SELECT {expression} FROM t")


@pytest.mark.parametrize(
    ("expression", "type_", "value"),
    [
        ("CAST(1 AS DECIMAL(8,2)) / CAST(3 AS DECIMAL(4,1))", DataTypes.DECIMAL(14, 7), Decimal("0.3333333")),
        ("CAST(1.5 AS DECIMAL(4,2)) * CAST(2 AS DECIMAL(3,1))", DataTypes.DECIMAL(8, 3), Decimal("3.000")),
        ("CAST(1.5 AS DECIMAL(4,2)) + CAST(2 AS DECIMAL(6,3))", DataTypes.DECIMAL(7, 3), Decimal("3.500")),
        ("0.908 * CAST(7 AS BIGINT)", None, Decimal("6.356")),
        ("7 - CAST(0.25 AS DECIMAL(4,2))", DataTypes.DECIMAL(13, 2), Decimal("6.75")),
        ("CAST(2.345 AS DECIMAL(4,2))", DataTypes.DECIMAL(4, 2), Decimal("2.35")),
        ("CAST(-2.345 AS DECIMAL(4,2))", DataTypes.DECIMAL(4, 2), Decimal("-2.35")),
    ],
)
def test_t32_types_and_rounding_of_decimals(sql, expression, type_, value):
    assert sql.value(expression) == value
    if type_ is not None:
        table = sql.t_env.sql_query(f"SELECT {expression}")
        assert table.get_resolved_schema().get_column_data_types()[0].same_type(type_)


def test_t32_sums_and_averages_of_decimals(sql):
    sql.table("raw", ["v"], (Decimal("1.00"),), (Decimal("2.00"),))
    query = "SELECT SUM(d), AVG(d) FROM (SELECT CAST(v AS DECIMAL(6, 2)) AS d FROM raw)"
    types = sql.t_env.sql_query(query).get_resolved_schema().get_column_data_types()
    assert [one.same_type(DataTypes.DECIMAL(38, scale)) for one, scale in zip(types, (2, 6), strict=True)] == [True] * 2
    assert sql.final(query) == [(Decimal("3.00"), Decimal("1.500000"))]


LONG = "12345678901234567890.123456789012345678"
"""Ten digits more than Python's own decimals keep."""


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{long}", LONG),
        ("{long} + 1", "12345678901234567891.12345678901234568"),
        ("{long} * CAST(2 AS DECIMAL(1, 0))", "24691357802469135780.2469135780246914"),
        ("MOD({long}, 7)", "1.123456789012345678"),
        ("ROUND({long}, 2)", "12345678901234567890.12"),
        ("TRUNCATE({long}, 3)", "12345678901234567890.123"),
        ("FLOOR({long})", "12345678901234567890"),
    ],
)
def test_t32_all_38_digits_of_a_decimal_count(sql, expression, value):
    assert sql.value(expression.format(long=f"CAST('{LONG}' AS DECIMAL(38, 18))")) == Decimal(value)


def test_t32_all_38_digits_of_a_sum_count(sql):
    rows = DataTypes.ROW([DataTypes.FIELD("d", DataTypes.DECIMAL(38, 18))])
    sql.t_env.create_temporary_view("t", sql.t_env.from_elements([(Decimal(LONG),), (Decimal(LONG),)], rows))
    assert sql.final("SELECT SUM(d), AVG(d) FROM t") == [
        (Decimal("24691357802469135780.246913578024691356"), Decimal(LONG))
    ]


def test_doubles_of_any_size_can_be_rounded(sql):
    assert sql.value("ROUND(CAST('1E300' AS DOUBLE), 2)") == 1e300
    assert sql.value("TRUNCATE(CAST('1E300' AS DOUBLE), 2)") == 1e300


def test_t33_a_cast_to_fewer_digits_keeps_what_fits_and_makes_the_rest_null(sql):
    rows = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("d", DataTypes.DECIMAL(9, 1))])
    for values, expected in (([1.5, 99.9], ["1.50", "99.90"]), ([1.5, 100.0, None], ["1.50", None, None])):
        data = [(n, None if value is None else Decimal(str(value))) for n, value in enumerate(values)]
        sql.t_env.create_temporary_view(f"t{len(data)}", sql.t_env.from_elements(data, rows))
        found = sql.final(f"SELECT n, CAST(d AS DECIMAL(4, 2)) FROM t{len(data)}")
        assert sorted(found) == [(n, None if text is None else Decimal(text)) for n, text in enumerate(expected)]


def test_t33_what_does_not_fit_becomes_null_and_bad_text_fails(sql):
    assert sql.value("CAST(12345 AS DECIMAL(3, 0))") is None
    assert sql.value("CAST(CAST(123.4 AS DECIMAL(4, 1)) AS DECIMAL(2, 0))") is None
    assert sql.value("TRY_CAST('abc' AS INT)") is None
    assert sql.value("CAST(-12.999 AS INT)") == -12
    sql.table("t", ["v"], ("abc",))
    with pytest.raises(Exception, match="abc"):
        sql.rows("SELECT CAST(v AS INT) FROM t")


@pytest.mark.parametrize(
    ("right", "kept"),
    [([1], [2]), ([1, None], []), ([], [1, 2, None])],
)
def test_t35_not_in_with_null(sql, right, kept):
    sql.t_env.create_temporary_view(
        "l", sql.t_env.from_elements([(1,), (2,), (None,)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT())]))
    )
    row = DataTypes.ROW([DataTypes.FIELD("b", DataTypes.BIGINT())])
    sql.t_env.create_temporary_view("r", sql.t_env.from_elements([(one,) for one in right], row))
    found = [one for (one,) in sql.final("SELECT a FROM l WHERE a NOT IN (SELECT b FROM r)")]
    assert sorted(found, key=repr) == sorted(kept, key=repr)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("TRUE", "TRUE"),
        ("CAST(1 AS DOUBLE)", "1.0"),
        ("1.10", "1.10"),
        ("CAST(TIMESTAMP '2024-01-02 03:04:05' AS TIMESTAMP(3))", "2024-01-02 03:04:05.000"),
        ("ARRAY['x', CAST(NULL AS STRING), 'y']", "[x, NULL, y]"),
        ("CAST('ab' AS CHAR(4)) || '|'", "ab  |"),
        ("CAST('abcdef' AS CHAR(3))", "abc"),
        ("CAST('abcdef' AS VARCHAR(3))", "abc"),
    ],
)
def test_t37_values_as_text(sql, expression, text):
    assert sql.value(f"CAST({expression} AS STRING)") == text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' || CAST(NULL AS STRING)", None),
        ("CONCAT('a', CAST(NULL AS STRING))", None),
        ("CONCAT_WS('-', 'a', CAST(NULL AS STRING), 'b')", "a-b"),
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("SUBSTRING('abcdef', -3)", "def"),
        ("SPLIT_INDEX('a,b', ',', 0)", "a"),
        ("SPLIT_INDEX('a,b', ',', 7)", None),
        ("ARRAY[1, 2][1]", 1),
        ("ARRAY[1, 2][3]", None),
        ("MAP['a', 1]['b']", None),
    ],
)
def test_t38_text_and_elements_that_are_missing(sql, expression, value):
    assert sql.value(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("REGEXP_EXTRACT('abc', 'x')", None),
        ("'ABC' LIKE 'a%'", False),
        (r"'a\bc' LIKE 'a\b%'", True),
        (r"'a%c' LIKE 'a\%c'", False),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", True),
    ],
)
def test_t39_patterns(sql, expression, value):
    assert sql.value(expression) == value


def test_t40_casts_between_wall_time_and_instants_use_the_zone(sql):
    sql.t_env.get_config().set("table.local-time-zone", "America/New_York")
    instant = "CAST(TIMESTAMP '2024-03-10 02:30:00' AS TIMESTAMP_LTZ(3))"  # a time that the clocks skip
    assert sql.value(f"CAST({instant} AS STRING)") == "2024-03-10 03:30:00.000"
    assert sql.value(instant) == dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)
    assert sql.value("CAST(TO_TIMESTAMP_LTZ(0, 3) AS TIMESTAMP(3))") == dt.datetime(1969, 12, 31, 19)


def test_t42_t43_current_watermark_is_that_before_the_row(sql):
    timed(sql, "t", ["v"], (1, at(6)), (2, at(4)), (3, at(9)), (4, at(9)), delay=1)
    found = sql.rows("SELECT v, CURRENT_WATERMARK(ts) FROM t")
    assert found == [(1, None), (2, at(5)), (3, at(5)), (4, at(8))]


def test_t47_an_idle_timeout_is_accepted(sql):
    sql.t_env.get_config().set("table.exec.source.idle-timeout", "5 s")
    timed(sql, "t", ["v"], (1, at(1)), (2, at(12)), delay=0)
    windows = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    query = f"SELECT window_end, SUM(v) FROM {windows} GROUP BY window_start, window_end"
    assert sql.rows(query) == [(at(10), 1), (at(20), 2)]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("EXTRACT(YEAR FROM TIMESTAMP '1969-12-31 23:59:59.999')", 1969),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.999' AS DATE)", dt.date(1969, 12, 31)),
        ("FLOOR(TIMESTAMP '1969-12-31 23:59:59.999' TO DAY)", dt.datetime(1969, 12, 31)),
    ],
)
def test_t49_times_before_1970_have_their_own_date(sql, expression, value):
    assert sql.value(expression) == value


def test_t17_changes_of_a_key_keep_their_order_through_exchanges():
    queries = Queries(table_environment(3, max_records=2))
    queries.table("t", ["k", "v"], *[(n % 4, n) for n in range(24)])
    query = "SELECT c, COUNT(*) FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k) GROUP BY c"
    assert queries.final(query) == [(6, 4)]


def test_t57_group_id_numbers_the_sets(sql):
    sql.table("t", ["a", "b"], ("x", 1))
    query = "SELECT a, b, GROUPING(a), GROUPING(b), GROUPING_ID(a, b) FROM t GROUP BY GROUPING SETS ((a, b), (a), ())"
    assert sql.final(query) == sorted([("x", 1, 0, 0, 0), ("x", None, 0, 1, 1), (None, None, 1, 1, 3)], key=repr)


def test_t120_an_enforced_key_is_refused(t_env):
    with pytest.raises(ValidationException, match="ENFORCED"):
        t_env.execute_sql("CREATE TABLE t (a INT, PRIMARY KEY (a) ENFORCED) WITH ('connector' = 'blackhole')")
