"""Bound expressions: columns, constants and calls with known types, evaluated on whole batches.

Both front ends (Table API and SQL) produce them. Expressions are pickled into the tasks. :func:`evaluator` converts one
to a function from a batch to a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.table.arrow import arrow_type
from penstock.core.table.types import DataType
from penstock.runtime.table.async_calls import AsyncCalls


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of all expressions. ``type`` is the type of the value."""

    type: DataType


@dataclass(frozen=True, slots=True)
class InputRef(Expr):
    """A column of the input."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A value in its stored form."""

    value: Any


@dataclass(frozen=True, slots=True)
class CorrelRef(Expr):
    """A column of an outer query. The planner rewrites it into a join."""

    index: int
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function of the registry. ``options`` are fixed at planning time (a time unit, a JSON clause)."""

    function: str
    operands: tuple[Expr, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class UserCall(Expr):
    """A user-defined scalar function."""

    function: Any
    operands: tuple[Expr, ...]


@dataclass(slots=True)
class EvaluationContext:
    """The context of functions, besides their arguments."""

    time_zone: str = "UTC"
    now: int = 0
    """Processing time in ms."""
    watermark: int = MIN_WATERMARK
    query_start: int = 0
    """When a batch query began, in ms: the value of CURRENT_TIMESTAMP in batch mode."""
    batch_execution: bool = False
    database: str = "default_database"
    async_calls: AsyncCalls = field(default_factory=AsyncCalls)


@dataclass(slots=True)
class Rows:
    """The rows on which an expression is evaluated."""

    data: pa.RecordBatch
    context: EvaluationContext = field(default_factory=EvaluationContext)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def filter(self, mask: pa.BooleanArray) -> Rows:
        """Return some of the rows."""
        return Rows(self.data.filter(mask), self.context)


Value = Any
"""A pyarrow Array, or a Scalar for the same value in every row."""
Evaluate = Callable[[Rows], Value]


def evaluator(expr: Expr) -> Evaluate:
    """Return a function from rows to a column or scalar."""
    match expr:
        case InputRef():
            index = expr.index
            return lambda rows: rows.data.column(index)
        case Constant():
            scalar = pa.scalar(expr.value, arrow_type(expr.type))
            return lambda rows: scalar
        case Call():
            from penstock.runtime.table.functions.registry import scalar_function

            return scalar_function(expr.function).compile(expr)
        case UserCall():
            from penstock.runtime.table.user_functions import compile_user_call

            return compile_user_call(expr)
    raise TypeError(f"{type(expr).__name__} cannot be evaluated")


def column_evaluator(expr: Expr) -> Callable[[Rows], pa.Array]:
    """Return a function from rows to a column. Constants are columns, too."""
    evaluate = evaluator(expr)
    type_ = arrow_type(expr.type)

    def evaluate_column(rows: Rows) -> pa.Array:
        return as_column(evaluate(rows), len(rows), type_)

    return evaluate_column


def as_column(value: Value, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    """Return a value as a column with this number of rows."""
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks() if value.num_chunks != 1 else value.chunk(0)
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)
    return value if type_ is None or value.type == type_ else value.cast(type_, safe=False)


# -- analyzing expressions --------------------------------------------------------------------------------------------


def operands_of(expr: Expr) -> Sequence[Expr]:
    """Return the direct operands of an expression."""
    return expr.operands if isinstance(expr, (Call, UserCall)) else ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and everything inside it."""
    yield expr
    for operand in operands_of(expr):
        yield from walk(operand)


def input_columns(expr: Expr) -> set[int]:
    """Return the columns that an expression reads."""
    return {node.index for node in walk(expr) if isinstance(node, InputRef)}


def transform(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Replace parts of an expression: `change` returns the replacement, or None to continue inside."""
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, (Call, UserCall)):
        return replace(expr, operands=tuple(transform(operand, change) for operand in expr.operands))
    return expr


def shifted(expr: Expr, mapping: Callable[[int], int]) -> Expr:
    """Adapt an expression to an input whose columns have moved."""

    def move(node: Expr) -> Expr | None:
        return InputRef(node.type, mapping(node.index)) if isinstance(node, InputRef) else None

    return transform(expr, move)
