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
