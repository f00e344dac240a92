"""Functions over whole rows and groups: map, flat_map, aggregate, flat_aggregate, lateral joins (T103, T105)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.core.table.types import RowType
from penstock.runtime.table.expressions import Expr, InputRef
from penstock.table.expression import Expression, node_of
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import AggregateBuilder
from penstock.table.plan.group_windows import WINDOW_PARTS, GroupWindowBuilder, GroupWindowSpec
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.correlate import CorrelateRel
from penstock.table.plan.nodes.table_aggregate import TableAggregateRel
from penstock.table.plan.scope import Scope, row_field
from penstock.table.plan.table_functions import apply_table_function
from penstock.table.udf import UserDefinedFunctionWrapper
from penstock.util.exceptions import ValidationException

if TYPE_CHECKING:
    from penstock.table.table import Table

__all__ = ["AggregatedTable", "FlatAggregateTable"]


@dataclass(frozen=True, slots=True)
class _Applied:
    """A user-defined function with its arguments and column names."""

    function: Any
    arguments: tuple[ast.Node, ...]
    names: tuple[str, ...]

    @property
    def node(self) -> ast.Node:
        """Return the call."""
        return ast.UserFunctionCall(self.function, self.arguments)


def _applied(func: Any, relation: Rel, kind: str, what: str) -> _Applied:
    """Parse the argument of a method: a function, which gets whole rows, or a call of one."""
    if isinstance(func, UserDefinedFunctionWrapper):
        columns = tuple(ast.ColumnAt(index, name) for index, name in enumerate(relation.names))
        row = ast.FunctionCall("$ROW_OF", columns, options=tuple(relation.names))
        found = _Applied(func, (row,), func.alias_names)
    else:
        node: ast.Node | None = node_of(func) if isinstance(func, Expression) else None
        names: tuple[str, ...] = ()
        if isinstance(node, ast.Named):
            names = node.names
            node = node.operand
        if not isinstance(node, ast.UserFunctionCall):
            raise ValidationException(f"{what}() takes a user-defined {kind} function or a call of one, got {func}")
        found = _Applied(node.function, node.arguments, names or node.function.alias_names)
    if found.function.kind != kind:
        raise ValidationException(
            f"{what}() takes a {kind} function, but '{found.function.name}' is a {found.function.kind} function"
        )
    return found


def _result_names(applied: _Applied) -> list[str]:
    row = applied.function.result_type
    names = list(row.field_names()) if isinstance(row, RowType) else ["f0"]
    if applied.names:
        if len(applied.names) != len(names):
            raise ValidationException(
                f"function '{applied.function.name}' has {len(names)} columns, {len(applied.names)} names were given"
            )
        return list(applied.names)
    return names


def _flattened(value: Expr) -> list[Expr]:
    if not isinstance(value.type, RowType):
        return [value]
    return [row_field(value, index) for index in range(len(value.type.fields))]


# -- rows -------------------------------------------------------------------------------------------------------------


def map_rows(relation: Rel, func: Any, binder: Binder) -> Rel:
    """Return one row for each row, with the fields of the function's result."""
    applied = _applied(func, relation, "scalar", "map")
    value = binder.bind(applied.node, Scope.of(relation.fields))
    computed = build.project(relation, [value], ["$row"])
    return build.project(computed, _flattened(InputRef(value.type, 0)), _result_names(applied))


def flat_map_rows(relation: Rel, func: Any, binder: Binder) -> Rel:
    """Return the rows that a table function yields for each row."""
    applied = _applied(func, relation, "table", "flat_map")
    joined = apply_table_function(
        relation,
        Scope.of(relation.fields),
        binder,
        applied.function,
        applied.arguments,
        outer=False,
        names=_result_names(applied),
    )
    width = len(relation.fields)
    return build.keep_columns(joined, range(width, len(joined.fields)))


def join_lateral(relation: Rel, call: Any, predicate: Any, binder: Binder, *, outer: bool) -> Rel:
    """Join each row with the rows of a table function."""
    what = "left_outer_join_lateral" if outer else "join_lateral"
    applied = _applied(call, relation, "table", what)
    joined = apply_table_function(
        relation,
        Scope.of(relation.fields),
        binder,
        applied.function,
        applied.arguments,
        outer=outer,
        names=_result_names(applied),
    )
    assert isinstance(joined, CorrelateRel)
    twice = next((name for name in joined.names if joined.names.count(name) > 1), None)
    if twice is not None:
        raise ValidationException(
            f"join relations with ambiguous names: [{twice}]: rename the function's columns with alias()"
        )
    if predicate is None:
        return joined
    condition = binder.condition(node_of(predicate), Scope.of(joined.fields), "a join condition")
    if outer and not build.always_true(condition):
        raise ValidationException("left_outer_join_lateral supports only the predicate lit(True)")
    return build.filter_rows(joined, condition)


# -- groups -----------------------------------------------------------------------------------------------------------


class AggregatedTable:
    """Keys and the columns of an aggregate function. Next, call `select`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute columns from the result."""
        return self._table.select(*fields)


class FlatAggregateTable(AggregatedTable):
    """Keys and the columns of a table aggregate function. Next, call `select`."""


def aggregate_groups(relation: Rel, keys: Sequence[ast.Node], func: Any, binder: Binder) -> Rel:
    """Return the keys, then the fields of an aggregate function's result."""
    applied = _applied(func, relation, "aggregate", "aggregate")
    scope = Scope.of(relation.fields)
    bound, names = _bound_keys(keys, binder, scope)
    builder = AggregateBuilder(relation, scope, binder, bound, names)
    value = builder.outer_binder().bind(applied.node, scope)
    aggregated = builder.build()
    key_columns: list[Expr] = [InputRef(key.type, index) for index, key in enumerate(bound)]
    return build.project(aggregated, [*key_columns, *_flattened(value)], [*names, *_result_names(applied)])


def aggregate_windows(
    relation: Rel, window: GroupWindowSpec, keys: Sequence[ast.Node], func: Any, binder: Binder
) -> Rel:
    """Return the keys, then the fields of an aggregate function's result, then start, end and time of the window."""
    applied = _applied(func, relation, "aggregate", "aggregate")
    scope = Scope.of(relation.fields)
    bound, names = _bound_keys(keys, binder, scope)
    plain = [key.operand if isinstance(key, ast.Named) else key for key in keys]
    grouped = GroupWindowBuilder(relation, scope, binder, window, plain, names)
    value = grouped.outer_binder().bind(applied.node, grouped.scope)
    aggregated = grouped.builder.build()
    parts = range(len(bound), len(bound) + len(WINDOW_PARTS))
    columns: list[Expr] = [InputRef(key.type, index) for index, key in enumerate(bound)]
    columns += _flattened(value)
    columns += [InputRef(aggregated.fields[index].type, index) for index in parts]
    hidden = [f"{window.alias}{part}" for part in WINDOW_PARTS]
    return build.project(aggregated, columns, [*names, *_result_names(applied), *hidden])


def flat_aggregate_groups(relation: Rel, keys: Sequence[ast.Node], func: Any, binder: Binder) -> Rel:
    """Return the keys, then the columns of a table aggregate function."""
    applied = _applied(func, relation, "table aggregate", "flat_aggregate")
    scope = Scope.of(relation.fields)
    bound, names = _bound_keys(keys, binder, scope)
    arguments = build.cast_arguments(applied.function, binder.bind_all(applied.arguments, scope))
    applied.function.check_arguments(len(arguments))
    source = build.project(
        relation, [*bound, *arguments], [f"$f{index}" for index in range(len(bound) + len(arguments))]
    )
    row = applied.function.result_type
    columns = zip(_result_names(applied), row.field_types(), strict=True)
    fields = [Field(name, key.type) for name, key in zip(names, bound, strict=True)]
    fields += [Field(name, type_) for name, type_ in columns]
    places = range(len(bound), len(bound) + len(arguments))
    return TableAggregateRel(tuple(fields), source, tuple(range(len(bound))), applied.function, tuple(places))


def _bound_keys(keys: Sequence[ast.Node], binder: Binder, scope: Scope) -> tuple[list[Expr], list[str]]:
    bound, names = [], []
    for index, key in enumerate(keys):
        name = (
            key.names[0] if isinstance(key, ast.Named) else key.path[-1] if isinstance(key, ast.Ref) else f"_k{index}"
        )
        bound.append(binder.bind(key.operand if isinstance(key, ast.Named) else key, scope))
        names.append(name)
    return bound, names
