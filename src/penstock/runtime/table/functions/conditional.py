"""CASE, COALESCE and similar functions. A branch that can fail is evaluated only on the rows that need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.type_rules import common_type
from penstock.core.table.types import BooleanType, DataType
from penstock.runtime.table.expressions import (
    Call,
    Constant,
    Evaluate,
    Expr,
    Rows,
    UserCall,
    Value,
    as_column,
    evaluator,
    walk,
)
from penstock.runtime.table.functions.cast import cast_evaluator
from penstock.runtime.table.functions.registry import (
    ANY,
    ScalarFunction,
    common,
    register,
    scalar,
    scalar_function,
    stored,
)


def may_fail(expr: Expr) -> bool:
    """Whether evaluating an expression can fail for some values, or calls user code."""
    return any(
        isinstance(node, UserCall) or (isinstance(node, Call) and scalar_function(node.function).may_fail)
        for node in walk(expr)
    )


def evaluate_where(
    evaluate: Evaluate, rows: Rows, mask: pa.BooleanArray, type_: pa.DataType, elsewhere: pa.Scalar | None = None
) -> pa.Array:
    """Evaluate an expression on some rows. The others have another value (by default NULL)."""
    rest = pa.scalar(None, type_) if elsewhere is None else elsewhere
    wanted = mask.true_count
    if wanted == 0:
        return as_column(rest, len(rows), type_)
    if wanted == len(rows):
        return as_column(evaluate(rows), len(rows), type_)
    values = as_column(evaluate(rows.filter(mask)), wanted, type_)
    places = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), pa.scalar(1, pa.int64()))
    spread = values.take(pc.if_else(mask, places, pa.scalar(0, pa.int64())))
    return pc.if_else(mask, spread, rest)


def _converted(operand: Expr, target: DataType) -> Evaluate:
    return cast_evaluator(evaluator(operand), operand.type, target)


def _compile_case(call: Call) -> Evaluate:
    *pairs, last = call.operands
    type_ = stored(call.type)
    branches = [
        (evaluator(c), _converted(v, call.type), may_fail(c) or may_fail(v))
        for c, v in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    otherwise, otherwise_fails = _converted(last, call.type), may_fail(last)
    careful = otherwise_fails or any(fails for *_, fails in branches)

    def evaluate(rows: Rows) -> Value:
        if careful:
            return _step_by_step(rows)
        result = otherwise(rows).cast(type_)
        for condition, value, _ in reversed(branches):
            truth = pc.fill_null(condition(rows), False)
            result = pc.if_else(truth, value(rows).cast(type_), result)
        return result

    def _step_by_step(rows: Rows) -> Value:
        count = len(rows)
        result: Any = pa.nulls(count, type_)
        open_rows: Any = pa.repeat(pa.scalar(True), count)
        for condition, value, _ in branches:
            truth = evaluate_where(condition, rows, open_rows, pa.bool_())
            taken = pc.and_(pc.fill_null(truth, False), open_rows)
            result = pc.if_else(taken, evaluate_where(value, rows, taken, type_), result)
            open_rows = pc.and_not(open_rows, taken)
        return pc.if_else(open_rows, evaluate_where(otherwise, rows, open_rows, type_), result)

    return evaluate


def _case_type(types: Sequence[DataType]) -> DataType | None:
    """Return the type of alternating conditions and values, followed by the default."""
    if len(types) < 3 or len(types) % 2 == 0:
        return None
    if any(not isinstance(condition, BooleanType) for condition in types[:-1:2]):
        return None
    return common_type([*types[1:-1:2], types[-1]])


register(
    ScalarFunction("CASE", pc.case_when, [ANY], _case_type, variadic=True, compiler=_compile_case, null_if_null=False)
)
register(ScalarFunction("IF", pc.if_else, [ANY, ANY, ANY], _case_type, compiler=_compile_case, null_if_null=False))


def _coalesce_type(types: Sequence[DataType]) -> DataType | None:
    result = common_type(types)
    return None if result is None else result.with_nullability(all(one.is_nullable for one in types))


def _compile_coalesce(call: Call) -> Evaluate:
    type_ = stored(call.type)
    operands = [_converted(operand, call.type) for operand in call.operands]
    careful = any(map(may_fail, call.operands[1:]))

    def evaluate(rows: Rows) -> Value:
        if not careful:
            return pc.coalesce(*(operand(rows).cast(type_) for operand in operands))
        result = as_column(operands[0](rows), len(rows), type_)
        for operand in operands[1:]:
            missing = result.is_null()
            result = pc.if_else(missing, evaluate_where(operand, rows, missing, type_), result)
        return result

    return evaluate


for _name, _count in (("COALESCE", 1), ("IFNULL", 2)):
    register(
        ScalarFunction(
            _name,
            pc.coalesce,
            [ANY] * _count,
            _coalesce_type,
            variadic=_name == "COALESCE",
            compiler=_compile_coalesce,
            null_if_null=False,
        )
    )


def _nullif_type(types: Sequence[DataType]) -> DataType | None:
    scalar_function("=").infer(types)  # types that cannot be compared are an error
    return types[0].nullable()


def _compile_nullif(call: Call) -> Evaluate:
    """NULLIF(a, b) is CASE WHEN a = b THEN NULL ELSE a END."""
    value = call.operands[0]
    boolean, conversions = scalar_function("=").infer([operand.type for operand in call.operands])
    compared = tuple(
        operand if type_ is None else Call(type_, "CAST", (operand,))
        for operand, type_ in zip(call.operands, conversions, strict=True)
    )
    return _compile_case(Call(call.type, "CASE", (Call(boolean, "=", compared), Constant(call.type, None), value)))


register(
    ScalarFunction(
        "NULLIF",
        pc.if_else,
        [ANY, ANY],
        _nullif_type,
        compiler=_compile_nullif,
        may_fail=True,  # text may not be a number
        null_if_null=False,
    )
)


@scalar("GREATEST", takes=[ANY], gives=common, unify=True, variadic=True)
def greatest(context: Any, *values: Value) -> Value:
    """Return the maximum; NULL if one value is NULL."""
    return pc.max_element_wise(*values, skip_nulls=False)


@scalar("LEAST", takes=[ANY], gives=common, unify=True, variadic=True)
def least(context: Any, *values: Value) -> Value:
    """Return the minimum; NULL if one value is NULL."""
    return pc.min_element_wise(*values, skip_nulls=False)
