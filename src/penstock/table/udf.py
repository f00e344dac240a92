"""User-defined functions: `udf`, `udtf`, `udaf` and `udtaf` as decorators and as functions (T100)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.core.table.functions import (
    AggregateFunction,
    AsyncScalarFunction,
    DelegatingAsyncScalarFunction,
    DelegatingPandasAggregateFunction,
    DelegatingScalarFunction,
    DelegatingTableFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from penstock.core.table.types import DataType, RowField, RowType
from penstock.runtime.table.aggregates.base import Aggregate
from penstock.runtime.table.aggregates.user import PandasAggregate, UserAggregate
from penstock.table.expression import Expression, node_of
from penstock.table.plan import ast
from penstock.table.type_text import parse_type
from penstock.util.exceptions import ValidationException

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
    """A user-defined function with its types. A call with expressions returns an expression."""

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
        self.func_type = func_type
        self.alias_names: tuple[str, ...] = ()
        self._deterministic = deterministic

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """Name the columns of the result, for methods such as `map` and `aggregate` of a table."""
        named = copy(self)
        named.alias_names = alias_names
        return named

    @property
    def can_retract(self) -> bool:
        """Whether an aggregate function supports retraction."""
        retract = getattr(type(self.function), "retract", None)
        return self.func_type == "pandas" or retract is not ImperativeAggregateFunction.retract

    @property
    def is_aggregate(self) -> bool:
        """Whether the function works on groups of rows."""
        return self.kind in ("aggregate", "table aggregate")

    @property
    def is_table(self) -> bool:
        """Whether the function returns any number of rows."""
        return self.kind in ("table", "table aggregate")

    @property
    def is_deterministic(self) -> bool:
        """Whether the same arguments always give the same result."""
        return self.function.is_deterministic() if self._deterministic is None else self._deterministic

    def __call__(self, *args: Any) -> Expression[Any]:
        return Expression(ast.UserFunctionCall(self, tuple(map(node_of, args))))

    def check_arguments(self, count: int) -> None:
        """Raise a ValidationException if the function does not accept this number of arguments."""
        try:
            parameters = inspect.signature(self.checked_method)
        except (TypeError, ValueError):  # some builtins have no signature
            return
        try:
            parameters.bind(*range(count + (self.is_aggregate and self.func_type == "general")))
        except TypeError as error:
            raise ValidationException(
                f"Function '{self.name}' cannot be called with {count} arguments: {error}"
            ) from None

    @property
    def checked_method(self) -> Callable[..., Any]:
        """Return the method that gets the rows."""
        inner: Callable[..., Any] | None = getattr(self.function, "function", None)
        if callable(inner):
            return inner
        method: Callable[..., Any] = self.function.accumulate if self.is_aggregate else self.function.eval
        return method

    def open(self, context: FunctionContext) -> None:
        """Open the function."""
        self.function.open(context)

    def close(self) -> None:
        """Close the function."""
        self.function.close()

    @property
    def eval(self) -> Callable[..., Any]:
        """Return the function that computes the result."""
        return self.function.eval  # type: ignore[no-any-return]


class TableFunctionWrapper(UserDefinedFunctionWrapper):
    """A table function. Its result type is a row of its columns."""

    kind = "table"


class AggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """An aggregate function."""

    kind = "aggregate"

    def create_aggregate(self, types: Sequence[DataType]) -> Aggregate:
        """Create the runtime form of the function."""
        return PandasAggregate(self, types) if self.func_type == "pandas" else UserAggregate(self, types)


class TableAggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """A table aggregate function. Its result type is a row of its columns."""

    kind = "table aggregate"


def udf(
    f: Any = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Define a scalar function: ``udf(lambda i: i + 1, result_type="BIGINT")``, or a decorator."""
    if func_type not in ("general", "pandas", "arrow"):
        raise InvalidProgramError(f"The func_type must be one of 'general, pandas, arrow', got {func_type}.")

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
    """Define a table function, which yields any number of rows for each row."""

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
    """Define an aggregate function. Use ``func_type="pandas"`` for functions of whole Series."""
    if func_type not in ("general", "pandas"):
        raise InvalidProgramError(f"The func_type must be one of 'general, pandas', got {func_type}.")

    def wrap(function: Any) -> AggregateFunctionWrapper:
        made = function() if isinstance(function, type) else function
        if func_type == "pandas":
            if not isinstance(made, AggregateFunction) and not callable(made):
                raise InvalidProgramError(f"a pandas aggregate function must be callable, got {made!r}")
            made = DelegatingPandasAggregateFunction(made)
        elif not isinstance(made, AggregateFunction):
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
    """Define a table aggregate function, which emits any number of rows for each group."""
    if func_type != "general":
        raise InvalidProgramError(f"The func_type of a table aggregate function must be 'general', got {func_type}.")

    def wrap(function: Any) -> TableAggregateFunctionWrapper:
        made = function() if isinstance(function, type) else function
        if not isinstance(made, TableAggregateFunction):
            raise InvalidProgramError(f"udtaf() takes a TableAggregateFunction, got {made!r}")
        declared = result_type if result_type is not None else made.get_result_type()
        return TableAggregateFunctionWrapper(
            made,
            _row_type(declared),
            _input_types(input_types),
            name=name or _name_of(function),
            deterministic=deterministic,
        )

    return wrap if f is None else wrap(f)


def as_function(function: Any, name: str) -> UserDefinedFunctionWrapper:
    """Return the function in the form that the catalog stores."""
    if isinstance(function, UserDefinedFunctionWrapper):
        return function
    if isinstance(function, type) and issubclass(function, UserDefinedFunction):
        function = function()
    if isinstance(function, (AggregateFunction, TableAggregateFunction)):
        wrap = udaf if isinstance(function, AggregateFunction) else udtaf
        wrapped: UserDefinedFunctionWrapper = wrap(function, name=name)
        return wrapped
    raise InvalidProgramError(f"'{name}' is not a user-defined function: wrap it with udf(), udtf() or udaf()")


def _instance(function: Any, classes: tuple[type[UserDefinedFunction], ...], delegate: Callable[[Any], Any]) -> Any:
    if isinstance(function, type) and issubclass(function, UserDefinedFunction):
        function = function()
    if isinstance(function, classes):
        return function
    if not callable(function):
        raise InvalidProgramError(f"a user-defined function must be callable, got {function!r}")
    if inspect.iscoroutinefunction(function):
        return DelegatingAsyncScalarFunction(function)
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
