"""User-defined scalar functions in expressions: Python functions row by row, pandas functions column by column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import arrow_type, python_values, to_column
from penstock.core.table.functions import FunctionContext
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.expressions import Evaluate, Rows, UserCall, Value, as_column, evaluator


def compile_user_call(call: UserCall) -> Evaluate:
    """From rows to the results of a user function. Its arguments are Python values, NULL is None (T101)."""
    operands = [(evaluator(operand), operand.type) for operand in call.operands]
    function = call.function.eval
    if call.function.is_pandas:
        return _compile_pandas(call, operands)

    def evaluate(rows: Rows) -> Value:
        count = len(rows)
        columns = [python_values(as_column(operand(rows), count), type_) for operand, type_ in operands]
        arguments = zip(*columns, strict=True) if columns else [()] * count
        return to_column([function(*row) for row in arguments], call.type)

    return evaluate


def _compile_pandas(call: UserCall, operands: list[tuple[Evaluate, Any]]) -> Evaluate:
    function = call.function.eval
    type_ = arrow_type(call.type)

    def evaluate(rows: Rows) -> Value:
        series = [as_column(operand(rows), len(rows)).to_pandas() for operand, _ in operands]
        result = function(*series)
        if len(result) != len(rows):
            raise ValueError(f"a pandas function got {len(rows)} rows and returned {len(result)}")
        return pa.Array.from_pandas(result, type=type_)

    return evaluate


def open_functions(functions: list[Any], context: OperatorContext) -> None:
    """Call `open` of every function before the first row (T102)."""
    for function in functions:
        try:
            function.open(FunctionContext(context.runtime_context))
        except Exception as error:
            raise user_error(context, error, "open") from None


def close_functions(functions: list[Any], context: OperatorContext) -> None:
    """Call `close` of every function at the end (T102)."""
    for function in functions:
        try:
            function.close()
        except Exception as error:
            raise user_error(context, error, "close") from None
