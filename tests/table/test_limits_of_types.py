"""Values at the limits of their types: large integers and decimals, fractions of seconds, the last year."""

import datetime as dt
import math
from decimal import Decimal

import pytest

from penstock.table import DataTypes

LARGE = 20_000_001
"""An integer that a FLOAT cannot hold exactly."""
HUGE = 2**53 + 1
"""An integer that a DOUBLE cannot hold exactly."""


def typed(sql, name, **columns):
    """A view of one row whose columns have the given types: name=(type, value)."""
    row = DataTypes.ROW([DataTypes.FIELD(column, type_) for column, (type_, _) in columns.items()])
    values = tuple(value for _, value in columns.values())
    sql.t_env.create_temporary_view(name, sql.t_env.from_elements([values], row))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("v * f", 40_000_000.0),
        ("v - f", 19_999_998.0),
        ("f / v", 1e-7),
        ("COALESCE(v, f)", 20_000_000.0),
        ("COALESCE(v, f * f)", 20_000_000.0),
        ("CASE WHEN v > 0 THEN v ELSE f END", 20_000_000.0),
        ("b + d", 2.0**53 + 2),
        ("POWER(b, 1)", 2.0**53),
        ("ATAN2(b, b)", math.pi / 4),
        ("SQRT(b)", 2**26.5),
    ],
)
def test_an_integer_beside_an_approximate_number_is_rounded(sql, expression, value):
    typed(
        sql,
        "t",
        v=(DataTypes.INT(), LARGE),
        b=(DataTypes.BIGINT(), HUGE),
        f=(DataTypes.FLOAT(), 2.0),
        d=(DataTypes.DOUBLE(), 2.0),
    )
    assert sql.rows(f"SELECT {expression} FROM t") == [(pytest.approx(value, rel=1e-7),)]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("TIME '10:00:00.123'", dt.time(10, 0, 0, 123_000)),
        ("CAST(TIME '10:00:00' AS TIME(3))", dt.time(10)),
        ("CAST(TIME '10:00:00.123' AS TIME(1))", dt.time(10, 0, 0, 100_000)),
        ("CAST(TIME '10:00:00.123' AS TIME(0))", dt.time(10)),
        ("CAST(TIMESTAMP '2024-01-01 10:00:00.123456' AS TIME(3))", dt.time(10, 0, 0, 123_000)),
    ],
)
def test_a_time_is_cut_to_the_precision_of_its_type(sql, expression, value):
    assert sql.value(expression) == value


def test_nan_is_no_decimal(sql):
    assert sql.value("TRY_CAST('NaN' AS DECIMAL(5, 2))") is None
    assert sql.value("TRY_CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(5, 2))") is None
    sql.table("t", ["v"], ("NaN",))
    assert sql.rows("SELECT TRY_CAST(v AS DECIMAL(5, 2)) FROM t") == [(None,)]
    with pytest.raises(Exception, match="NaN"):
        sql.rows("SELECT CAST(v AS DECIMAL(5, 2)) FROM t")


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}"])
def test_the_result_for_an_invalid_pattern_is_null(sql, pattern):
    sql.table("t", ["v"], ("a(b",))
    assert sql.rows(f"SELECT REGEXP_EXTRACT(v, '{pattern}'), REGEXP_COUNT(v, '{pattern}') FROM t") == [(None, None)]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("NULLIF(s, v)", None),
        ("NULLIF(v, s)", None),
        ("NULLIF(v, 6)", 5),
        ("NULLIF(5.5, v)", Decimal("5.5")),
        ("NULLIF(v, CAST(NULL AS INT))", 5),
        ("NULLIF(d, e)", Decimal(10**37)),
        ("NULLIF(d, d)", None),
    ],
)
def test_nullif_compares_as_the_equals_sign_does(sql, expression, value):
    typed(
        sql,
        "t",
        v=(DataTypes.INT(), 5),
        s=(DataTypes.STRING(), "5"),
        d=(DataTypes.DECIMAL(38, 0), Decimal(10**37)),
        e=(DataTypes.DECIMAL(38, 10), Decimal("1.5")),
    )
    assert sql.rows(f"SELECT {expression} FROM t") == [(value,)]


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("d > e", True),
        ("d < 5.5", False),
        ("e < d", True),
        ("d = e", False),
        ("d IS DISTINCT FROM e", True),
        ("d IN (e, 1.5)", False),
        ("e IN (d, 1.5)", True),
        ("e IN (1.5, 2)", True),
        ("d BETWEEN e AND 10000000000000000000000000000000000000", True),
        ("v < s", False),
        ("d > CAST(NULL AS DECIMAL(38, 10))", None),
    ],
)
def test_decimals_of_any_digits_are_compared_exactly(sql, condition, truth):
    typed(
        sql,
        "t",
        v=(DataTypes.INT(), 5),
        s=(DataTypes.DECIMAL(38, 38), Decimal("0.5")),
        d=(DataTypes.DECIMAL(38, 0), Decimal(10**37)),
        e=(DataTypes.DECIMAL(38, 10), Decimal("1.5")),
    )
    assert sql.rows(f"SELECT {condition} FROM t") == [(truth,)]


def test_months_are_counted_until_the_last_day_of_9999(sql):
    end = "TIMESTAMP '9999-12-31 00:00:00'"
    assert sql.value(f"TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-01-15 00:00:00', {end})") == 7975 * 12 + 11
    assert sql.value(f"TIMESTAMPDIFF(MONTH, {end}, TIMESTAMP '2024-01-15 00:00:00')") == -(7975 * 12 + 11)
    assert sql.value("DATE '9999-11-30' + INTERVAL '1' MONTH") == dt.date(9999, 12, 30)


def test_the_quotient_of_the_least_integer_and_minus_one_wraps_as_in_java(sql):
    typed(sql, "t", v=(DataTypes.BIGINT(), -(2**63)), w=(DataTypes.BIGINT(), -1), n=(DataTypes.BIGINT(), 7))
    assert sql.rows("SELECT v / w, v / -1, n / w, v / n, v % w, v % -1, n % w, w / n FROM t") == [
        (-(2**63), -(2**63), -7, -1317624576693539401, 0, 0, 0, 0)
    ]
