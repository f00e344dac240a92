"""AND, OR, NOT and IS TRUE in three-valued logic (T34)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.expressions import Call, Evaluate, Rows, Value, as_column, evaluator
from penstock.runtime.table.functions.conditional import evaluate_where, may_fail
from penstock.runtime.table.functions.registry import BOOL, BOOLEAN, ScalarFunction, register, scalar


def _connective(kernel: Callable[..., Any], *, decides: bool) -> Callable[[Call], Evaluate]:
    """AND or OR. Operands that can fail are evaluated only on rows that previous operands have not decided."""

    def compile_call(call: Call) -> Evaluate:
        operands = [(evaluator(operand), may_fail(operand)) for operand in call.operands]

        def evaluate(rows: Rows) -> Value:
            result = operands[0][0](rows)
            for operand, can_fail in operands[1:]:
                if not can_fail:
                    result = kernel(result, operand(rows))
                    continue
                known = as_column(result, len(rows))
                open_rows = pc.fill_null(pc.not_equal(known, pa.scalar(decides)), True)
                result = kernel(
                    known, evaluate_where(operand, rows, open_rows, pa.bool_(), elsewhere=pa.scalar(decides))
                )
            return result

        return evaluate

    return compile_call


register(
    ScalarFunction(
        "AND", pc.and_kleene, [BOOL, BOOL], BOOLEAN, variadic=True, compiler=_connective(pc.and_kleene, decides=False)
    )
)
register(
    ScalarFunction(
        "OR", pc.or_kleene, [BOOL, BOOL], BOOLEAN, variadic=True, compiler=_connective(pc.or_kleene, decides=True)
    )
)


@scalar("NOT", takes=[BOOL], gives=BOOLEAN)
def not_(context: Any, value: Value) -> Value:
    """Negate a truth value; NULL stays NULL."""
    return pc.invert(value)


def _is(value: bool, *, negated: bool) -> Callable[[Any, Value], Value]:
    def test(context: Any, operand: Value) -> Value:
        matches = pc.equal(operand, pa.scalar(value))
        found = pc.fill_null(matches, False)
        return pc.invert(found) if negated else found

    return test


for _value, _name in ((True, "TRUE"), (False, "FALSE")):
    for _negated, _words in ((False, "IS "), (True, "IS NOT ")):
        register(
            ScalarFunction(
                _words + _name, _is(_value, negated=_negated), [BOOL], BOOLEAN.not_null(), null_if_null=False
            )
        )


@scalar("IS UNKNOWN", takes=[BOOL], gives=BOOLEAN.not_null(), null_if_null=False)
def is_unknown(context: Any, value: Value) -> Value:
    """Whether a truth value is NULL."""
    return pa.scalar(not value.is_valid) if isinstance(value, pa.Scalar) else value.is_null()


@scalar("IS NOT UNKNOWN", takes=[BOOL], gives=BOOLEAN.not_null(), null_if_null=False)
def is_not_unknown(context: Any, value: Value) -> Value:
    """Whether a truth value is TRUE or FALSE."""
    return pa.scalar(value.is_valid) if isinstance(value, pa.Scalar) else value.is_valid()
