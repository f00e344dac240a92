"""The registry of built-in scalar functions: their arguments, result types and implementations on columns.

To add one, write a function in a module of its family and decorate it:

    @scalar("INITCAP", takes=[CHARACTER], gives=STRING)
    def initcap(context, text):
        return pc.utf8_title(text)

The function receives the evaluation context and its arguments as Arrow arrays or scalars, and returns one. Use
:func:`by_row` instead for a Python function of single values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.arrow import arrow_type, python_values, to_column
from penstock.core.table.type_rules import (
    MAX_PRECISION,
    as_decimal,
    casts_implicitly,
    common_type,
    is_binary,
    is_character,
    is_integer,
    is_interval,
    is_numeric,
    is_temporal,
    is_timestamp,
)
from penstock.core.table.types import (
    ArrayType,
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntType,
    MapType,
    NullType,
    TimestampType,
    VarBinaryType,
    VarCharType,
)
from penstock.runtime.table.expressions import Call, Evaluate, EvaluationContext, Rows, Value, as_column, evaluator

MODULES = (
    "arithmetic",
    "comparison",
    "logic",
    "conditional",
    "cast",
    "strings",
    "temporal",
    "collections",
    "hashes",
    "arrays",
    "text_search",
    "json",
    "calendar",
    "numbers",
)
"""Modules of this package that register functions."""

Family = Callable[[DataType], bool]


def ANY(_: DataType) -> bool:
    """Any type."""
    return True


def CHARACTER(one: DataType) -> bool:
    """Character strings."""
    return is_character(one)


def BINARY(one: DataType) -> bool:
    """Bytes."""
    return is_binary(one)


def NUMERIC(one: DataType) -> bool:
    """Numbers."""
    return is_numeric(one)


def INTEGER(one: DataType) -> bool:
    """Integers."""
    return is_integer(one)


def BOOL(one: DataType) -> bool:
    """BOOLEAN."""
    return isinstance(one, BooleanType)


def TEMPORAL(one: DataType) -> bool:
    """DATE, TIME and timestamps."""
    return is_temporal(one)


def TIME_POINT(one: DataType) -> bool:
    """DATE and timestamps."""
    return is_timestamp(one) or isinstance(one, DateType)


def INTERVAL(one: DataType) -> bool:
    """Intervals."""
    return is_interval(one)


def ARRAY(one: DataType) -> bool:
    """Arrays."""
    return isinstance(one, ArrayType)


def MAP(one: DataType) -> bool:
    """Maps."""
    return isinstance(one, MapType)


_STORED: dict[Any, DataType] = {CHARACTER: VarCharType(), BINARY: VarBinaryType(), BOOL: BooleanType()}

STRING, BYTES, INT, BIGINT, DOUBLE, BOOLEAN, DATE = (
    VarCharType(),
    VarBinaryType(),
    IntType(),
    BigIntType(),
    DoubleType(),
    BooleanType(),
    DateType(),
)
TIMESTAMP_3 = TimestampType(3)

Infer = Callable[[Sequence[DataType]], DataType | None]
"""Returns the type of the result, or None if the arguments do not fit."""


class SignatureError(Exception):
    """The arguments do not fit the function. The planner turns it into a ValidationException."""


@dataclass(slots=True)
class ScalarFunction:
    """A function of single values."""

    name: str
    kernel: Callable[..., Value]
    takes: Sequence[Family | DataType]
    gives: DataType | Infer
    optional: int = 0
    """How many of the last arguments are optional."""
    variadic: bool = False
    """Whether the last argument may be repeated."""
    deterministic: bool = True
    may_fail: bool = False
    """Whether it can fail for some values. Then CASE evaluates it only on the rows that need it."""
    null_if_null: bool = True
    """Whether the result is NULL exactly if an argument is. Determines NOT NULL of the result."""
    compiler: Callable[[Call], Evaluate] | None = None
    """A custom implementation for functions that do not simply evaluate all of their arguments."""
    unify: bool = False
    """Whether all arguments are converted to their common type."""
    compares: bool = False
    """Whether it compares its arguments, and also accepts decimals that no common type can hold."""
    aliases: tuple[str, ...] = field(default=())

    def infer(self, types: Sequence[DataType]) -> tuple[DataType, list[DataType | None]]:
        """Return the type of the result, and the type to convert each argument to (None: unchanged)."""
        wanted = self._parameters(len(types))
        if wanted is None:
            raise SignatureError
        converted: list[DataType | None] = []
        for one, parameter in zip(types, wanted, strict=True):
            converted.append(self._conversion(one, parameter))
        if self.unify and not (self.compares and _exceed_decimals(types)):
            converted = _unified(types)
        if isinstance(self.gives, DataType):
            result: DataType | None = self.gives
        else:
            result = self.gives([new or old for new, old in zip(converted, types, strict=True)])
        if result is None:
            raise SignatureError
        if self.null_if_null:
            result = result.with_nullability(any(one.is_nullable for one in types))
        return result, converted

    def _parameters(self, count: int) -> list[Family | DataType] | None:
        least, most = len(self.takes) - self.optional, len(self.takes)
        if self.variadic and count > most:
            return [*self.takes, *([self.takes[-1]] * (count - most))]
        return list(self.takes[:count]) if least <= count <= most else None

    def _conversion(self, one: DataType, parameter: Family | DataType) -> DataType | None:
        if isinstance(parameter, DataType):
            if one.same_type(parameter):
                return None
            if casts_implicitly(one, parameter):
                return parameter.with_nullability(one.is_nullable)
            raise SignatureError
        if isinstance(one, NullType):
            return _STORED.get(parameter)
        if parameter(one):
            return None
        raise SignatureError

    def compile(self, call: Call) -> Evaluate:
        """Return a function from rows to the column of a call."""
        if self.compiler is not None:
            return self.compiler(call)
        operands = [evaluator(operand) for operand in call.operands]
        kernel = self.kernel
        options = call.options
        if options:
            return lambda rows: kernel(rows.context, *[operand(rows) for operand in operands], *options)
        return lambda rows: kernel(rows.context, *[operand(rows) for operand in operands])


def _unified(types: Sequence[DataType]) -> list[DataType | None]:
    """Return conversions to the common type. A string beside another type is converted to that type."""
    target = common_type(types)
    if target is None:
        others = [one for one in types if not is_character(one)]
        target = common_type(others) if others and len(others) < len(types) else None
        if target is None or not (is_numeric(target) or is_temporal(target) or isinstance(target, BooleanType)):
            raise SignatureError
    return [None if one.same_type(target) else target.with_nullability(one.is_nullable) for one in types]


def _exceed_decimals(types: Sequence[DataType]) -> bool:
    """Whether no decimal type has enough digits for all values of these exact numbers."""
    if not all(is_integer(one) or isinstance(one, DecimalType) for one in types):
        return False
    exact = [as_decimal(one) for one in types]
    return max(one.precision - one.scale for one in exact) + max(one.scale for one in exact) > MAX_PRECISION


_functions: dict[str, ScalarFunction] = {}


def register(function: ScalarFunction) -> None:
    """Register a function under its name and aliases."""
    for name in (function.name, *function.aliases):
        if name in _functions:
            raise ValueError(f"function {name} is registered twice")
        _functions[name] = function


def scalar(
    name: str, *aliases: str, takes: Sequence[Family | DataType] = (), gives: DataType | Infer, **options: Any
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function on columns."""

    def decorate(kernel: Callable[..., Value]) -> Callable[..., Value]:
        register(ScalarFunction(name, kernel, list(takes), gives, aliases=aliases, **options))
        return kernel

    return decorate


def by_row(
    name: str, *aliases: str, takes: Sequence[Family | DataType] = (), gives: DataType | Infer, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of single Python values. It is not called for rows with a NULL among the arguments.

    With ``sees_null=True``, it is called for these rows, too.
    """
    sees_null = options.pop("sees_null", False)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def compile_rows(call: Call) -> Evaluate:
            return row_evaluator(call, function, sees_null=sees_null)

        nullable = options.pop("null_if_null", False)
        register(
            ScalarFunction(
                name,
                _not_called,
                list(takes),
                gives,
                aliases=aliases,
                compiler=compile_rows,
                null_if_null=nullable,
                **options,
            )
        )
        return function

    return decorate


def row_evaluator(call: Call, function: Callable[..., Any], *, sees_null: bool) -> Evaluate:
    """Evaluate a function of Python values row by row, or once if all arguments are constants."""
    operands = [(evaluator(operand), operand.type) for operand in call.operands]
    options, result_type = call.options, call.type

    def evaluate(rows: Rows) -> Value:
        values = [(operand(rows), type_) for operand, type_ in operands]
        constant = bool(values) and all(isinstance(value, pa.Scalar) for value, _ in values)
        count = 1 if constant else len(rows)
        columns = [as_column(value, count) for value, _ in values]
        arguments = _rows_of(values, columns, count)
        nulls = None if sees_null else _null_rows(columns)
        if nulls is None:
            results = [function(*row, *options) for row in arguments]
        else:
            results = [
                None if null else function(*row, *options)
                for row, null in zip(arguments, nulls.to_pylist(), strict=True)
            ]
        column = to_column(results, result_type)
        return column[0] if constant else column

    return evaluate


def _rows_of(
    values: Sequence[tuple[Value, DataType]], columns: Sequence[pa.Array], count: int
) -> Iterable[tuple[Any, ...]]:
    """Return the arguments of every row. Constants are converted once."""
    if not values:
        return [()] * count
    parts = [
        repeat(python_values(column.slice(0, 1), type_)[0], count)
        if isinstance(value, pa.Scalar) and count
        else python_values(column, type_)
        for (value, type_), column in zip(values, columns, strict=True)
    ]
    return zip(*parts, strict=True)


def _null_rows(columns: Sequence[pa.Array]) -> pa.BooleanArray | None:
    """Return the rows with a NULL among the arguments, or None."""
    missing = None
    for column in columns:
        if column.null_count:
            nulls = column.is_null()
            missing = nulls if missing is None else pc.or_(missing, nulls)
    return missing


def _not_called(*_: Any) -> Value:
    raise AssertionError("a function by row has no kernel")


@cache
def load_functions() -> None:
    """Import all modules that register functions."""
    for module in MODULES:
        import_module(f"penstock.runtime.table.functions.{module}")


def scalar_function(name: str) -> ScalarFunction:
    """Return the function with this name."""
    load_functions()
    return _functions[name]


def find_scalar_function(name: str) -> ScalarFunction | None:
    """Return the function with this name in any case, or None."""
    load_functions()
    return _functions.get(name.upper())


def scalar_function_names() -> list[str]:
    """Return all names, sorted."""
    load_functions()
    return sorted(_functions)


# -- result types -----------------------------------------------------------------------------------------------------


def first_argument(types: Sequence[DataType]) -> DataType | None:
    """The result has the type of the first argument."""
    return types[0]


def common(types: Sequence[DataType]) -> DataType | None:
    """The result has the common type of all arguments."""
    return common_type(types)


def stored(one: DataType) -> pa.DataType:
    """Return the column type of a SQL type."""
    return arrow_type(one)


__all__ = [
    "ANY",
    "ARRAY",
    "BIGINT",
    "BINARY",
    "BOOL",
    "BOOLEAN",
    "BYTES",
    "CHARACTER",
    "DATE",
    "DOUBLE",
    "INT",
    "INTEGER",
    "INTERVAL",
    "MAP",
    "NUMERIC",
    "STRING",
    "TEMPORAL",
    "TIMESTAMP_3",
    "TIME_POINT",
    "EvaluationContext",
    "ScalarFunction",
    "SignatureError",
    "by_row",
    "common",
    "find_scalar_function",
    "first_argument",
    "load_functions",
    "row_evaluator",
    "scalar",
    "scalar_function",
    "scalar_function_names",
    "stored",
]
