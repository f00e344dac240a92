"""User-defined functions: `udf`, `udtf`, `udaf` and `udtaf` as decorators and as functions (T100)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.common.errors import InvalidProgramError
from penstock.core.table.arrow import arrow_type, python_values, to_column
from penstock.core.table.functions import (
    AggregateFunction,
    AsyncScalarFunction,
    DelegatingScalarFunction,
    DelegatingTableFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from penstock.core.table.types import DataType, RowField, RowType
from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.table.expression import Expression, node_of
from penstock.table.plan import ast
from penstock.table.type_text import parse_type

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

Types = DataType | str | Sequence[DataType | str] | None


class UserDefinedFunctionWrapper:
    """A user-defined function with its types. Calling it with expressions gives an expression."""

    kind = "scalar"

    def __init__(
        self,
        function: Any,
        result_type: DataType,
        input_types: list[DataType] | None,
        *,
        name: str | None = None,
        deterministic: bool | None = None,
        func_type: str = "general",
    ) -> None:
        self.function = function
        self.result_type = result_type
        self.input_types = input_types
        self.name = name or _name_of(function)
        self.is_pandas = func_type == "pandas"
        self._deterministic = deterministic

    @property
    def is_aggregate(self) -> bool:
        """Whether it works on groups of rows."""
        return self.kind in ("aggregate", "table aggregate")

    @property
    def is_table(self) -> bool:
        """Whether it gives any number of rows."""
        return self.kind in ("table", "table aggregate")

    @property
    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return self.function.is_deterministic() if self._deterministic is None else self._deterministic

    def __call__(self, *args: Any) -> Expression[Any]:
        return Expression(ast.UserFunctionCall(self, tuple(map(node_of, args))))

    def open(self, context: FunctionContext) -> None:
        """Open the function."""
        self.function.open(context)

    def close(self) -> None:
        """Close the function."""
        self.function.close()

    @property
    def eval(self) -> Callable[..., Any]:
        """What computes the result."""
        return self.function.eval  # type: ignore[no-any-return]


class TableFunctionWrapper(UserDefinedFunctionWrapper):
    """A table function; its result type is a row of its columns."""

    kind = "table"


class AggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """An aggregate function."""

    kind = "aggregate"

    def create_aggregate(self, types: Sequence[DataType]) -> Aggregate:
        """Its runtime form."""
        return UserAggregate(self, list(types))


class TableAggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """A table aggregate function; its result type is a row of its columns."""

    kind = "table aggregate"


class UserAggregate(RowAggregate):
    """A user's aggregate function on its accumulators, row by row."""

    def __init__(self, wrapper: UserDefinedFunctionWrapper, types: list[DataType]) -> None:
        self.wrapper = wrapper
        self.types = types
        self.result_type = arrow_type(wrapper.result_type)

    def create(self) -> Any:
        """A new accumulator."""
        return self.wrapper.function.create_accumulator()

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a row."""
        self.wrapper.function.accumulate(accumulator, *values)

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Take a row away."""
        self.wrapper.function.retract(accumulator, *values)

    def value(self, accumulator: Any) -> Any:
        """The result."""
        return self.wrapper.function.get_value(accumulator)

    def rows(self, columns: list[pa.Array], count: int) -> list[tuple[Any, ...]]:
        """Arguments as Python values of their SQL types."""
        values = [python_values(column, type_) for column, type_ in zip(columns, self.types, strict=True)]
        return list(zip(*values, strict=True)) if values else [()] * count

    def column(self, values: list[Any]) -> pa.Array:
        """Results as a column."""
        return to_column(values, self.wrapper.result_type)


def udf(
    f: Any = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A scalar function: ``udf(lambda i: i + 1, result_type="BIGINT")``, or a decorator."""
    if func_type not in ("general", "pandas"):
        raise InvalidProgramError(f"The func_type must be one of 'general, pandas', got {func_type}.")

    def wrap(function: Any) -> UserDefinedFunctionWrapper:
        made = _instance(function, (ScalarFunction, AsyncScalarFunction), DelegatingScalarFunction)
        return UserDefinedFunctionWrapper(
            made,
            _type(result_type, "result_type"),
            _input_types(input_types),
            name=name or _name_of(function),
            deterministic=deterministic,
            func_type=func_type,
        )

    return wrap if f is None else wrap(f)


def udtf(
    f: Any = None,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A table function: it yields any number of rows for each row."""

    def wrap(function: Any) -> TableFunctionWrapper:
        made = _instance(function, (TableFunction,), DelegatingTableFunction)
        return TableFunctionWrapper(
            made,
            _row_type(result_types),
            _input_types(input_types),
            name=name or _name_of(function),
            deterministic=deterministic,
        )

    return wrap if f is None else wrap(f)


def udaf(
    f: Any = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """An aggregate function; ``func_type="pandas"`` is for functions of whole Series."""
    if func_type not in ("general", "pandas"):
        raise InvalidProgramError(f"The func_type must be one of 'general, pandas', got {func_type}.")

    def wrap(function: Any) -> AggregateFunctionWrapper:
        made = function() if isinstance(function, type) else function
        if not isinstance(made, AggregateFunction) and func_type == "general":
            raise InvalidProgramError("udaf() takes an AggregateFunction, or a function with func_type='pandas'")
        declared = result_type if result_type is not None else made.get_result_type()
        return AggregateFunctionWrapper(
            made,
            _type(declared, "result_type"),
            _input_types(input_types),
            name=name or _name_of(function),
            deterministic=deterministic,
            func_type=func_type,
        )

    return wrap if f is None else wrap(f)


def udtaf(
    f: Any = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A table aggregate function: any number of rows for each group."""
    if func_type != "general":
        raise InvalidProgramError(f"The func_type of a table aggregate function must be 'general', got {func_type}.")

    def wrap(function: Any) -> TableAggregateFunctionWrapper:
        made = function() if isinstance(function, type) else function
        declared = result_type if result_type is not None else made.get_result_type()
        return TableAggregateFunctionWrapper(
            made,
            _type(declared, "result_type"),
            _input_types(input_types),
            name=name or _name_of(function),
            deterministic=deterministic,
        )

    return wrap if f is None else wrap(f)


def as_function(function: Any, name: str) -> UserDefinedFunctionWrapper:
    """What the catalog keeps under a name."""
    if isinstance(function, UserDefinedFunctionWrapper):
        return function
    if isinstance(function, (AggregateFunction, TableAggregateFunction)):
        wrap = udaf if isinstance(function, AggregateFunction) else udtaf
        wrapped: UserDefinedFunctionWrapper = wrap(function, name=name)
        return wrapped
    raise InvalidProgramError(f"'{name}' is no user-defined function: wrap it by udf(), udtf() or udaf()")


def _instance(function: Any, classes: tuple[type[UserDefinedFunction], ...], delegate: Callable[[Any], Any]) -> Any:
    if isinstance(function, type):
        function = function()
    if isinstance(function, classes):
        return function
    if not callable(function):
        raise InvalidProgramError(f"a user-defined function must be callable, got {function!r}")
    return delegate(function)


def _name_of(function: Any) -> str:
    inner = getattr(function, "function", function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _type(given: DataType | str | None, what: str) -> DataType:
    if given is None:
        raise InvalidProgramError(f"a user-defined function needs a {what}")
    return parse_type(given) if isinstance(given, str) else given


def _input_types(given: Types) -> list[DataType] | None:
    if given is None:
        return None
    return [_type(one, "type") for one in ([given] if isinstance(given, (DataType, str)) else given)]


def _row_type(given: Types) -> RowType:
    if given is None:
        raise InvalidProgramError("a table function needs result_types")
    types = [_type(one, "type") for one in ([given] if isinstance(given, (DataType, str)) else given)]
    if len(types) == 1 and isinstance(types[0], RowType):
        return types[0]
    return RowType(tuple(RowField(f"f{index}", one) for index, one in enumerate(types)))
