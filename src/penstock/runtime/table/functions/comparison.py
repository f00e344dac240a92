"""= <> < <= > >=, IS NULL, IS DISTINCT FROM, IN, LIKE."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.table.expressions import Value
from penstock.runtime.table.functions.registry import ANY, BOOLEAN, CHARACTER, ScalarFunction, by_row, register, scalar

_ORDERS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], bool]]] = {
    "=": (pc.equal, lambda a, b: a == b),
    "<>": (pc.not_equal, lambda a, b: a != b),
    "<": (pc.less, lambda a, b: a < b),
    "<=": (pc.less_equal, lambda a, b: a <= b),
    ">": (pc.greater, lambda a, b: a > b),
    ">=": (pc.greater_equal, lambda a, b: a >= b),
}

_ALL_DIGITS = pa.decimal256(76, 38)
"""A type for the values of all decimals, for comparisons: 38 digits before and 38 after the point."""


def _comparison(kernel: Callable[..., Any], by_value: Callable[[Any, Any], bool]) -> Callable[..., Value]:
    def compare(context: Any, left: Value, right: Value) -> Value:
        if pt.is_null(left.type):
            return pa.scalar(None, pa.bool_())
        if left.type != right.type and (pt.is_decimal(left.type) or pt.is_decimal(right.type)):
            left, right = left.cast(_ALL_DIGITS), right.cast(_ALL_DIGITS)
        if not pt.is_nested(left.type):
            return kernel(left, right)
        return _compare_nested(by_value, left, right)

    return compare


def _compare_nested(by_value: Callable[[Any, Any], bool], left: Value, right: Value) -> Value:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return pa.scalar(
            by_value(left.as_py(), right.as_py()) if left.is_valid and right.is_valid else None, pa.bool_()
        )
    count = len(right) if isinstance(left, pa.Scalar) else len(left)
    columns = [[v.as_py()] * count if isinstance(v, pa.Scalar) else v.to_pylist() for v in (left, right)]
    pairs = zip(*columns, strict=True)
    return pa.array([None if a is None or b is None else by_value(a, b) for a, b in pairs], pa.bool_())


for _symbol, (_kernel, _by_value) in _ORDERS.items():
    register(ScalarFunction(_symbol, _comparison(_kernel, _by_value), [ANY, ANY], BOOLEAN, unify=True, compares=True))


@scalar("IS NULL", takes=[ANY], gives=BOOLEAN.not_null(), null_if_null=False)
def is_null(context: Any, value: Value) -> Value:
    """Whether the value is NULL."""
    return pa.scalar(not value.is_valid) if isinstance(value, pa.Scalar) else value.is_null()


@scalar("IS NOT NULL", takes=[ANY], gives=BOOLEAN.not_null(), null_if_null=False)
def is_not_null(context: Any, value: Value) -> Value:
    """Whether the value is not NULL."""
    return pa.scalar(value.is_valid) if isinstance(value, pa.Scalar) else value.is_valid()


@scalar("IS DISTINCT FROM", takes=[ANY, ANY], gives=BOOLEAN.not_null(), unify=True, compares=True, null_if_null=False)
def is_distinct_from(context: Any, left: Value, right: Value) -> Value:
    """Whether the values differ, with NULL as a value."""
    unequal = _comparison(pc.not_equal, lambda a, b: a != b)(context, left, right)
    one_null = pc.xor(is_null(context, left), is_null(context, right))
    return pc.coalesce(unequal, one_null)


@scalar(
    "IS NOT DISTINCT FROM", takes=[ANY, ANY], gives=BOOLEAN.not_null(), unify=True, compares=True, null_if_null=False
)
def is_not_distinct_from(context: Any, left: Value, right: Value) -> Value:
    """Whether the values are equal, with NULL as a value."""
    return pc.invert(is_distinct_from(context, left, right))


@scalar("IN", takes=[ANY, ANY], gives=BOOLEAN, unify=True, compares=True, variadic=True)
def is_in(context: Any, value: Value, *candidates: Value) -> Value:
    """Whether a value is in a list; NULL if it is not and the list contains NULL (T34)."""
    equal = _comparison(pc.equal, lambda a, b: a == b)
    constants = all(isinstance(one, pa.Scalar) and one.type == value.type for one in candidates)
    if not constants or isinstance(value, pa.Scalar) or pt.is_nested(value.type):
        found = equal(context, value, candidates[0])
        for candidate in candidates[1:]:
            found = pc.or_kleene(found, equal(context, value, candidate))
        return found
    known = pa.array([one.as_py() for one in candidates if one.is_valid], value.type)
    found = pc.is_in(value, known)
    unknown = value.is_null()
    if len(known) < len(candidates):
        unknown = pc.invert(found)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def like_pattern(pattern: str, escape: str | None = None) -> str:
    """Convert a LIKE pattern to a regular expression.

    >>> like_pattern("a_c%"), like_pattern("100$%", "$")
    ('a.c.*', '100%')
    """
    parts, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if escape and character == escape and position + 1 < len(pattern):
            position += 1
            parts.append(re.escape(pattern[position]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        position += 1
    return "".join(parts)


_compiled: dict[tuple[str, str | None], re.Pattern[str]] = {}


@by_row("LIKE", takes=[CHARACTER, CHARACTER, CHARACTER], gives=BOOLEAN, optional=1)
def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """Whether text matches a pattern of % and _. There is no escape character unless one is given (T39)."""
    known = _compiled.get((pattern, escape))
    if known is None:
        known = _compiled[pattern, escape] = re.compile(like_pattern(pattern, escape), re.DOTALL)
    return known.fullmatch(text) is not None


@by_row("SIMILAR TO", takes=[CHARACTER, CHARACTER], gives=BOOLEAN)
def similar_to(text: str, pattern: str) -> bool:
    """Whether text matches a SQL regular expression."""
    return re.fullmatch(pattern.replace("%", ".*").replace("_", "."), text, re.DOTALL) is not None
