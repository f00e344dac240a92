"""+ - * / % and functions of numbers."""

from __future__ import annotations

import datetime as dt
import math
import random
from calendar import monthrange
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.arrow import arrow_type
from penstock.core.table.type_rules import (
    arithmetic_type,
    as_decimal,
    is_approximate,
    is_character,
    is_interval,
    is_numeric,
)
from penstock.core.table.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)
from penstock.runtime.table.decimals import EXACT, divide_half_up, fit, rescale
from penstock.runtime.table.expressions import Call, Evaluate, Rows, Value, as_column, evaluator
from penstock.runtime.table.functions.registry import (
    ANY,
    DOUBLE,
    INT,
    INTEGER,
    NUMERIC,
    ScalarFunction,
    by_row,
    first_argument,
    register,
    row_evaluator,
    scalar,
    stored,
)

_EXACT = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
_KERNELS: dict[str, Callable[..., Any]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}


class DivisionByZeroError(ArithmeticError):
    """Integers and decimals cannot be divided by zero (T31)."""


def _result(operator: str) -> Callable[[Sequence[DataType]], DataType | None]:
    def infer(types: Sequence[DataType]) -> DataType | None:
        left, right = types
        if is_character(left) and is_numeric(right):
            left = DoubleType()
        if is_character(right) and is_numeric(left):
            right = DoubleType()
        return arithmetic_type(operator, left, right) or _temporal_result(operator, left, right)

    return infer


def _temporal_result(operator: str, left: DataType, right: DataType) -> DataType | None:
    if operator in "+-":
        if is_interval(left) and type(left) is type(right):
            return left
        if isinstance(left, (TimestampType, LocalZonedTimestampType, DateType, TimeType)) and is_interval(right):
            return left
        if operator == "+" and is_interval(left) and not is_interval(right):
            return _temporal_result("+", right, left)
        if operator == "-" and isinstance(left, (TimestampType, LocalZonedTimestampType, DateType)):
            return DayTimeIntervalType() if type(left) is type(right) else None
    if operator == "*" and is_interval(left) and is_numeric(right):
        return left
    if operator == "*" and is_numeric(left) and is_interval(right):
        return right
    if operator == "/" and is_interval(left) and is_numeric(right):
        return left
    return None


def _compile(operator: str) -> Callable[[Call], Evaluate]:
    def compile_call(call: Call) -> Evaluate:
        left, right = call.operands
        if isinstance(call.type, DecimalType):
            return _decimal(operator, call)
        if is_numeric(call.type):
            if operator == "%":
                return _remainder(call)
            return _numeric(operator, call)
        if isinstance(left.type, YearMonthIntervalType) or isinstance(right.type, YearMonthIntervalType):
            return _months(operator, call)
        return _temporal(operator, call)

    return compile_call


def _numeric(operator: str, call: Call) -> Evaluate:
    """Compute in the type of the result, in which integers wrap."""
    type_, kernel = stored(call.type), _KERNELS[operator]
    left, right = (evaluator(operand) for operand in call.operands)
    exact = not is_approximate(call.type)
    whole = operator == "/" and exact

    def evaluate(rows: Rows) -> Value:
        a, b = left(rows).cast(type_, safe=exact), right(rows).cast(type_, safe=exact)
        if whole:
            _check_divisor(a, b)
            return _quotient(a, b)
        return kernel(a, b)

    return evaluate


def _check_divisor(dividend: Value, divisor: Value) -> None:
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))
    if isinstance(dividend, pa.Scalar) and not dividend.is_valid:
        return
    counts = zero if isinstance(dividend, pa.Scalar) else pc.and_kleene(zero, dividend.is_valid())
    if counts.as_py() if isinstance(counts, pa.Scalar) else pc.any(counts).as_py():
        raise DivisionByZeroError("Division by zero")


def _quotient(dividend: Value, divisor: Value) -> Value:
    """Divide integers. The quotient of the least one and -1 wraps, as in Java; Arrow's division makes it 0."""
    if isinstance(divisor, pa.Scalar) and divisor.as_py() != -1:
        return pc.divide(dividend, divisor)
    negative = pc.equal(divisor, pa.scalar(-1, divisor.type))
    quotient = pc.divide(dividend, pc.if_else(negative, pa.scalar(1, divisor.type), divisor))
    return pc.if_else(negative, pc.negate(dividend), quotient)


def _remainder(call: Call) -> Evaluate:
    if is_approximate(call.type):
        return row_evaluator(call, _float_remainder, sees_null=False)
    type_ = stored(call.type)
    left, right = (evaluator(operand) for operand in call.operands)

    def evaluate(rows: Rows) -> Value:
        a, b = left(rows).cast(pa.int64()), right(rows).cast(pa.int64())
        _check_divisor(a, b)
        return pc.subtract(a, pc.multiply(_quotient(a, b), b)).cast(type_)

    return evaluate


def _float_remainder(left: float, right: float) -> float:
    return math.fmod(left, right) if right and not math.isinf(left) else math.nan


def _decimal(operator: str, call: Call) -> Evaluate:
    result = call.type
    assert isinstance(result, DecimalType)
    precision, scale = result.precision, result.scale

    def compute(left: Any, right: Any) -> Decimal | None:
        a, b = Decimal(left), Decimal(right)
        if operator in _EXACT:
            return fit(_EXACT[operator](a, b), precision, scale)
        if not b:
            raise DivisionByZeroError("Division by zero")
        if operator == "/":
            return divide_half_up(a, b, precision, scale)
        return fit(EXACT.remainder(a, b), precision, scale)

    slow = row_evaluator(call, compute, sees_null=False)
    types = [as_decimal(operand.type) for operand in call.operands if not is_character(operand.type)]
    if operator in "/%" or len(types) < 2 or sum(one.precision for one in types) >= 38:
        return slow
    kernel, type_ = _KERNELS[operator], arrow_type(result)
    left, right = (evaluator(operand) for operand in call.operands)
    left_type, right_type = (arrow_type(one) for one in types)

    def evaluate(rows: Rows) -> Value:
        a, b = left(rows).cast(left_type), right(rows).cast(right_type)
        return kernel(a, b).cast(type_)  # the operands have few enough digits: nothing can overflow

    return evaluate


def _temporal(operator: str, call: Call) -> Evaluate:
    left, right = (evaluator(operand) for operand in call.operands)
    left_type, right_type = (operand.type for operand in call.operands)
    result = stored(call.type)

    def wide(value: Value, type_: DataType) -> Value:
        if isinstance(type_, DateType):
            return value.cast(pa.timestamp("us"))
        return value.cast(pa.int64()) if isinstance(type_, TimeType) else value

    def evaluate(rows: Rows) -> Value:
        a, b = wide(left(rows), left_type), wide(right(rows), right_type)
        if operator in "*/":
            return _scaled(operator, a, b).cast(pa.duration("us"))
        if isinstance(call.type, TimeType):
            return _time_of_day(operator, a, b)
        value = _KERNELS[operator](a, b)
        return value.cast(result, safe=False) if value.type != result else value

    return evaluate


def _time_of_day(operator: str, a: Value, b: Value) -> Value:
    if a.type != pa.int64():
        a, b = b, a
    day = pa.scalar(86_400_000_000, pa.int64())
    total = _KERNELS[operator](a, b.cast(pa.int64()))
    rest = pc.subtract(total, pc.multiply(pc.divide(total, day), day))
    return pc.if_else(pc.less(rest, pa.scalar(0)), pc.add(rest, day), rest).cast(pa.time64("us"))


def _scaled(operator: str, a: Value, b: Value) -> Value:
    """Multiply or divide an interval by a number."""
    if not pa.types.is_duration(a.type):
        a, b = b, a
    number = b.cast(pa.int64()) if pa.types.is_integer(b.type) else b.cast(pa.float64())
    amount = a.cast(pa.int64()) if pa.types.is_integer(number.type) else a.cast(pa.int64()).cast(pa.float64())
    return _KERNELS[operator](amount, number).cast(pa.int64(), safe=False)


def _months(operator: str, call: Call) -> Evaluate:
    def compute(left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, (dt.date, dt.datetime)):
            left, right = right, left
        if isinstance(left, (dt.date, dt.datetime)):
            return add_months(left, right if operator == "+" else -right)
        return {"+": left + right, "-": left - right, "*": int(left * right), "/": int(left / right) if right else 0}[
            operator
        ]

    return row_evaluator(call, compute, sees_null=False)


def add_months(value: Any, months: int) -> Any:
    """Add months to a date or time. The day is limited to the last day of the month.

    >>> add_months(dt.date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


for _symbol in "+-*/%":
    register(
        ScalarFunction(
            _symbol,
            pc.add,
            [ANY, ANY],
            _result(_symbol),
            compiler=_compile(_symbol),
            may_fail=_symbol in "/%",
            aliases=("MOD",) if _symbol == "%" else (),
        )
    )


@scalar("NEGATE", takes=[ANY], gives=lambda types: types[0] if is_numeric(types[0]) or is_interval(types[0]) else None)
def negate(context: Any, value: Value) -> Value:
    """Negate a number."""
    if pa.types.is_duration(value.type):
        return pc.negate(value.cast(pa.int64())).cast(value.type)
    return pc.negate(value)


@scalar("ABS", takes=[NUMERIC], gives=first_argument)
def absolute(context: Any, value: Value) -> Value:
    """Return the absolute value."""
    return pc.abs(value)


def _rounded(types: Sequence[DataType]) -> DataType | None:
    one = types[0]
    if isinstance(one, DecimalType):
        return DecimalType(one.precision, 0)
    return one


@by_row("FLOOR", takes=[NUMERIC], gives=_rounded)
def floor(value: Any) -> Any:
    """Return the largest integer that is not larger."""
    if isinstance(value, float):
        return value if math.isinf(value) or math.isnan(value) else float(math.floor(value))
    return Decimal(math.floor(value)) if isinstance(value, Decimal) else value


@by_row("CEIL", "CEILING", takes=[NUMERIC], gives=_rounded)
def ceil(value: Any) -> Any:
    """Return the smallest integer that is not smaller."""
    if isinstance(value, float):
        return value if math.isinf(value) or math.isnan(value) else float(math.ceil(value))
    return Decimal(math.ceil(value)) if isinstance(value, Decimal) else value


@by_row("ROUND", takes=[NUMERIC, INT], gives=first_argument, optional=1)
def round_half_up(value: Any, digits: int = 0) -> Any:
    """Round half up, away from zero."""
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return value
        return float(rescale(Decimal(repr(value)), digits))
    rounded = rescale(Decimal(value), digits)
    return rounded if isinstance(value, Decimal) else int(rounded)


_DOUBLES: dict[str, Callable[[Value], Value]] = {
    "SQRT": pc.sqrt,
    "EXP": pc.exp,
    "LN": pc.ln,
    "LOG10": pc.log10,
    "LOG2": pc.log2,
    "SIN": pc.sin,
    "COS": pc.cos,
    "TAN": pc.tan,
    "ASIN": pc.asin,
    "ACOS": pc.acos,
    "ATAN": pc.atan,
    "SINH": pc.sinh,
    "COSH": pc.cosh,
    "TANH": pc.tanh,
}


def _of_double(kernel: Callable[[Value], Value]) -> Callable[[Any, Value], Value]:
    return lambda context, value: kernel(_as_double(value))


def _as_double(value: Value) -> Value:
    """Convert numbers. Integers above 2^53 become the nearest double."""
    return value.cast(pa.float64(), safe=False)


for _name, _kernel in _DOUBLES.items():
    register(ScalarFunction(_name, _of_double(_kernel), [NUMERIC], DOUBLE))


@scalar("POWER", "POW", takes=[NUMERIC, NUMERIC], gives=DOUBLE)
def power(context: Any, base: Value, exponent: Value) -> Value:
    """Raise the base to the power of the exponent."""
    return pc.power(_as_double(base), _as_double(exponent))


@scalar("ATAN2", takes=[NUMERIC, NUMERIC], gives=DOUBLE)
def atan2(context: Any, y: Value, x: Value) -> Value:
    """Return the angle of a point."""
    return pc.atan2(_as_double(y), _as_double(x))


@by_row("LOG", takes=[NUMERIC, NUMERIC], gives=DOUBLE, optional=1)
def logarithm(first: Any, second: Any = None) -> float:
    """LOG(x), or LOG(base, x)."""
    if second is None:
        return _natural_logarithm(first)
    base, number = _natural_logarithm(first), _natural_logarithm(second)
    return number / base if base else math.copysign(math.inf, number) if number else math.nan


def _natural_logarithm(number: Any) -> float:
    """As in Java: minus infinity for 0, NaN for less."""
    if number > 0:
        return math.log(number)
    return -math.inf if number == 0 else math.nan


@scalar("SIGN", takes=[NUMERIC], gives=first_argument)
def sign(context: Any, value: Value) -> Value:
    """Return -1, 0 or 1."""
    if pa.types.is_decimal(value.type):  # its type may have no digit before the decimal point
        return pc.sign(value).cast(pa.int64()).cast(pa.decimal128(20, 0)).cast(value.type)
    return pc.sign(value).cast(value.type)


@scalar("PI", gives=DOUBLE.not_null(), null_if_null=False)
def pi(context: Any) -> Value:
    """Return the ratio of a circle's circumference to its diameter."""
    return pa.scalar(math.pi)


@scalar("E", gives=DOUBLE.not_null(), null_if_null=False)
def e(context: Any) -> Value:
    """Return the base of natural logarithms."""
    return pa.scalar(math.e)


def _random_numbers(call: Call) -> Evaluate:
    seed = evaluator(call.operands[0]) if call.operands else None
    generator = random.Random()  # noqa: S311 - not for security

    def evaluate(rows: Rows) -> Value:
        if seed is not None:
            generator.seed(as_column(seed(rows), 1)[0].as_py())
        return pa.array([generator.random() for _ in range(len(rows))], pa.float64())

    return evaluate


register(
    ScalarFunction(
        "RAND",
        pc.random,
        [INTEGER],
        DOUBLE.not_null(),
        1,
        compiler=_random_numbers,
        deterministic=False,
        null_if_null=False,
    )
)


def _random_integers(call: Call) -> Evaluate:
    bound = evaluator(call.operands[-1])
    generator = random.Random()  # noqa: S311 - not for security

    def evaluate(rows: Rows) -> Value:
        bounds = as_column(bound(rows), len(rows)).to_pylist()
        return pa.array([None if one is None else generator.randrange(one) for one in bounds], pa.int32())

    return evaluate


register(
    ScalarFunction(
        "RAND_INTEGER", pc.random, [INTEGER, INTEGER], IntType(), 1, compiler=_random_integers, deterministic=False
    )
)
