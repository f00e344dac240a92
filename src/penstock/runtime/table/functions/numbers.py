"""More functions of numbers: angles, truncation, tests for digits, formatting."""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, Decimal
from typing import Any

import pyarrow as pa

from penstock.core.table.types import ArrayType, BooleanType, VarCharType
from penstock.runtime.table.decimals import rescale
from penstock.runtime.table.expressions import Call, Evaluate
from penstock.runtime.table.functions.registry import (
    ANY,
    ARRAY,
    BOOLEAN,
    CHARACTER,
    DOUBLE,
    INT,
    NUMERIC,
    STRING,
    ScalarFunction,
    by_row,
    first_argument,
    register,
)


@by_row("COT", takes=[NUMERIC], gives=DOUBLE)
def cot(angle: Any) -> float:
    """Return the cotangent."""
    tangent = math.tan(angle)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


@by_row("DEGREES", takes=[NUMERIC], gives=DOUBLE)
def degrees(angle: Any) -> float:
    """Convert an angle to degrees."""
    return float(angle) * 180.0 / math.pi


@by_row("RADIANS", takes=[NUMERIC], gives=DOUBLE)
def radians(angle: Any) -> float:
    """Convert an angle to radians."""
    return float(angle) / 180.0 * math.pi


@by_row("TRUNCATE", takes=[NUMERIC, INT], gives=first_argument, optional=1)
def truncate(value: Any, digits: int = 0) -> Any:
    """Truncate a number to some digits."""
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return value
        return float(rescale(Decimal(repr(value)), digits, ROUND_DOWN))
    cut = rescale(Decimal(value), digits, ROUND_DOWN)
    return cut if isinstance(value, Decimal) else int(cut)


@by_row("IS_ALPHA", takes=[ANY], gives=BOOLEAN, sees_null=True)
def is_alpha(value: Any) -> bool:
    """Whether text consists of letters only."""
    return isinstance(value, str) and value.isalpha()


@by_row("IS_DIGIT", takes=[ANY], gives=BOOLEAN, sees_null=True)
def is_digit(value: Any) -> bool:
    """Whether text consists of digits only."""
    return isinstance(value, int) or (isinstance(value, str) and value.isdecimal())


@by_row("IS_DECIMAL", takes=[ANY], gives=BOOLEAN, sees_null=True)
def is_decimal(value: Any) -> bool:
    """Whether text is a number."""
    if isinstance(value, (int, float, Decimal)):
        return True
    return isinstance(value, str) and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) is not None


def _compile_type(call: Call) -> Evaluate:
    (operand, *_) = call.operands
    text = str(operand.type)
    return lambda rows: pa.scalar(text, pa.string())


register(
    ScalarFunction(
        "TYPEOF", pa.scalar, [ANY, lambda one: isinstance(one, BooleanType)], VarCharType(), 1, compiler=_compile_type
    )
)


def _compile_database(call: Call) -> Evaluate:
    return lambda rows: pa.scalar(rows.context.database, pa.string())


register(
    ScalarFunction(
        "CURRENT_DATABASE", pa.scalar, [], VarCharType().not_null(), compiler=_compile_database, null_if_null=False
    )
)


@by_row(
    "ELEMENT",
    takes=[ARRAY],
    gives=lambda types: types[0].element_type.nullable() if isinstance(types[0], ArrayType) else None,
)
def element(values: list[Any]) -> Any:
    """Return the only element of an array; NULL for an empty one."""
    if len(values) > 1:
        raise ValueError(f"ELEMENT takes an array of one element, got {len(values)}")
    return values[0] if values else None


@by_row("PRINTF", takes=[CHARACTER, ANY], gives=STRING, optional=1, variadic=True, sees_null=True)
def printf(pattern: str | None, *values: Any) -> str | None:
    """Format values like printf; NULL if they do not fit the pattern."""
    if pattern is None:
        return None
    try:
        return re.sub(r"%n", "\n", pattern) % tuple("null" if one is None else one for one in values)
    except (TypeError, ValueError):
        return None
