"""Intermediate tables: rows in windows, rows with named OVER windows, sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.table.expression import Expression, node_of
from penstock.table.plan import ast, build
from penstock.table.plan.group_windows import WINDOW_PARTS, GroupWindowBuilder
from penstock.table.plan.nodes.rank import SortRel
from penstock.table.plan.over import with_over_windows
from penstock.table.plan.sorting import sort_keys, sort_relation
from penstock.table.row_operations import AggregatedTable, aggregate_windows
from penstock.table.table import expand_columns, name_of, unique_names, unnamed
from penstock.table.window import GroupWindow, OverWindow, sort_item
from penstock.util.exceptions import ValidationException

if TYPE_CHECKING:
    from penstock.table.table import Table

__all__ = ["GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable"]

Expr_ = Expression[Any]


class GroupWindowedTable:
    """A table with windows. Next, call `group_by`."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Expr_) -> WindowGroupedTable:
        """Group rows by the window, and optionally by columns."""
        nodes = [node_of(field) for field in fields]
        window = ast.Ref((self._window.spec.alias or "",))
        if window not in nodes:
            raise ValidationException(
                f"group_by needs the window: group_by(col('{self._window.spec.alias}'), ...). Without it, the "
                "aggregate would never end."
            )
        return WindowGroupedTable(self._table, self._window, [node for node in nodes if node != window])


class WindowGroupedTable:
    """A table grouped by window and keys. Next, call `select` or `aggregate`."""

    def __init__(self, table: Table, window: GroupWindow, keys: Sequence[ast.Node]) -> None:
        self._table = table
        self._window = window
        self._keys = list(keys)

    def select(self, *fields: Expr_) -> Table:
        """Select keys, aggregates, and ``start``, ``end``, ``rowtime`` and ``proctime`` of the window."""
        table = self._table
        names = [name_of(key, index) for index, key in enumerate(self._keys)]
        keys = [unnamed(key) for key in self._keys]
        grouped = GroupWindowBuilder(table.relation, table.scope(), table.binder(), self._window.spec, keys, names)
        outer = grouped.outer_binder()
        nodes = [node for field in fields for node in expand_columns(node_of(field), table.relation)]
        expressions = [outer.bind(node, grouped.scope) for node in nodes]
        relation = grouped.builder.build()
        unique = unique_names([name_of(node, index) for index, node in enumerate(nodes)])
        return table.with_relation(build.project(relation, expressions, unique))

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregate each window and key to one row. Next, call `select` (T105)."""
        table = self._table
        relation = aggregate_windows(table.relation, self._window.spec, self._keys, func, table.binder())
        return WindowAggregatedTable(table.with_relation(relation), self._window)


class WindowAggregatedTable(AggregatedTable):
    """Keys, the columns of an aggregate function and the window. Next, call `select`."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        super().__init__(table)
        self._window = window

    def select(self, *fields: Expr_) -> Table:
        """Compute columns from the result."""

        def part(node: ast.Node) -> ast.Node | None:
            place = self._window.spec.part(node)
            return None if place is None else ast.Ref((f"{self._window.spec.alias}{WINDOW_PARTS[place]}",))

        nodes = [ast.rewrite(node_of(field), part) for field in fields]
        names = [name_of(node_of(field), index) for index, field in enumerate(fields)]
        named = [
            ast.Named(node, (name,)) if isinstance(node, ast.Ref) and node != node_of(field) else node
            for node, name, field in zip(nodes, names, fields, strict=True)
        ]
        return super().select(*(Expression(node) for node in named))


class OverWindowedTable:
    """A table with named OVER windows. Next, call `select`."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._windows = {window.name: window for window in windows}

    def select(self, *fields: Expr_) -> Table:
        """Select columns and aggregates ``.over(col("w"))``."""
        table = self._table
        relation = table.relation
        nodes = [ast.rewrite(node, self._over) for field in fields for node in expand_columns(node_of(field), relation)]
        source, scope, binder = with_over_windows(relation, table.scope(), table.binder(), nodes)
        expressions = [binder.bind(node, scope) for node in nodes]
        unique = unique_names([name_of(node, index) for index, node in enumerate(nodes)])
        return table.with_relation(build.project(source, expressions, unique))

    def _over(self, node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.FunctionCall) or node.name != "$OVER":
            return None
        call, alias = node.arguments
        name = alias.path[-1] if isinstance(alias, ast.Ref) else str(getattr(alias, "value", alias))
        window = self._windows.get(name)
        if window is None:
            raise ValidationException(
                f"the OVER window '{name}' does not exist: over_window names {list(self._windows)}"
            )
        return ast.Over(call, window.partition, (window.order,), window.frame)


def sorted_table(table: Table, fields: Sequence[Expr_]) -> Table:
    """ORDER BY."""
    items = [sort_item(field) for field in fields]
    relation, scope, binder = table.relation, table.scope(), table.binder()
    bound = binder.bind_all([item.operand for item in items], scope)
    columns = [ast.ColumnAt(index, name) for index, name in enumerate(relation.names)]
    expressions = binder.bind_all(columns, scope)
    places = []
    for expr in bound:
        if expr not in expressions:
            expressions.append(expr)
        places.append(expressions.index(expr))
    width = len(relation.fields)
    if len(expressions) > width:
        extra = [f"$sort{index}" for index in range(len(expressions) - width)]
        relation = build.project(relation, expressions, [*relation.names, *extra])
    return table.with_relation(sort_relation(relation, sort_keys(items, places), width, None, 0))


def limited_table(table: Table, offset: int, fetch: int | None) -> Table:
    """OFFSET and FETCH. In a sorted table they are part of the sort."""
    relation = table.relation
    if isinstance(relation, SortRel) and relation.fetch is None and not (offset and relation.offset):
        return table.with_relation(
            SortRel(relation.fields, relation.input, relation.order, relation.offset + offset, fetch)
        )
    return table.with_relation(SortRel(relation.fields, relation, (), offset, fetch))
