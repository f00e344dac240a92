"""Subqueries: IN, EXISTS and scalar ones become joins (T34, T35, T77)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.table.types import BigIntType, BooleanType
from penstock.runtime.table.expressions import Call, Constant, CorrelRef, Expr, InputRef, shifted, transform, walk
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.joins import make_join
from penstock.table.plan.nodes.aggregate import AggregateRel, AggregateSpec
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.join import ANTI, INNER, LEFT, SEMI
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel
from penstock.table.plan.scope import Scope, ScopeColumn
from penstock.util.exceptions import TableException, ValidationException

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment

_COUNT = BigIntType(_nullable=False)
_ZERO = Constant(_COUNT, 0)
_TRUE = Constant(BooleanType(_nullable=False), value=True)


@dataclass(slots=True)
class Decorrelated:
    """An inner relation without references to the outer one, and the conditions between the two.

    Conditions are over the inner relation's columns; references to the outer one are still CorrelRefs.
    """

    relation: Rel
    conditions: list[Expr]


class SubqueryPlanner:
    """Converts subqueries of a WHERE clause or a SELECT list to joins."""

    def __init__(self, t_env: TableEnvironment | None) -> None:
        self._t_env = t_env

    # -- WHERE --------------------------------------------------------------------------------------------------

    def filter(self, relation: Rel, scope: Scope, binder: Binder, node: ast.Node, what: str) -> tuple[Rel, Scope]:
        """Keep the rows that satisfy a condition."""
        plain: list[ast.Node] = []
        for part in conjuncts(node):
            subquery, negated = _predicate(part)
            if subquery is None:
                plain.append(part)
            else:
                relation = self._semi_join(relation, scope, binder, subquery, negated=negated)
        width = len(relation.fields)
        for part in plain:
            relation, wider, inner = self.scalars(relation, scope, binder, [part])
            relation = build.filter_rows(relation, inner.condition(part, wider, what))
        if len(relation.fields) > width:
            relation = build.keep_columns(relation, range(width))
        columns = [
            ScopeColumn(field, column.qualifier) for field, column in zip(relation.fields, scope.columns, strict=False)
        ]
        return relation, Scope(columns, scope.outer, scope.style)

    def _semi_join(self, relation: Rel, scope: Scope, binder: Binder, subquery: ast.Subquery, *, negated: bool) -> Rel:
        inner = decorrelate(subquery.query(scope))
        width = len(relation.fields)
        condition: list[Expr] = [_between(one, width) for one in inner.conditions]
        if subquery.kind == "IN":
            outputs = len(inner.relation.fields) - _hidden(inner.relation)
            if len(subquery.operands) != outputs:
                raise ValidationException(
                    f"SQL validation failed. IN compares {len(subquery.operands)} values with {outputs} columns"
                )
            if outputs > 1 and subquery.operator != "=":
                raise TableException("rows of several columns are compared with IN, = SOME and <> ALL only")
            for index, operand in enumerate(subquery.operands):
                left = binder.bind(operand, scope)
                right = InputRef(inner.relation.fields[index].type, width + index)
                condition.append(_comparison(binder, subquery.operator, left, right, negated=negated))
        return make_join(relation, inner.relation, ANTI if negated else SEMI, conjunction(condition))

    # -- scalar subqueries --------------------------------------------------------------------------------------

    def scalars(
        self, relation: Rel, scope: Scope, binder: Binder, nodes: Sequence[ast.Node]
    ) -> tuple[Rel, Scope, Binder]:
        """Join scalar subqueries of expressions, as columns after those of the relation."""
        found: list[ast.Subquery] = []
        for node in nodes:
            found += [one for one in ast.walk(node) if isinstance(one, ast.Subquery) and one not in found]
        if not found:
            return relation, scope, binder
        known: list[tuple[ast.Subquery, Expr]] = []
        for subquery in found:
            if subquery.kind == "SCALAR":
                relation, value = _with_scalar(relation, subquery.query(scope))
            else:
                relation, value = self._truth(relation, scope, binder, subquery)
            known.append((subquery, value))
        columns = [
            *scope.columns,
            *(ScopeColumn(field, ("$subquery",)) for field in relation.fields[len(scope.columns) :]),
        ]

        def intercept(node: ast.Node, _: Scope) -> Expr | None:
            return next((ref for one, ref in known if one == node), None) if isinstance(node, ast.Subquery) else None

        wider = Scope(columns, scope.outer, scope.style)
        return relation, wider, Binder(binder.user_functions, binder.subqueries, [intercept, *binder.intercept])

    def _truth(self, relation: Rel, scope: Scope, binder: Binder, subquery: ast.Subquery) -> tuple[Rel, Expr]:
        """IN or EXISTS as a value: rows are counted, for IN also those that are equal and those that are not NULL."""
        inner = subquery.query(scope)
        if subquery.kind == "EXISTS":
            relation, rows = _with_count(relation, inner)
            return relation, binder.function(">", rows, _ZERO)
        if len(subquery.operands) != 1 or len(inner.fields) != 1 or subquery.operator != "=":
            raise TableException("IN with several columns, SOME and ALL are supported as conditions of WHERE only")
        left = binder.bind(subquery.operands[0], scope)
        relation, equal = _with_count(relation, _equal_rows(binder, inner, left))
        contained = binder.function(">", equal, _ZERO)
        if not left.type.is_nullable and not inner.fields[0].type.is_nullable:
            return relation, contained
        relation, rows = _with_count(relation, inner)
        relation, present = _with_count(relation, _not_null_rows(inner))
        truth = BooleanType()
        cases = [
            (binder.function("=", rows, _ZERO), Constant(truth, value=False)),
            (contained, Constant(truth, value=True)),
            (Call(BooleanType(_nullable=False), "IS NULL", (left,)), Constant(truth, None)),
            (binder.function("<", present, rows), Constant(truth, None)),
        ]
        operands = [one for case in cases for one in case]
        return relation, Call(truth, "CASE", (*operands, Constant(truth, value=False)))


def _with_scalar(relation: Rel, query: Rel) -> tuple[Rel, Expr]:
    """Join the only value of a query; it is the column after those of the relation."""
    inner = decorrelate(query)
    if len(inner.relation.fields) - _hidden(inner.relation) != 1:
        raise ValidationException("SQL validation failed. A scalar subquery must have one column")
    width = len(relation.fields)
    default = _value_of_no_rows(query) if inner.conditions else None
    if not _is_single(query):
        inner = _single_value(inner)
    condition = conjunction([_between(one, width) for one in inner.conditions])
    relation = make_join(relation, inner.relation, LEFT, condition)
    value: Expr = InputRef(relation.fields[width].type, width)
    if default is not None and not inner.relation.fields[0].type.is_nullable:
        value = Call(default.type, "COALESCE", (value, default))
    return relation, value


def _with_count(relation: Rel, query: Rel) -> tuple[Rel, Expr]:
    """Join the number of a query's rows."""
    width = len(relation.fields)
    relation, _ = _with_scalar(relation, _count(query))
    return relation, Call(_COUNT, "COALESCE", (InputRef(relation.fields[width].type, width), _ZERO))


def join_lateral(relation: Rel, query: Rel, *, outer: bool) -> Rel:
    """LATERAL (SELECT ...): the rows that the query has for each row of the relation."""
    inner = decorrelate(query)
    width = len(relation.fields)
    condition = conjunction([_between(one, width) for one in inner.conditions])
    joined = make_join(relation, inner.relation, LEFT if outer else INNER, condition)
    hidden = _hidden(inner.relation)
    return build.keep_columns(joined, range(len(joined.fields) - hidden)) if hidden else joined


def _predicate(node: ast.Node) -> tuple[ast.Subquery | None, bool]:
    """Return a subquery that is itself a condition, and whether it is negated."""
    negated = False
    while isinstance(node, ast.FunctionCall) and node.name == "NOT":
        negated, node = not negated, node.arguments[0]
    if isinstance(node, ast.Subquery) and node.kind in ("IN", "EXISTS"):
        return node, negated
    return None, False


def conjuncts(node: ast.Node) -> list[ast.Node]:
    """Return the conditions joined by AND."""
    if isinstance(node, ast.FunctionCall) and node.name == "AND":
        return [one for argument in node.arguments for one in conjuncts(argument)]
    return [node]


def split(expr: Expr) -> list[Expr]:
    """Return the bound conditions joined by AND."""
    if isinstance(expr, Call) and expr.function == "AND":
        return [one for operand in expr.operands for one in split(operand)]
    return [expr]


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """Join conditions with AND."""
    if not conditions:
        return _TRUE
    if len(conditions) == 1:
        return conditions[0]
    nullable = any(one.type.is_nullable for one in conditions)
    return Call(BooleanType(_nullable=nullable), "AND", tuple(conditions))


# -- references to the outer query ------------------------------------------------------------------------------------


def decorrelate(rel: Rel) -> Decorrelated:
    """Extract conditions on outer columns from an inner relation. Columns they need are added after the others."""
    if not _is_correlated(rel):
        return Decorrelated(rel, [])
    match rel:
        case FilterRel():
            below = decorrelate(rel.input)
            own = [one for one in split(rel.condition) if not _has_correlation(one)]
            outer = [one for one in split(rel.condition) if _has_correlation(one)]
            relation = build.filter_rows(below.relation, conjunction(own)) if own else below.relation
            return Decorrelated(relation, [*below.conditions, *outer])
        case ProjectRel():
            return _through_projection(rel)
        case AggregateRel():
            return _through_aggregate(rel)
    raise TableException("the query refers to an outer table in a way that is not supported: use a join")


def _through_projection(rel: ProjectRel) -> Decorrelated:
    if any(map(_has_correlation, rel.expressions)):
        raise TableException("an outer column in the SELECT list of a subquery is not supported: use a join")
    below = decorrelate(rel.input)
    expressions = list(rel.expressions)
    names = list(rel.names)

    def place(index: int) -> int:
        ref = InputRef(below.relation.fields[index].type, index)
        expressions.append(ref)
        names.append(f"$c{len(names)}")
        return len(expressions) - 1

    conditions = [shifted(one, place) for one in below.conditions]
    return Decorrelated(build.project(below.relation, expressions, names), conditions)


def _through_aggregate(rel: AggregateRel) -> Decorrelated:
    """Add columns that are compared with outer ones to the group keys."""
    below = decorrelate(rel.input)
    added: list[int] = []
    for condition in below.conditions:
        if not isinstance(condition, Call) or condition.function not in ("=", "IS NOT DISTINCT FROM"):
            raise TableException("an aggregate in a subquery may be compared with outer columns by equality only")
        added += [node.index for node in walk(condition) if isinstance(node, InputRef) and node.index not in added]
    keys = [*rel.keys, *added]
    old_keys, calls = len(rel.keys), len(rel.calls)
    key_fields = [*rel.fields[:old_keys], *(Field(f"$c{index}", below.relation.fields[index].type) for index in added)]
    aggregate = AggregateRel((*key_fields, *rel.fields[old_keys:]), below.relation, tuple(keys), rel.calls)
    # The original columns, then the new keys.
    order = [*range(old_keys), *range(len(keys), len(keys) + calls), *range(old_keys, len(keys))]
    relation = build.keep_columns(aggregate, order, [aggregate.fields[index].name for index in order])
    moved = {index: old_keys + calls + position for position, index in enumerate(added)}
    return Decorrelated(relation, [shifted(one, lambda index: moved[index]) for one in below.conditions])


def _is_correlated(rel: Rel) -> bool:
    own = [rel.condition] if isinstance(rel, FilterRel) else rel.expressions if isinstance(rel, ProjectRel) else ()
    return any(map(_has_correlation, own)) or any(map(_is_correlated, rel.inputs))


def _has_correlation(expr: Expr) -> bool:
    return any(isinstance(node, CorrelRef) for node in walk(expr))


def _hidden(rel: Rel) -> int:
    """Return the number of columns that were added for conditions."""
    return sum(1 for field in rel.fields if field.name.startswith("$c") and field.name[2:].isdigit())


def _between(condition: Expr, width: int) -> Expr:
    """Convert a condition to one over both sides of a join, outer columns first."""

    def place(node: Expr) -> Expr | None:
        if isinstance(node, InputRef):
            return InputRef(node.type, node.index + width)
        if isinstance(node, CorrelRef):
            if node.depth > 1:
                return CorrelRef(node.type, node.index, node.depth - 1)
            return InputRef(node.type, node.index)
        return None

    return transform(condition, place)


def _is_single(rel: Rel) -> bool:
    """Whether a relation never has more than one row."""
    while isinstance(rel, ProjectRel):
        rel = rel.input
    return isinstance(rel, AggregateRel) and not rel.keys


def _single_value(inner: Decorrelated) -> Decorrelated:
    """Return the value of the only row for each outer row. More than one row fails the job."""
    rel = inner.relation
    keys: list[int] = []
    for condition in inner.conditions:
        if not isinstance(condition, Call) or condition.function not in ("=", "IS NOT DISTINCT FROM"):
            raise TableException("a scalar subquery may be compared with outer columns by equality only: use a join")
        keys += [node.index for node in walk(condition) if isinstance(node, InputRef) and node.index not in keys]
    type_ = rel.fields[0].type.nullable()
    value = Field(rel.fields[0].name, type_)
    spec = AggregateSpec("SINGLE_VALUE", (0,), type_)
    grouped: Rel = AggregateRel((*(rel.fields[index] for index in keys), value), rel, tuple(keys), (spec,))
    if not keys:
        return Decorrelated(grouped, [])
    grouped = build.keep_columns(grouped, [len(keys), *range(len(keys))])
    return Decorrelated(grouped, [shifted(one, lambda index: keys.index(index) + 1) for one in inner.conditions])


def _value_of_no_rows(rel: Rel) -> Expr | None:
    """Return the value of a scalar subquery without GROUP BY for no rows, unless it is NULL: COUNT is 0."""
    if isinstance(rel, AggregateRel) and not rel.keys:
        rel = build.keep_columns(rel, range(len(rel.fields)))
    if not isinstance(rel, ProjectRel) or not isinstance(rel.input, AggregateRel) or rel.input.keys:
        return None
    calls = rel.input.calls

    def default(node: Expr) -> Expr | None:
        if not isinstance(node, InputRef):
            return None
        return Constant(node.type, 0 if calls[node.index].function == "COUNT" else None)

    return transform(rel.expressions[0], default)


def _comparison(binder: Binder, operator: str, left: Expr, right: Expr, *, negated: bool) -> Expr:
    """Return the comparison of IN. NOT IN holds only if it is FALSE, so not for NULL (T35)."""
    compared = binder.function(operator, left, right)
    if not negated or not compared.type.is_nullable:
        return compared
    return Call(BooleanType(_nullable=False), "IS NOT FALSE", (compared,))


# -- IN and EXISTS as values ------------------------------------------------------------------------------------------


def _count(relation: Rel) -> Rel:
    """How many rows a relation has."""
    spec = AggregateSpec("COUNT", (), _COUNT)
    return AggregateRel((Field("$count", _COUNT),), relation, (), (spec,))


def _equal_rows(binder: Binder, relation: Rel, left: Expr) -> Rel:
    """The rows of a subquery whose first column equals an outer value."""

    def outer(node: Expr) -> Expr | None:
        return CorrelRef(node.type, node.index) if isinstance(node, InputRef) else None

    condition = binder.function("=", transform(left, outer), InputRef(relation.fields[0].type, 0))
    return build.filter_rows(relation, condition)


def _not_null_rows(relation: Rel) -> Rel:
    ref = InputRef(relation.fields[0].type, 0)
    return build.filter_rows(relation, Call(BooleanType(_nullable=False), "IS NOT NULL", (ref,)))
