"""Builds joins: conditions, USING, outer joins (T70 to T74)."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.table.types import BooleanType
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef
from penstock.table.connectors.base import TableSource
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder, cast_to
from penstock.table.plan.join_conditions import conditions_of, equi_key
from penstock.table.plan.nodes.base import Field, Rel, TimeAttribute
from penstock.table.plan.nodes.correlate import CorrelateRel
from penstock.table.plan.nodes.join import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, JoinRel
from penstock.table.plan.nodes.relational import ScanRel
from penstock.table.plan.nodes.time_join import TemporalJoinRel
from penstock.table.plan.scope import Scope, ScopeColumn
from penstock.util.exceptions import TableException, ValidationException


def join_relations(
    left: Rel,
    right: Rel,
    kind: str,
    scope: Scope,
    binder: Binder,
    *,
    condition: ast.Node | None = None,
    using: Sequence[str] = (),
    as_of: ast.Node | None = None,
) -> tuple[Rel, Scope]:
    """Return a join and the scope of its result. ``scope`` has the columns of both sides, left ones first."""
    bound: Expr = Constant(BooleanType(_nullable=False), value=True)
    if condition is not None:
        bound = binder.condition(condition, scope, "ON")
    width = len(left.fields)
    if using:
        bound = _using_condition(binder, left, right, using)
    joined: Rel = make_join(left, right, kind, bound)
    if as_of is not None:
        joined = _temporal(make_join(left, right, kind, bound), binder.bind(as_of, scope), width)
    if kind in (SEMI, ANTI):
        return joined, Scope(scope.columns[:width], scope.outer, scope.style)
    columns = [ScopeColumn(field, column.qualifier) for field, column in zip(joined.fields, scope.columns, strict=True)]
    result = Scope(columns, scope.outer, scope.style, aliases=scope.aliases)
    return _merge_columns(joined, result, width, using, kind) if using else (joined, result)


def make_join(left: Rel, right: Rel, kind: str, condition: Expr) -> JoinRel:
    """Return the node of a join. Columns of an outer side are nullable."""
    if kind in (SEMI, ANTI):
        return JoinRel(left.fields, left, right, kind, condition)
    fields = []
    for side, optional in ((left, kind in (RIGHT, FULL)), (right, kind in (LEFT, FULL))):
        fields += [Field(one.name, one.type.nullable() if optional else one.type, one.time) for one in side.fields]
    return JoinRel(tuple(fields), left, right, kind, condition)


def _temporal(join: JoinRel, time: Expr, width: int) -> Rel:
    """Build FOR SYSTEM_TIME AS OF a time attribute of the left table (T74, T75)."""
    if not isinstance(time, InputRef) or time.index >= width or join.left.fields[time.index].time is None:
        raise ValidationException(
            "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"
        )
    if join.kind not in (INNER, LEFT):
        raise ValidationException(f"a temporal join must be INNER or LEFT, not {join.kind}")
    if join.left.fields[time.index].time is TimeAttribute.PROCTIME:
        return _lookup_join(join)
    if not any(one.time is TimeAttribute.ROWTIME for one in join.right.fields):
        raise ValidationException(
            "Event-Time Temporal Table Join requires both primary key and row time attribute in versioned table, but "
            "no row time attribute can be found."
        )
    return TemporalJoinRel(join.fields, join.left, join.right, join.kind, join.condition, time.index)


def _lookup_join(join: JoinRel) -> Rel:
    """Build AS OF processing time: each left row is looked up in the connector of the right table (T75)."""
    scan = join.right
    if not isinstance(scan, ScanRel) or not isinstance(scan.origin, TableSource):
        raise TableException("Processing-time temporal join is not supported yet: the right side must be a table.")
    by_column: dict[int, Expr] = {}
    rest: list[Expr] = []
    for condition in conditions_of(join.condition):
        key = equi_key(condition, len(join.left.fields))
        if key is None or key.null_safe or not isinstance(key.right, InputRef) or key.right.index in by_column:
            rest.append(condition)
        else:
            by_column[key.right.index] = cast_to(key.left, scan.fields[key.right.index].type)
    if not by_column:
        raise TableException(
            f"A lookup join requires an equality between a column of the left table and a column of '{scan.name}'."
        )
    columns = sorted(by_column)
    function = scan.origin.lookup(columns)
    if function is None:
        raise TableException(
            f"Processing-time temporal join is not supported yet: the connector of table '{scan.name}' cannot look up "
            "rows by key."
        )
    if rest and join.kind == LEFT:
        raise TableException(f"A LEFT lookup join supports only equalities with columns of '{scan.name}'.")
    arguments = tuple(by_column[column] for column in columns)
    joined: Rel = CorrelateRel(join.fields, join.left, function, arguments, outer=join.kind == LEFT)
    for condition in rest:
        joined = build.filter_rows(joined, condition)
    return joined


def _using_condition(binder: Binder, left: Rel, right: Rel, using: Sequence[str]) -> Expr:
    equal = []
    for name in using:
        if name not in left.names or name not in right.names:
            raise ValidationException(f"SQL validation failed. Column '{name}' not found in both tables of USING")
        one, other = left.names.index(name), right.names.index(name)
        equal.append(
            binder.function(
                "=",
                InputRef(left.fields[one].type, one),
                InputRef(right.fields[other].type, len(left.fields) + other),
            )
        )
    return equal[0] if len(equal) == 1 else binder.function("AND", *equal)


def _merge_columns(joined: Rel, scope: Scope, width: int, using: Sequence[str], kind: str) -> tuple[Rel, Scope]:
    """Build USING: the common columns appear once, at the start."""
    names = joined.names
    expressions: list[Expr] = []
    columns: list[ScopeColumn] = []
    aliases: list[tuple[tuple[str, ...], str, int]] = []
    places: dict[int, int] = {}
    for name in using:
        left, right = names.index(name), names.index(name, width)
        kept = {INNER: (left, right), LEFT: (left,), RIGHT: (right,)}.get(kind, ())
        places |= dict.fromkeys(kept, len(columns))
        aliases += [(scope.columns[index].qualifier, name, len(columns)) for index in kept]
        one, other = (InputRef(joined.fields[index].type, index) for index in (left, right))
        merged: Expr = other if kind == RIGHT else one
        if kind == FULL:
            merged = Call(one.type.nullable(), "COALESCE", (one, other))
        expressions.append(merged)
        columns.append(ScopeColumn(Field(name, merged.type)))
    for index, field in enumerate(joined.fields):
        if field.name not in using:
            places[index] = len(columns)
            expressions.append(InputRef(field.type, index))
            columns.append(scope.columns[index])
    relation = build.project(joined, expressions, [column.field.name for column in columns])
    aliases += [(one, name, places[index]) for one, name, index in scope.aliases if index in places]
    return relation, Scope(columns, scope.outer, scope.style, aliases=aliases)
