"""User-defined scalar functions in expressions.

Python functions run row by row, coroutines many at a time, and pandas and Arrow functions on whole columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import arrow_type, python_values, to_column
from penstock.core.table.functions import FunctionContext
from penstock.core.table.types import DataType, RowType
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.async_calls import call_all
from penstock.runtime.table.expressions import Evaluate, Rows, UserCall, Value, as_column, evaluator

Operands = list[tuple[Evaluate, DataType]]


def compile_user_call(call: UserCall) -> Evaluate:
    """Return a function from rows to the results of a user function on Python values, with NULL as None (T101)."""
    operands = [(evaluator(operand), operand.type) for operand in call.operands]
    if call.function.func_type == "pandas":
        return _compile_pandas(call, operands)
    if call.function.func_type == "arrow":
        return _compile_arrow(call, operands)
    function = call.function.eval
    type_ = call.type
    if inspect.iscoroutinefunction(function):
        return _compile_async(call, operands, function)

    def evaluate(rows: Rows) -> Value:
        return to_column([function(*value) for value in argument_rows(operands, rows)], type_)

    return evaluate


def argument_rows(operands: Operands, rows: Rows) -> Sequence[tuple[Any, ...]]:
    """Return the arguments of every row as Python values."""
    count = len(rows)
    columns = [python_values(as_column(operand(rows), count), type_) for operand, type_ in operands]
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _compile_async(call: UserCall, operands: Operands, function: Callable[..., Any]) -> Evaluate:
    def evaluate(rows: Rows) -> Value:
        return to_column(call_all(function, argument_rows(operands, rows), rows.context.async_calls), call.type)

    return evaluate


def _compile_pandas(call: UserCall, operands: Operands) -> Evaluate:
    function, name = call.function.eval, call.function.name
    data_type = call.type

    def evaluate(rows: Rows) -> Value:
        count = len(rows)
        series = [to_pandas(as_column(operand(rows), count), type_) for operand, type_ in operands]
        return from_pandas(function(*series), data_type, count, name)

    return evaluate


def _compile_arrow(call: UserCall, operands: Operands) -> Evaluate:
    function, name = call.function.eval, call.function.name
    type_ = arrow_type(call.type)

    def evaluate(rows: Rows) -> Value:
        count = len(rows)
        result = as_column(function(*(as_column(operand(rows), count) for operand, _ in operands)), count)
        if len(result) != count:
            raise ValueError(f"function '{name}' got {count} rows and returned {len(result)}: it must return as many")
        return result if result.type == type_ else result.cast(type_)

    return evaluate


# -- pandas -----------------------------------------------------------------------------------------------------------


def to_pandas(column: pa.Array, type_: DataType) -> Any:
    """Convert a column to a Series, and a column of rows to a DataFrame (T104)."""
    if not isinstance(type_, RowType):
        return column.to_pandas()
    import pandas as pd

    parts = [column.field(index) for index in range(len(type_.fields))]
    return pd.DataFrame(
        {field.name: to_pandas(part, field.data_type) for field, part in zip(type_.fields, parts, strict=True)}
    )


def from_pandas(result: Any, type_: DataType, count: int, name: str) -> pa.Array:
    """Convert the result of a function: a Series, or a DataFrame or tuple of Series for a row."""
    if isinstance(type_, RowType):
        columns = list(result) if isinstance(result, tuple) else [result.iloc[:, i] for i in range(result.shape[1])]
        if len(columns) != len(type_.fields):
            raise ValueError(
                f"pandas function '{name}' returned {len(columns)} columns, its result type has {len(type_.fields)}"
            )
        parts = [
            from_pandas(column, field.data_type, count, name)
            for column, field in zip(columns, type_.fields, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(arrow_type(type_)))
    import pandas as pd

    if not isinstance(result, pd.Series):
        raise TypeError(f"pandas function '{name}' returned {type(result).__name__}: it must return a pandas Series")
    if len(result) != count:
        raise ValueError(
            f"pandas function '{name}' got {count} rows and returned {len(result)}: it must return as many"
        )
    wanted = arrow_type(type_)
    try:
        return pa.Array.from_pandas(result, type=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.Array.from_pandas(result).cast(wanted)


# -- life cycle -------------------------------------------------------------------------------------------------------


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
