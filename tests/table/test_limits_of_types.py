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
