"""OVER: functions over windows of rows in a SELECT list (T80 to T83)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from penstock.core.table.types import BigIntType, DataType, DoubleType
from penstock.runtime.table.aggregates.registry import find_aggregate
from penstock.runtime.table.expressions import Expr, InputRef
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.rank import FrameSpec, OverRel, OverSpec, SortKey
from penstock.table.plan.scope import Scope, ScopeColumn
from penstock.util.exceptions import TableException, ValidationException

RANKING = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE")


def with_over_windows(
    relation: Rel, scope: Scope, binder: Binder, nodes: Sequence[ast.Node]
) -> tuple[Rel, Scope, Binder]:
    """Compute all OVER calls of some expressions, as columns after those of the relation."""
    calls: list[ast.Over] = []
    for node in nodes:
        calls += [one for one in ast.walk(node) if isinstance(one, ast.Over) and one not in calls]
    if not calls:
        return relation, scope, binder
    first = calls[0]
    if any((one.partition, one.order, one.frame) != (first.partition, first.order, first.frame) for one in calls):
        raise TableException(
            "Over Agg: Unsupported use of OVER windows. All aggregates must be computed on the same window."
        )
    columns = _Columns(relation)
    partition = [columns.place(binder.bind(node, scope)) for node in first.partition]
    order = []
    for item in first.order:
        nulls_last = item.descending if item.nulls_last is None else item.nulls_last
        order.append(SortKey(columns.place(binder.bind(item.operand, scope)), item.descending, nulls_last))
    specs = [_call(one, binder, scope, columns) for one in calls]
    source = columns.projected()
    window = OverSpec(tuple(partition), tuple(order), _frame(first.frame, specs))
    added = [Field(f"w0$o{index}", spec.type) for index, spec in enumerate(specs)]
    result = OverRel((*source.fields, *added), source, window, tuple(specs))
    start = len(source.fields)
    known = list(zip(calls, (InputRef(spec.type, start + index) for index, spec in enumerate(specs)), strict=True))

    def intercept(node: ast.Node, _: Scope) -> Expr | None:
        return next((ref for call, ref in known if call == node), None) if isinstance(node, ast.Over) else None

    extra = [ScopeColumn(field, ("$over",)) for field in result.fields[len(scope.columns) :]] if scope.columns else []
    wider = Scope([*scope.columns, *extra], scope.outer, scope.style, scope.correlated)
    return result, wider, Binder(binder.user_functions, binder.subqueries, [intercept, *binder.intercept])


class _Columns:
    """The columns of a relation, and computed ones after them."""

    def __init__(self, relation: Rel) -> None:
        self._relation = relation
        self._expressions: list[Expr] = [InputRef(one.type, index) for index, one in enumerate(relation.fields)]

    def place(self, expr: Expr) -> int:
        """Return the position of an expression."""
        if expr not in self._expressions:
            self._expressions.append(expr)
        return self._expressions.index(expr)

    def projected(self) -> Rel:
        """Return the relation with all columns."""
        known = len(self._relation.fields)
        if len(self._expressions) == known:
            return self._relation
        names = [*self._relation.names, *(f"$o{index}" for index in range(len(self._expressions) - known))]
        return build.project(self._relation, self._expressions, names)


def _call(over: ast.Over, binder: Binder, scope: Scope, columns: _Columns) -> AggregateSpec:
    call = over.call
    if not isinstance(call, (ast.FunctionCall, ast.UserFunctionCall)):
        raise ValidationException("OVER needs a function before it")
    arguments = [binder.bind(one, scope) for one in call.arguments if not isinstance(one, ast.Star)]
    places = tuple(columns.place(one) for one in arguments)
    if isinstance(call, ast.UserFunctionCall):
        return AggregateSpec(call.function, places, call.function.result_type, call.distinct)
    name = call.name.upper()
    types = [one.type for one in arguments]
    result = _result_type(name, types)
    if result is None:
        user = binder.user_functions(call.name)
        if user is None or not user.is_aggregate:
            raise ValidationException(
                f"No match found for function signature {call.name}({', '.join(map(str, types))})"
            )
        return AggregateSpec(user, places, user.result_type, call.distinct)
    return AggregateSpec(name, places, result, call.distinct, options=call.options)


def _result_type(name: str, types: Sequence[DataType]) -> DataType | None:
    if name in ("PERCENT_RANK", "CUME_DIST"):
        return DoubleType(_nullable=False)
    if name in RANKING:
        return BigIntType(_nullable=False)
    if name in ("LAG", "LEAD"):
        return types[0].nullable() if types else None
    definition = find_aggregate(name)
    return None if definition is None else definition.result_type(types)


def _frame(frame: ast.Frame | None, specs: Sequence[AggregateSpec]) -> FrameSpec:
    """Return the frame. The default is RANGE UNBOUNDED PRECEDING; functions that count rows use ROWS."""
    by_row = all(spec.function in (*RANKING, "LAG", "LEAD") for spec in specs)
    if frame is None:
        return FrameSpec(by_row, None)
    return FrameSpec(frame.rows, _preceding(frame), _following(frame))


def _preceding(frame: ast.Frame) -> int | None:
    if frame.start is None:
        return None
    value = getattr(frame.start, "value", None)
    if (frame.rows and isinstance(value, int)) or value == 0:
        return int(value or 0)
    if isinstance(value, dt.timedelta) and not frame.rows:
        return value // dt.timedelta(milliseconds=1)
    raise ValidationException("the frame of an OVER window needs a number of rows or an interval")


def _following(frame: ast.Frame) -> int | None:
    if frame.end is None:
        return 0
    value = getattr(frame.end, "value", 0)
    if value is None or (frame.rows and isinstance(value, int)):
        return value
    raise ValidationException("after the current row, the frame of an OVER window must be a number of rows")


def has_over_or_subquery(node: ast.Node) -> bool:
    """Whether an expression has parts that are computed separately."""
    return any(isinstance(one, (ast.Over, ast.Subquery)) for one in ast.walk(node))


def bind_parts(node: ast.Node, binder: Binder, scope: Scope) -> None:
    """Bind the parts of aggregates inside OVER that can be bound."""
    for child in ast.children(node):
        if isinstance(child, (ast.Over, ast.Subquery, ast.Frame)) or has_over_or_subquery(child):
            bind_parts(child, binder, scope)
        elif isinstance(child, ast.SortItem):
            binder.bind(child.operand, scope)
        elif isinstance(node, ast.Over) and child is node.call:
            for argument in getattr(child, "arguments", ()):
                if not isinstance(argument, ast.Star):
                    binder.bind(argument, scope)
        else:
            binder.bind(child, scope)
