"""Converts sqlglot's trees to unresolved expressions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.core.table.type_rules import MAX_PRECISION
from penstock.core.table.types import DataType, DataTypes, DayTimeIntervalType, YearMonthIntervalType
from penstock.runtime.table.text import parse_date, parse_time, parse_timestamp
from penstock.table.plan import ast
from penstock.table.sql.dialect import parse
from penstock.table.sql.intervals import day_time_interval, year_month_interval
from penstock.table.type_text import parse_type
from penstock.util.exceptions import SqlParserException, ValidationException

_BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=",
    "GT": ">", "GTE": ">=", "And": "AND", "Or": "OR", "DPipe": "||", "NullSafeEQ": "IS NOT DISTINCT FROM",
    "NullSafeNEQ": "IS DISTINCT FROM", "SimilarTo": "SIMILAR TO", "IntDiv": "/",
}  # fmt: skip
_CODE_POINT = re.compile(r"\\(?:([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6}))")
_NEGATED = {"EQ": "<>", "NEQ": "=", "LT": ">=", "LTE": ">", "GT": "<=", "GTE": "<"}


def parse_expression(text: str) -> ast.Node:
    """Parse an expression in SQL."""
    tree = parse(f"SELECT {text}")
    expressions = tree.expressions
    if len(expressions) != 1 or tree.args.get("from_") is not None:
        raise SqlParserException(f"SQL parse failed. '{text}' is not an expression")
    return ExpressionReader(None).read(expressions[0])


class ExpressionReader:
    """Reads expressions. ``query`` creates the relation of a subquery."""

    def __init__(self, query: Callable[[Any], Callable[[Any], Any]] | None) -> None:
        self._query = query
        self.windows: dict[str, Any] = {}

    def read(self, tree: Any) -> ast.Node:
        """Return the unresolved form of a tree."""
        kind = type(tree).__name__
        if kind in _NEGATED and type(tree.expression).__name__ in ("Any", "All"):
            return self._quantified(tree)
        if kind in _BINARY:
            call = ast.FunctionCall(_BINARY[kind], (self.read(tree.this), self.read(tree.expression)))
            return ast.FunctionCall("NOT", (call,)) if tree.args.get("negate") else call
        method = getattr(self, f"_read_{kind.lower()}", None)
        if method is None:
            raise SqlParserException(f"SQL parse failed. '{tree.sql()}' is not supported in an expression")
        node: ast.Node = method(tree)
        return ast.FunctionCall("NOT", (node,)) if tree.args.get("negate") else node

    def read_all(self, trees: Any) -> tuple[ast.Node, ...]:
        """Return the unresolved form of several trees."""
        return tuple(self.read(tree) for tree in trees)

    # -- names and constants ------------------------------------------------------------------------------------

    def _read_column(self, tree: Any) -> ast.Node:
        parts = [part.name for part in tree.parts]
        if parts[-1] == "*" or type(tree.this).__name__ == "Star":
            return ast.Star(tuple(parts[:-1]))
        return ast.Ref(tuple(parts))

    def _read_dot(self, tree: Any) -> ast.Node:
        left = self.read(tree.this)
        name = tree.expression.name
        if type(tree.expression).__name__ == "Anonymous":  # catalog.database.function(...)
            call = self.read(tree.expression)
            assert isinstance(call, ast.FunctionCall)
            return ast.FunctionCall(".".join([*getattr(left, "path", ()), call.name]), call.arguments)
        if isinstance(left, ast.Ref):
            return ast.Ref((*left.path, name))
        return ast.FunctionCall("FIELD", (left,), options=(name,))

    def _read_identifier(self, tree: Any) -> ast.Node:
        return ast.Ref((tree.name,))

    def _read_var(self, tree: Any) -> ast.Node:
        return ast.Ref((tree.name,))

    def _read_star(self, tree: Any) -> ast.Node:
        return ast.Star()

    def _read_literal(self, tree: Any) -> ast.Node:
        if tree.is_string:
            return ast.Literal(tree.this)
        text = tree.this
        if "e" in text.lower():
            return ast.Literal(float(text), DataTypes.DOUBLE(nullable=False))
        if "." not in text:
            return ast.Literal(int(text))
        scale = len(text) - text.index(".") - 1  # the digits as they are written count: 0.5 is a DECIMAL(2, 1)
        fits = len(text) - 1 <= MAX_PRECISION
        return ast.Literal(Decimal(text), DataTypes.DECIMAL(len(text) - 1, scale, nullable=False) if fits else None)

    def _read_hexstring(self, tree: Any) -> ast.Node:
        data = bytes.fromhex(tree.this if not tree.this.startswith("0x") else tree.this[2:])
        return ast.Literal(data, DataTypes.BINARY(len(data), nullable=False) if data else None)

    def _read_unicodestring(self, tree: Any) -> ast.Node:
        return ast.Literal(_CODE_POINT.sub(lambda found: chr(int(found[1] or found[2], 16)), str(tree.this)))

    def _read_boolean(self, tree: Any) -> ast.Node:
        return ast.Literal(bool(tree.this))

    def _read_null(self, tree: Any) -> ast.Node:
        return ast.Literal(None)

    def _read_cast(self, tree: Any) -> ast.Node:
        """Read ``DATE '2024-01-01'`` and similar: sqlglot's form of a type before a text."""
        text, kind = tree.this.name, tree.args["to"].this.name
        try:
            if kind == "DATE":
                return ast.Literal(parse_date(text), DataTypes.DATE(nullable=False))
            if kind == "TIME":
                return ast.Literal(parse_time(text), DataTypes.TIME(_digits(text), nullable=False))
            if kind in ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"):
                return ast.Literal(parse_timestamp(text, 6), DataTypes.TIMESTAMP(_digits(text), nullable=False))
        except ValueError as error:
            raise SqlParserException(f"SQL parse failed. {error}") from None
        raise SqlParserException(f"SQL parse failed. {kind} '{text}' is not a literal")

    def _read_interval(self, tree: Any) -> ast.Node:
        return interval_literal(tree)

    # -- operators ----------------------------------------------------------------------------------------------

    def _read_paren(self, tree: Any) -> ast.Node:
        return self.read(tree.this)

    def _read_neg(self, tree: Any) -> ast.Node:
        operand = self.read(tree.this)
        if isinstance(operand, ast.Literal) and isinstance(operand.value, (int, float, Decimal)):
            return ast.Literal(-operand.value, operand.type)
        return ast.FunctionCall("NEGATE", (operand,))

    def _read_not(self, tree: Any) -> ast.Node:
        inner = tree.this
        kind = type(inner).__name__
        if kind == "Is":
            return self._is(inner, negated=True)
        return ast.FunctionCall("NOT", (self.read(inner),))

    def _read_is(self, tree: Any) -> ast.Node:
        return self._is(tree, negated=False)

    def _is(self, tree: Any, *, negated: bool) -> ast.Node:
        what = type(tree.expression).__name__
        words = "IS NOT " if negated else "IS "
        if what == "Null":
            return ast.FunctionCall(words + "NULL", (self.read(tree.this),))
        if what == "Boolean":
            return ast.FunctionCall(words + ("TRUE" if tree.expression.this else "FALSE"), (self.read(tree.this),))
        name = tree.expression.name.upper()
        if name == "UNKNOWN":
            return ast.FunctionCall(words + "UNKNOWN", (self.read(tree.this),))
        if what in ("JSON", "Json"):
            call = ast.FunctionCall("IS JSON", (self.read(tree.this),), options=((tree.expression.this or "VALUE"),))
            return ast.FunctionCall("NOT", (call,)) if negated else call
        raise SqlParserException(f"SQL parse failed. '{tree.sql()}' is not supported")

    def _read_between(self, tree: Any) -> ast.Node:
        arguments = (self.read(tree.this), self.read(tree.args["low"]), self.read(tree.args["high"]))
        if tree.args.get("symmetric"):
            value, low, high = arguments
            both = (ast.FunctionCall("LEAST", (low, high)), ast.FunctionCall("GREATEST", (low, high)))
            return ast.FunctionCall("BETWEEN", (value, *both))
        return ast.FunctionCall("BETWEEN", arguments)

    def _read_overlaps(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("OVERLAPS", (*self._row(tree.this), *self._row(tree.expression)))

    def _read_in(self, tree: Any) -> ast.Node:
        query = tree.args.get("query")
        operand = tree.this
        if query is not None:
            operands = self._row(operand)
            return ast.Subquery("IN", self._subquery(query), operands)
        return ast.FunctionCall("IN", (self.read(operand), *self.read_all(tree.expressions)))

    def _quantified(self, tree: Any) -> ast.Node:
        """``x > SOME (SELECT ...)``. With ALL, no row may fulfil the negated comparison."""
        kind, right = type(tree).__name__, tree.expression
        every = type(right).__name__ == "All"
        operator = _NEGATED[kind] if every else _BINARY[kind]
        subquery = ast.Subquery("IN", self._subquery(right.this), self._row(tree.this), operator)
        return ast.FunctionCall("NOT", (subquery,)) if every else subquery

    def _row(self, tree: Any) -> tuple[ast.Node, ...]:
        return self.read_all(tree.expressions) if type(tree).__name__ == "Tuple" else (self.read(tree),)

    def _read_exists(self, tree: Any) -> ast.Node:
        return ast.Subquery("EXISTS", self._subquery(tree.this))

    def _read_subquery(self, tree: Any) -> ast.Node:
        return ast.Subquery("SCALAR", self._subquery(tree))

    def _read_select(self, tree: Any) -> ast.Node:
        return ast.Subquery("SCALAR", self._subquery(tree))

    def _subquery(self, tree: Any) -> Callable[[Any], Any]:
        if self._query is None:
            raise ValidationException("a subquery is not allowed here")
        return self._query(tree)

    def _read_like(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("LIKE", (self.read(tree.this), self.read(tree.expression)))

    def _read_escape(self, tree: Any) -> ast.Node:
        like = tree.this
        arguments = (self.read(like.this), self.read(like.expression), self.read(tree.expression))
        call = ast.FunctionCall(_BINARY.get(type(like).__name__, "LIKE"), arguments)
        return ast.FunctionCall("NOT", (call,)) if like.args.get("negate") else call

    def _read_case(self, tree: Any) -> ast.Node:
        operand = None if tree.this is None else self.read(tree.this)
        arguments: list[ast.Node] = []
        for branch in tree.args["ifs"]:
            condition = self.read(branch.this)
            if operand is not None:
                condition = ast.FunctionCall("=", (operand, condition))
            arguments += [condition, self.read(branch.args["true"])]
        default = tree.args.get("default")
        arguments.append(ast.Literal(None) if default is None else self.read(default))
        return ast.FunctionCall("CASE", tuple(arguments))

    def _read_bracket(self, tree: Any) -> ast.Node:
        base = tree.this
        name = base.name.upper() if type(base).__name__ in ("Column", "Var", "Identifier") else ""
        if name == "MAP" and type(base).__name__ == "Column" and not base.args.get("table"):
            return ast.FunctionCall("MAP", self.read_all(tree.expressions))
        return ast.FunctionCall("ITEM", (self.read(base), self.read(tree.expressions[0])))

    def _read_array(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("ARRAY", self.read_all(tree.expressions))

    def _read_tuple(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("ROW", self.read_all(tree.expressions))

    def _read_struct(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("ROW", self.read_all(tree.expressions))

    def _read_alias(self, tree: Any) -> ast.Node:
        return ast.Named(self.read(tree.this), (tree.alias,))

    def _read_distinct(self, tree: Any) -> ast.Node:
        raise SqlParserException("SQL parse failed. DISTINCT is only allowed in an aggregate")

    def _read_ordered(self, tree: Any) -> ast.Node:
        return self.sort_item(tree)

    def sort_item(self, tree: Any) -> ast.SortItem:
        """Read an item of ORDER BY."""
        descending = bool(tree.args.get("desc"))
        nulls_first = bool(tree.args.get("nulls_first"))
        default_first = not descending  # NULL is the smallest value (T36)
        nulls_last = None if nulls_first == default_first else not nulls_first
        return ast.SortItem(self.read(tree.this), descending, nulls_last)

    # -- functions ----------------------------------------------------------------------------------------------

    def _read_anonymous(self, tree: Any) -> ast.Node:
        name = tree.this if isinstance(tree.this, str) else tree.this.name
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, tree.expressions)
        arguments: list[ast.Node] = []
        distinct = False
        for argument in tree.expressions:
            kind = type(argument).__name__
            if kind == "Distinct":
                distinct = True
                arguments += self.read_all(argument.expressions)
            elif kind == "Order":
                arguments.append(self.read(argument.this))
            else:
                arguments.append(self.read(argument))
        return ast.FunctionCall(name, tuple(arguments), distinct=distinct)

    def _read_filter(self, tree: Any) -> ast.Node:
        call = self.read(tree.this)
        assert isinstance(call, ast.FunctionCall)
        condition = self.read(tree.expression.this)
        return ast.FunctionCall(call.name, call.arguments, call.distinct, condition, call.options)

    def _read_window(self, tree: Any) -> ast.Node:
        spec = tree
        if tree.args.get("alias") is not None and not tree.args.get("partition_by") and not tree.args.get("order"):
            named = self.windows.get(tree.args["alias"].name)
            if named is None:
                raise ValidationException(f"Window '{tree.args['alias'].name}' not found")
            spec = named
        call = self.read(tree.this)
        order = spec.args.get("order")
        items = () if order is None else tuple(self.sort_item(one) for one in order.expressions)
        partition = self.read_all(spec.args.get("partition_by") or ())
        return ast.Over(call, partition, items, self._frame(spec.args.get("spec")))

    def _frame(self, spec: Any) -> ast.Frame | None:
        if spec is None:
            return None
        start, end = spec.args.get("start"), spec.args.get("end")
        if spec.args.get("start_side") == "FOLLOWING" or spec.args.get("end_side") == "PRECEDING":
            raise ValidationException("An OVER window must begin at or before the current row, and end at or after it.")
        last: ast.Node | None = None
        if end == "UNBOUNDED":
            last = ast.Literal(None)
        elif end not in (None, "CURRENT ROW"):
            last = self.read(end)
        return ast.Frame(rows=spec.args["kind"].upper() == "ROWS", start=self._bound(start), end=last)

    def _bound(self, bound: Any) -> ast.Node | None:
        if bound == "UNBOUNDED" or bound is None:
            return None
        if bound == "CURRENT ROW":
            return ast.Literal(0)
        return self.read(bound)

    def _read_kwarg(self, tree: Any) -> ast.Node:
        return ast.Named(self.read(tree.expression), (tree.this.name,))

    def _read_atindex(self, tree: Any) -> ast.Node:
        return ast.FunctionCall("ITEM", (self.read(tree.this), self.read(tree.expression)))


def _text(tree: Any) -> str:
    return str(tree.name)


def _cast(reader: ExpressionReader, arguments: list[Any], *, or_null: bool) -> ast.Node:
    target: DataType = parse_type(_text(arguments[1]))
    return ast.Cast(reader.read(arguments[0]), target, or_null)


def _with_option(name: str) -> Callable[[ExpressionReader, list[Any]], ast.Node]:
    """Return the reader of a form whose first argument is a word."""

    def read(reader: ExpressionReader, arguments: list[Any]) -> ast.Node:
        return ast.FunctionCall(name, reader.read_all(arguments[1:]), options=(_text(arguments[0]),))

    return read


def _trim(reader: ExpressionReader, arguments: list[Any]) -> ast.Node:
    text, *rest = reader.read_all(arguments[1:])
    return ast.FunctionCall("TRIM", (text, rest[0] if rest else ast.Literal(" ")), options=(_text(arguments[0]),))


_SPECIAL: dict[str, Callable[[ExpressionReader, list[Any]], ast.Node]] = {
    "$CAST": lambda reader, arguments: _cast(reader, arguments, or_null=False),
    "$TRY_CAST": lambda reader, arguments: _cast(reader, arguments, or_null=True),
    "$EXTRACT": _with_option("EXTRACT"),
    "$FLOOR TO": _with_option("FLOOR TO"),
    "$CEIL TO": _with_option("CEIL TO"),
    "$TIMESTAMPADD": _with_option("TIMESTAMPADD"),
    "$TIMESTAMPDIFF": _with_option("TIMESTAMPDIFF"),
    "$TRIM": _trim,
    **{
        f"${name}": _with_option(name)
        for name in (
            "JSON_VALUE",
            "JSON_QUERY",
            "JSON_EXISTS",
            "JSON_OBJECT",
            "JSON_ARRAY",
            "JSON_OBJECTAGG",
            "JSON_ARRAYAGG",
        )
    },
}


def interval_literal(tree: Any) -> ast.Literal:
    """Read ``INTERVAL '1 02:03' DAY TO MINUTE``."""
    unit = tree.args.get("unit")
    if unit is None or tree.this is None:
        raise SqlParserException(
            f"SQL parse failed. '{tree.sql()}' is not an interval: write, for example, INTERVAL '10' SECOND"
        )
    units = [unit.name] if type(unit).__name__ != "IntervalSpan" else [unit.this.name, unit.expression.name]
    text, names = tree.this.name, [one.upper().removesuffix("S") for one in units]
    if type(tree.this).__name__ == "Neg":
        text = "-" + tree.this.this.name
    if names[0] in ("YEAR", "MONTH", "QUARTER"):
        months = year_month_interval(text, names)
        return ast.Literal(months, YearMonthIntervalType(_nullable=False))
    value: dt.timedelta = day_time_interval(text, names)
    return ast.Literal(value, DayTimeIntervalType(_nullable=False))


def _digits(text: str) -> int:
    return len(text.rpartition(".")[2]) if "." in text else 0
