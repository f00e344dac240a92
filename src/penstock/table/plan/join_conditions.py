"""Join conditions: equalities between the sides, and conditions on one side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.types as pt

from penstock.core.table.arrow import arrow_type
from penstock.core.table.type_rules import common_type
from penstock.runtime.table.expressions import Call, Constant, Expr, input_columns, shifted
from penstock.table.plan.bind import cast_to

LEFT_SIDE, RIGHT_SIDE, BOTH_SIDES, NO_SIDE = "left", "right", "both", "none"


def conditions_of(expr: Expr) -> list[Expr]:
    """Return the conditions joined by AND, without the constant TRUE."""
    if isinstance(expr, Call) and expr.function == "AND":
        return [one for operand in expr.operands for one in conditions_of(operand)]
    if isinstance(expr, Constant) and expr.value is True:
        return []
    return [expr]


def side_of(expr: Expr, left_width: int) -> str:
    """Return the sides whose columns an expression reads."""
    columns = input_columns(expr)
    if not columns:
        return NO_SIDE
    if max(columns) < left_width:
        return LEFT_SIDE
    return RIGHT_SIDE if min(columns) >= left_width else BOTH_SIDES


@dataclass(frozen=True, slots=True)
class EquiKey:
    """An equality between the sides. Each expression reads the columns of its own side."""

    left: Expr
    right: Expr
    null_safe: bool
    """IS NOT DISTINCT FROM: NULL equals NULL."""


def equi_key(condition: Expr, left_width: int) -> EquiKey | None:
    """Return the key of a condition, or None if it is not an equality between the sides."""
    if not isinstance(condition, Call) or condition.function not in ("=", "IS NOT DISTINCT FROM"):
        return None
    one, other = condition.operands
    sides = side_of(one, left_width), side_of(other, left_width)
    if sides == (RIGHT_SIDE, LEFT_SIDE):
        one, other = other, one
    elif sides != (LEFT_SIDE, RIGHT_SIDE):
        return None
    other = shifted(other, lambda index: index - left_width)
    if arrow_type(one.type) != arrow_type(other.type):  # both sides must store the key in the same form
        joined = common_type([one.type, other.type])
        if joined is None:
            return None
        one, other = (
            expr if arrow_type(expr.type) == arrow_type(joined) else cast_to(expr, joined) for expr in (one, other)
        )
    return EquiKey(one, other, condition.function != "=")


def split_keys(conditions: Sequence[Expr], left_width: int) -> tuple[list[EquiKey], list[Expr]]:
    """Split conditions into equalities between the sides and conditions to test for each pair."""
    keys: list[EquiKey] = []
    rest: list[Expr] = []
    for condition in conditions:
        key = equi_key(condition, left_width)
        if key is None:
            rest.append(condition)
            continue
        keys.append(key)
        if pt.is_floating(arrow_type(key.left.type)):  # NaN is found under its key, but is not equal to itself
            rest.append(condition)
    return keys, rest
