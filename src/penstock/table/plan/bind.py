"""Binding: resolves expressions and checks all types (T3, T130)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from penstock.core.table.type_rules import casts_explicitly, is_character, rounded_type
from penstock.core.table.types import (
    ArrayType,
    BooleanType,
    CharType,
    DataType,
    DataTypes,
    DayTimeIntervalType,
    DecimalType,
    NullType,
    RowField,
    RowType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from penstock.runtime.table.aggregates.registry import find_aggregate
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef, UserCall
from penstock.runtime.table.functions.calendar import sum_type
from penstock.runtime.table.functions.registry import ScalarFunction, SignatureError, find_scalar_function
from penstock.table.plan import ast
from penstock.table.plan.json_calls import exists_clause, null_clause, query_clauses, value_clauses
from penstock.table.plan.scope import Scope, row_field
from penstock.util.exceptions import ValidationException

Special = Callable[["Binder", ast.FunctionCall, Scope], Expr]
"""Functions whose arguments need special binding."""


@dataclass(slots=True)
class Binder:
    """Binds expressions. ``user_functions`` finds functions of the catalog by name."""

    user_functions: Callable[[str], Any | None] = lambda name: None
    subqueries: Any = None
    """Converts subqueries to joins; see plan/subquery.py."""
    intercept: list[Callable[[ast.Node, Scope], Expr | None]] = field(default_factory=list)
    """Called first for each node: the results of aggregates and windows are already in columns."""

    def bind(self, node: ast.Node, scope: Scope) -> Expr:  # noqa: C901 - a case for each kind of node
        """Bind an expression."""
        for ask in self.intercept:
            found = ask(node, scope)
            if found is not None:
                return found
        match node:
            case ast.Ref():
                return scope.resolve(node.path)
            case ast.ColumnAt():
                return InputRef(scope.columns[node.index].field.type, node.index)
            case ast.Literal():
                return constant(node.value, node.type)
            case ast.Named():
                return self.bind(node.operand, scope)
            case ast.Cast():
                return self._cast(node, scope)
            case ast.FunctionCall():
                return self._call(node, scope)
            case ast.UserFunctionCall():
                return self._user_call(node.function, node.arguments, scope)
            case ast.Subquery():
                if self.subqueries is not None:
                    bound: Expr = self.subqueries.bind(self, node, scope)
                    return bound
                raise ValidationException("a subquery is not supported here")
            case ast.Over():
                raise ValidationException("OVER is only allowed in a SELECT list")
            case ast.Star():
                raise ValidationException("'*' is only allowed in a SELECT list and in COUNT(*)")
        raise ValidationException(f"{type(node).__name__} is not an expression")

    def bind_all(self, nodes: Sequence[ast.Node], scope: Scope) -> list[Expr]:
        """Bind several expressions."""
        return [self.bind(node, scope) for node in nodes]

    # -- calls --------------------------------------------------------------------------------------------------

    def _call(self, node: ast.FunctionCall, scope: Scope) -> Expr:
        special = SPECIAL.get(node.name.upper())
        if special is not None:
            return special(self, node, scope)
        function = find_scalar_function(node.name)
        if function is not None:
            return self.call(function, self.bind_all(node.arguments, scope), node.options)
        user = self.user_functions(node.name)
        if user is not None:
            return self._user_call(user, node.arguments, scope)
        if find_aggregate(node.name) is not None:
            raise ValidationException(f"Aggregate function '{node.name}' is not allowed here")
        raise ValidationException(
            f"No match found for function signature {node.name}({_types_text(self.bind_all(node.arguments, scope))})"
        )

    def call(self, function: ScalarFunction, arguments: list[Expr], options: tuple[Any, ...] = ()) -> Expr:
        """Call a built-in function, with conversions of its arguments."""
        try:
            result, conversions = function.infer([argument.type for argument in arguments])
        except SignatureError:
            raise ValidationException(
                f"Cannot apply '{function.name}' to arguments of type '{function.name}({_types_text(arguments)})'"
            ) from None
        converted = [
            argument if wanted is None else cast_to(argument, wanted)
            for argument, wanted in zip(arguments, conversions, strict=True)
        ]
        return Call(result, function.name, tuple(converted), options)

    def function(self, name: str, *arguments: Expr) -> Expr:
        """Call a built-in function by name."""
        found = find_scalar_function(name)
        assert found is not None, name
        return self.call(found, list(arguments))

    def _user_call(self, function: Any, arguments: Sequence[ast.Node], scope: Scope) -> Expr:
        bound = self.bind_all(arguments, scope)
        wanted = function.input_types
        if wanted is not None:
            if len(wanted) != len(bound):
                raise ValidationException(
                    f"Invalid number of arguments for function '{function.name}': {len(wanted)} expected, "
                    f"{len(bound)} given"
                )
            bound = [cast_to(one, type_) for one, type_ in zip(bound, wanted, strict=True)]
        if function.is_table or function.is_aggregate:
            kind = "table" if function.kind == "table" else "aggregate"
            advice = "use LATERAL TABLE(...) or join_lateral" if kind == "table" else "use it in a SELECT with groups"
            raise ValidationException(f"'{function.name}' is a {function.kind} function and not allowed here: {advice}")
        function.check_arguments(len(bound))
        return UserCall(function.result_type, function, tuple(bound))

    def _cast(self, node: ast.Cast, scope: Scope) -> Expr:
        operand = self.bind(node.operand, scope)
        if not casts_explicitly(operand.type, node.type):
            raise ValidationException(f"Cast function cannot convert value of type {operand.type} to type {node.type}")
        if node.or_null:
            return Call(node.type.nullable(), "TRY_CAST", (operand,))
        return cast_to(operand, node.type)

    # -- conditions ---------------------------------------------------------------------------------------------

    def condition(self, node: ast.Node, scope: Scope, what: str) -> Expr:
        """Bind an expression that must be BOOLEAN."""
        bound = self.bind(node, scope)
        if isinstance(bound.type, NullType):
            return Constant(BooleanType(), None)
        if not isinstance(bound.type, BooleanType):
            raise ValidationException(f"{what} must be a condition of type BOOLEAN, got {bound.type}")
        return bound


def cast_to(expr: Expr, target: DataType) -> Expr:
    """Cast an expression to another type. Constants are not folded here."""
    if expr.type.same_type(target):
        return expr if expr.type == target else replace(expr, type=target.with_nullability(expr.type.is_nullable))
    type_ = target.with_nullability(expr.type.is_nullable or isinstance(expr.type, NullType))
    if isinstance(expr, Constant) and expr.value is None:
        return Constant(type_.nullable(), None)
    return Call(type_, "CAST", (expr,))


def _types_text(arguments: Sequence[Expr]) -> str:
    return ", ".join(f"<{argument.type}>" for argument in arguments)


# -- constants --------------------------------------------------------------------------------------------------------


def constant(value: Any, type_: DataType | None = None) -> Expr:
    """Convert a Python value to a constant.

    >>> constant("abc").type, constant(3).type, constant(None).type
    (CHAR(3) NOT NULL, INT NOT NULL, NULL)
    """
    if type_ is not None:
        if value is None:
            return Constant(type_.nullable(), None)
        inferred = None if isinstance(type_, YearMonthIntervalType) else type_of(value)
        if inferred is not None and not inferred.same_type(type_):
            return cast_to(constant(value), type_)
        return Constant(type_, value)
    inferred = type_of(value)
    if inferred is None:
        raise ValidationException(
            f"{value!r} of type {type(value).__name__} cannot be used in an expression: use lit()"
        )
    if isinstance(value, (list, tuple)) and isinstance(inferred, ArrayType):
        items = [constant(item) for item in value]
        found = find_scalar_function("ARRAY")
        assert found is not None
        return Binder().call(found, items)
    return Constant(inferred, Decimal(value) if isinstance(inferred, DecimalType) else value)


def type_of(value: Any) -> DataType | None:  # noqa: C901 - a case for each type
    """Return the SQL type of a Python value in an expression."""
    match value:
        case None:
            return DataTypes.NULL()
        case bool():
            return BooleanType(_nullable=False)
        case int():
            if not -(2**63) <= value < 2**63:
                return DecimalType(len(str(abs(value))), 0, _nullable=False)
            small = -(2**31) <= value < 2**31
            return DataTypes.INT(nullable=False) if small else DataTypes.BIGINT(nullable=False)
        case float():
            return DataTypes.DOUBLE(nullable=False)
        case str():
            return CharType(len(value), _nullable=False) if value else VarCharType(_nullable=False)
        case bytes() | bytearray():
            return VarBinaryType(_nullable=False)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return DecimalType(max(len(digits), scale), scale, _nullable=False)
        case dt.datetime():
            zoned = value.tzinfo is not None
            return DataTypes.TIMESTAMP_LTZ(6, nullable=False) if zoned else DataTypes.TIMESTAMP(6, nullable=False)
        case dt.date():
            return DataTypes.DATE(nullable=False)
        case dt.time():
            return DataTypes.TIME(0, nullable=False)
        case dt.timedelta():
            return DayTimeIntervalType(_nullable=False)
        case list() | tuple():
            return ArrayType(_nullable=False)
    return None


# -- functions with special binding -----------------------------------------------------------------------------------


def _field_access(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    operand = binder.bind(node.arguments[0], scope)
    return row_field(operand, node.options[0])


def _item(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """Bind ``x[1]``: an element of an array or map, or a field of a row by name or position from 1."""
    collection, index = binder.bind_all(node.arguments, scope)
    if isinstance(collection.type, RowType) and isinstance(index, Constant):
        position = index.value - 1 if isinstance(index.value, int) else index.value
        return row_field(collection, position)
    return binder.function("ITEM", collection, index)


def _case(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """Bind CASE: check the conditions and cast the values to their common type."""
    arguments = list(node.arguments)
    bound: list[Expr] = []
    for position, argument in enumerate(arguments[:-1]):
        is_condition = position % 2 == 0
        bound.append(binder.condition(argument, scope, "WHEN") if is_condition else binder.bind(argument, scope))
    bound.append(binder.bind(arguments[-1], scope))
    found = find_scalar_function("CASE")
    assert found is not None
    call = binder.call(found, bound)
    assert isinstance(call, Call)
    values = [
        one if position % 2 == 0 and position < len(bound) - 1 else cast_to(one, call.type)
        for position, one in enumerate(call.operands)
    ]
    return replace(call, operands=tuple(values))


def _between(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    value, low, high = binder.bind_all(node.arguments, scope)
    return binder.function("AND", binder.function(">=", value, low), binder.function("<=", value, high))


def _row_of(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """Bind all columns as one named row, for functions of whole rows."""
    values = binder.bind_all(node.arguments, scope)
    fields = tuple(RowField(str(name), one.type) for name, one in zip(node.options, values, strict=True))
    return Call(RowType(fields, _nullable=False), "ROW", tuple(values))


def _rounded(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """Bind ROUND and TRUNCATE of a decimal. A constant number of digits determines the type."""
    arguments = binder.bind_all(node.arguments, scope)
    call = binder.function(node.name.upper(), *arguments)
    if not isinstance(call.type, DecimalType) or not isinstance(call, Call):
        return call
    count = _constant_integer(call.operands[1]) if len(call.operands) > 1 else 0
    return call if count is None else replace(call, type=rounded_type(call.type, count))


def _constant_integer(expr: Expr) -> int | None:
    if isinstance(expr, Constant) and isinstance(expr.value, int):
        return expr.value
    if isinstance(expr, Call) and expr.function == "NEGATE" and isinstance(expr.operands[0], Constant):
        return -int(expr.operands[0].value)
    return None


def _with_clauses(clauses: Callable[[tuple[Any, ...]], tuple[DataType | None, tuple[Any, ...]]]) -> Special:
    """Bind JSON functions, whose clauses become behaviours, as arguments or options."""

    def bind(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
        type_, behaviours = clauses(node.options)
        arguments = binder.bind_all(node.arguments, scope)
        call = binder.function(node.name.upper(), *arguments)
        assert isinstance(call, Call)
        return replace(call, type=call.type if type_ is None else type_, options=behaviours)

    return bind


def _timestamp_add(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    found = find_scalar_function("TIMESTAMPADD")
    assert found is not None
    call = binder.call(found, binder.bind_all(node.arguments, scope), node.options)
    assert isinstance(call, Call)
    type_ = sum_type(str(node.options[0]).upper(), call.operands[1].type)
    return replace(call, type=type_.with_nullability(call.type.is_nullable))


def _to_instant(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """Bind TO_TIMESTAMP_LTZ of a number, or of text with a pattern and a zone."""
    arguments = binder.bind_all(node.arguments, scope)
    of_text = bool(arguments) and is_character(arguments[0].type)
    return binder.function("$INSTANT OF TEXT" if of_text else "TO_TIMESTAMP_LTZ", *arguments)


def _plus(binder: Binder, node: ast.FunctionCall, scope: Scope) -> Expr:
    """``+`` in an expression, which also joins texts. SQL has ``||`` for that."""
    arguments = binder.bind_all(node.arguments, scope)
    if any(is_character(one.type) for one in arguments):
        return binder.function("||", *(cast_to(one, VarCharType()) for one in arguments))
    return binder.function("+", *arguments)


SPECIAL: dict[str, Special] = {
    "$PLUS": _plus,
    "ROUND": _rounded,
    "TRUNCATE": _rounded,
    "JSON_VALUE": _with_clauses(value_clauses),
    "JSON_QUERY": _with_clauses(query_clauses),
    "JSON_EXISTS": _with_clauses(lambda options: (None, exists_clause(options))),
    "JSON_OBJECT": _with_clauses(lambda options: (None, null_clause(options))),
    "JSON_ARRAY": _with_clauses(lambda options: (None, null_clause(options))),
    "TIMESTAMPADD": _timestamp_add,
    "TO_TIMESTAMP_LTZ": _to_instant,
    "$ROW_OF": _row_of,
    "FIELD": _field_access,
    "ITEM": _item,
    "CASE": _case,
    "IF": _case,
    "BETWEEN": _between,
}
"""Register functions here that need their arguments unbound."""
