"""Tables of the Table API: immutable descriptions of relations (T6).

This module imports the builders of all its methods.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.core.table.types import RowType
from penstock.runtime.table.expressions import Expr
from penstock.table.data_frames import data_frame
from penstock.table.expression import Expression, describe, node_of
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import AggregateBuilder, has_aggregate
from penstock.table.plan.joins import join_relations
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.scope import Scope
from penstock.table.plan.set_operations import set_operation
from penstock.table.resolved_schema import ResolvedSchema, resolved_schema
from penstock.table.row_operations import (
    AggregatedTable,
    FlatAggregateTable,
    aggregate_groups,
    flat_aggregate_groups,
    flat_map_rows,
    join_lateral,
    map_rows,
)
from penstock.table.table_result import TableResult
from penstock.table.table_schema import TableSchema
from penstock.util.exceptions import ValidationException

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment
    from penstock.table.table_pipeline import TablePipeline
    from penstock.table.window import GroupWindow, OverWindow
    from penstock.table.windowed_table import GroupWindowedTable, OverWindowedTable

__all__ = ["GroupedTable", "Table"]

Expr_ = Expression[Any]


class Table:
    """A relation and its environment. Methods check their arguments at once and return a new table."""

    def __init__(self, relation: Rel, t_env: TableEnvironment) -> None:
        self._relation = relation
        self._t_env = t_env
        self._view: str | None = None

    def __getattr__(self, name: str) -> Expression[Any]:
        if name.startswith("_") or name not in self._relation.names:
            advice = f". To run the query, call execute().{name}()" if name in ("print", "collect", "wait") else ""
            columns = ", ".join(self._relation.names)
            raise AttributeError(f"the table has no column '{name}': its columns are {columns}{advice}")
        return Expression(ast.Ref((name,)))

    # Columns

    def select(self, *fields: Expr_) -> Table:
        """Compute columns. With an aggregate, the result is one row for the whole table."""
        nodes = [node_of(field) for field in fields]
        binder = self.binder()
        if any(has_aggregate(node, binder) for node in nodes):
            return GroupedTable(self, []).select(*fields)
        return self.with_relation(_select(self._relation, nodes, binder))

    def alias(self, field: str, *fields: str) -> Table:
        """Rename the columns, or the first ones if there are fewer names."""
        names = [field, *fields]
        if len(names) > len(self._relation.fields):
            raise ValidationException("Aliasing more fields than we actually have.")
        if len(set(names)) < len(names):
            raise ValidationException("Field names must be unique.")
        return self.with_relation(build.rename(self._relation, [*names, *self._relation.names[len(names) :]]))

    def add_columns(self, *fields: Expr_) -> Table:
        """Add columns after the existing ones."""
        names = self._relation.names
        added = self.select(col_star(), *fields)
        new = added._relation.names[len(names) :]
        twice = [name for name in new if name in names or new.count(name) > 1]
        if twice:
            raise ValidationException(f"Ambiguous column name: {twice[0]}")
        return added

    def add_or_replace_columns(self, *fields: Expr_) -> Table:
        """Replace the columns with the same names, and add the others."""
        added = _select(self._relation, [node_of(field) for field in fields], self.binder())
        names = list(self._relation.names)
        expressions: list[ast.Node] = [ast.Ref((name,)) for name in names]
        for field, name in zip(fields, added.names, strict=True):
            if name in names:
                expressions[names.index(name)] = ast.Named(unnamed(node_of(field)), (name,))
            else:
                names.append(name)
                expressions.append(node_of(field))
        return self.select(*(Expression(node) for node in expressions))

    def rename_columns(self, *fields: Expr_) -> Table:
        """Rename some columns: ``col("a").alias("b")``."""
        names = list(self._relation.names)
        for field in fields:
            node = node_of(field)
            if not isinstance(node, ast.Named) or not isinstance(node.operand, ast.Ref):
                raise ValidationException(f"Unexpected field expression {field}: use col('a').alias('b')")
            old = node.operand.path[-1]
            if old not in names:
                raise ValidationException(f"Rename field [{old}] does not exist in source table")
            names[names.index(old)] = node.names[0]
        return self.with_relation(build.rename(self._relation, names))

    def drop_columns(self, *fields: Expr_) -> Table:
        """Drop some columns."""
        dropped = [describe(node_of(field)) for field in fields]
        for name in dropped:
            if name not in self._relation.names:
                raise ValidationException(f"Field {name} does not exist in source table")
        kept = [index for index, name in enumerate(self._relation.names) if name not in dropped]
        return self.with_relation(build.keep_columns(self._relation, kept))

    # Rows

    def filter(self, predicate: Expression[bool]) -> Table:
        """Keep the rows for which a condition is TRUE."""
        condition = self.binder().condition(node_of(predicate), self.scope(), "WHERE")
        return self.with_relation(build.filter_rows(self._relation, condition))

    where = filter  # noqa: A003 - PyFlink's name

    def distinct(self) -> Table:
        """Remove duplicate rows."""
        return self.with_relation(build.distinct(self._relation))

    def group_by(self, *fields: Expr_) -> GroupedTable:
        """Group rows. Next, select keys and aggregates."""
        return GroupedTable(self, [node_of(field) for field in fields])

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Group rows in windows: ``Tumble.over(lit(5).minutes).on(col("ts")).alias("w")``. Next, call ``group_by``."""
        from penstock.table.windowed_table import GroupWindowedTable

        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Name windows of rows. Next, use them with ``col("a").sum.over(col("w"))``."""
        from penstock.table.windowed_table import OverWindowedTable

        return OverWindowedTable(self, over_windows)

    def order_by(self, *fields: Expr_) -> Table:
        """Sort the rows: ``col("a").desc``."""
        from penstock.table.windowed_table import sorted_table

        return sorted_table(self, fields)

    def offset(self, offset: int) -> Table:
        """Skip the first rows."""
        from penstock.table.windowed_table import limited_table

        return limited_table(self, offset, None)

    def fetch(self, fetch: int) -> Table:
        """Keep the first rows."""
        from penstock.table.windowed_table import limited_table

        return limited_table(self, 0, fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep the first rows after an offset."""
        return self.offset(offset).fetch(fetch) if offset else self.fetch(fetch)

    def join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Join the rows of both tables for which a condition is TRUE (T70). Column names must differ."""
        return self._joined("INNER", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Like :meth:`join`, but keep left rows without a match, with NULL (T71)."""
        return self._joined("LEFT", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Like :meth:`join`, but keep right rows without a match, with NULL (T71)."""
        return self._joined("RIGHT", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Like :meth:`join`, but keep rows of both sides without a match, with NULL (T71)."""
        return self._joined("FULL", right, join_predicate)

    def _joined(self, kind: str, right: Table, predicate: Expression[bool] | None) -> Table:
        self._check_same_environment(right)
        twice = next((name for name in self._relation.names if name in right._relation.names), None)
        if twice is not None:
            raise ValidationException(f"join relations with ambiguous names: [{twice}]: rename columns with alias()")
        scope = Scope.of([*self._relation.fields, *right._relation.fields])
        condition = None if predicate is None else node_of(predicate)
        relation, _ = join_relations(self._relation, right._relation, kind, scope, self.binder(), condition=condition)
        return self.with_relation(relation)

    def union_all(self, right: Table) -> Table:
        """Return the rows of both tables, with duplicates."""
        self._check_same_environment(right)
        return self.with_relation(build.union_all([self._relation, right._relation], "UNION ALL"))

    def union(self, right: Table) -> Table:
        """Return the distinct rows of both tables. Only in batch mode (T131)."""
        return self._set_operation("UNION", right, keeps_all=False)

    def intersect(self, right: Table) -> Table:
        """Return the distinct rows that are in both tables. Only in batch mode."""
        return self._set_operation("INTERSECT", right, keeps_all=False)

    def intersect_all(self, right: Table) -> Table:
        """Return the rows that are in both tables, with duplicates. Only in batch mode."""
        return self._set_operation("INTERSECT", right, keeps_all=True)

    def minus(self, right: Table) -> Table:
        """Return the distinct rows that are not in the other table. Only in batch mode."""
        return self._set_operation("EXCEPT", right, keeps_all=False)

    def minus_all(self, right: Table) -> Table:
        """Remove each row of the other table once. Only in batch mode."""
        return self._set_operation("EXCEPT", right, keeps_all=True)

    def _set_operation(self, name: str, right: Table, *, keeps_all: bool) -> Table:
        self._check_same_environment(right)
        if not self._t_env.is_batch:
            raise ValidationException(
                f"{name} of tables is not supported in streaming mode: use union_all, or {name} in a SQL query"
            )
        return self.with_relation(set_operation(name, self._relation, right._relation, keeps_all=keeps_all))

    # Functions over rows and groups

    def map(self, func: Any) -> Table:
        """Map each row with a scalar function of the whole row, or a call of one (T105)."""
        return self.with_relation(map_rows(self._relation, func, self.binder()))

    def flat_map(self, func: Any) -> Table:
        """Replace each row with the rows of a table function (T105)."""
        return self.with_relation(flat_map_rows(self._relation, func, self.binder()))

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregate the whole table to one row (T105)."""
        return GroupedTable(self, []).aggregate(func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Aggregate the whole table with a table aggregate function (T105)."""
        return GroupedTable(self, []).flat_aggregate(func)

    def join_lateral(self, table_function_call: Any, join_predicate: Expression[bool] | None = None) -> Table:
        """Join each row with the rows of a table function (T76)."""
        relation = join_lateral(self._relation, table_function_call, join_predicate, self.binder(), outer=False)
        return self.with_relation(relation)

    def left_outer_join_lateral(
        self, table_function_call: Any, join_predicate: Expression[bool] | None = None
    ) -> Table:
        """Like :meth:`join_lateral`, but keep rows for which the function yields nothing, with NULL (T76)."""
        relation = join_lateral(self._relation, table_function_call, join_predicate, self.binder(), outer=True)
        return self.with_relation(relation)

    # Results

    def execute(self) -> TableResult:
        """Run the query. Collect its rows from the result."""
        return self._t_env.execute_query(self._relation)

    def insert_into(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TablePipeline:
        """Return a pipeline that writes the table to another one."""
        from penstock.table.table_pipeline import TablePipeline

        return TablePipeline(self, table_path_or_descriptor, self._t_env, overwrite=overwrite)

    def execute_insert(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TableResult:
        """Write the table to another one."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def explain(self, *extra_details: Any) -> str:
        """Return the plan of the query."""
        return self._t_env.explain_plans([(self._relation, None)])

    def print_explain(self, *extra_details: Any) -> None:
        """Print the plan of the query."""
        sys.stdout.write(self.explain(*extra_details) + "\n")

    def to_pandas(self) -> Any:
        """Return the final rows as a pandas DataFrame."""
        rows: list[list[Any]] = []
        with self.execute().collect() as collected:
            for row in collected:
                if row.get_row_kind().value in (0, 2):
                    rows.append(list(row))
                else:
                    rows.remove(list(row))
        return data_frame(rows, self._relation.names, [field.type for field in self._relation.fields])

    # Schema

    def get_schema(self) -> TableSchema:
        return TableSchema(self._relation.names, [field.type for field in self._relation.fields])

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the names and types of the columns."""
        return resolved_schema(self._relation)

    def print_schema(self) -> None:
        """Print the columns."""
        sys.stdout.write(f"{self.get_resolved_schema()}\n")

    def __str__(self) -> str:
        """Return the name of a temporary view of this table, for SQL: ``f"SELECT * FROM {table}"``."""
        if self._view is None:
            self._view = self._t_env.create_unnamed_view(self)
        return self._view

    def __repr__(self) -> str:
        return f"Table({', '.join(self._relation.names)})"

    # Internals

    def as_subquery(self, scope: Any) -> Rel:
        """Return the relation, for expressions that check whether a value is in a table."""
        return self._relation

    @property
    def relation(self) -> Rel:
        """Return the relation behind the table."""
        return self._relation

    def with_relation(self, relation: Rel) -> Table:
        return Table(relation, self._t_env)

    def scope(self) -> Scope:
        return Scope.of(self._relation.fields)

    def binder(self) -> Binder:
        return self._t_env.binder()

    def _check_same_environment(self, other: Table) -> None:
        if other._t_env is not self._t_env:
            raise ValidationException("Only tables from the same TableEnvironment can be combined.")


class GroupedTable:
    """A grouped table. Next, call `select`, `aggregate` or `flat_aggregate`."""

    def __init__(self, table: Table, keys: Sequence[ast.Node]) -> None:
        self._table = table
        self._keys = list(keys)

    def select(self, *fields: Expr_) -> Table:
        """Select keys and aggregates of each group."""
        table = self._table
        binder, scope = table.binder(), table.scope()
        bound = [binder.bind(unnamed(key), scope) for key in self._keys]
        names = [name_of(key, index) for index, key in enumerate(self._keys)]
        builder = AggregateBuilder(table._relation, scope, binder, bound, names)
        outer = builder.outer_binder()
        named_keys = {key.names[0]: key.operand for key in self._keys if isinstance(key, ast.Named)}
        nodes = [
            _with_keys(node, named_keys) for field in fields for node in expand_columns(node_of(field), table._relation)
        ]
        expressions = [outer.bind(node, scope) for node in nodes]
        relation = builder.build()
        return table.with_relation(
            build.project(relation, expressions, unique_names([name_of(n, i) for i, n in enumerate(nodes)]))
        )

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregate each group to one row. Next, call `select` (T105)."""
        table = self._table
        relation = aggregate_groups(table._relation, self._keys, func, table.binder())
        return AggregatedTable(table.with_relation(relation))

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Aggregate each group with a table aggregate function. Next, call `select` (T105)."""
        table = self._table
        relation = flat_aggregate_groups(table._relation, self._keys, func, table.binder())
        return FlatAggregateTable(table.with_relation(relation))


def _with_keys(node: ast.Node, keys: dict[str, ast.Node]) -> ast.Node:
    """Replace the names of computed group keys with the keys."""

    def change(one: ast.Node) -> ast.Node | None:
        return keys.get(one.path[0]) if isinstance(one, ast.Ref) and len(one.path) == 1 else None

    if isinstance(node, ast.Ref) and node.path[0] in keys:
        return ast.Named(keys[node.path[0]], (node.path[0],))
    return ast.rewrite(node, change) if keys else node


def _select(relation: Rel, nodes: Sequence[ast.Node], binder: Binder) -> Rel:
    scope = Scope.of(relation.fields)
    expanded = [one for node in nodes for one in expand_columns(node, relation)]
    expressions: list[Expr] = [binder.bind(node, scope) for node in expanded]
    return build.project(relation, expressions, unique_names([name_of(node, i) for i, node in enumerate(expanded)]))


def expand_columns(node: ast.Node, relation: Rel) -> list[ast.Node]:
    """Expand stars, column ranges and flattened rows."""
    match node:
        case ast.Star():
            return [ast.Ref((name,)) for name in relation.names]
        case ast.FunctionCall(name="$WITH_COLUMNS"):
            return [ast.Ref((name,)) for name in _columns(node.arguments, relation)]
        case ast.FunctionCall(name="$WITHOUT_COLUMNS"):
            dropped = set(_columns(node.arguments, relation))
            return [ast.Ref((name,)) for name in relation.names if name not in dropped]
        case ast.FunctionCall(name="$RANGE"):
            return [ast.Ref((name,)) for name in _columns([node], relation)]
        case ast.FunctionCall(name="$FLATTEN"):
            return _flattened(node.arguments[0], relation)
    return [node]


def _columns(arguments: Sequence[ast.Node], relation: Rel) -> list[str]:
    names = relation.names
    found: list[str] = []
    for argument in arguments:
        if isinstance(argument, ast.FunctionCall) and argument.name == "$RANGE":
            low, high = (_position(one, names) for one in argument.arguments)
            found += names[low : high + 1]
        else:
            found.append(names[_position(argument, names)])
    return found


def _position(node: ast.Node, names: list[str]) -> int:
    value = node.path[-1] if isinstance(node, ast.Ref) else getattr(node, "value", None)
    if isinstance(value, int):
        return value - 1
    if value not in names:
        raise ValidationException(f"Cannot resolve field [{value}], input field list:[{', '.join(names)}].")
    return names.index(value)


def _flattened(node: ast.Node, relation: Rel) -> list[ast.Node]:
    bound = Binder().bind(node, Scope.of(relation.fields))
    if not isinstance(bound.type, RowType):
        return [node]
    prefix = describe(node)
    return [
        ast.Named(ast.FunctionCall("FIELD", (node,), options=(name,)), (f"{prefix}${name}",))
        for name in bound.type.field_names()
    ]


def unnamed(node: ast.Node) -> ast.Node:
    """Return an expression without its alias."""
    return node.operand if isinstance(node, ast.Named) else node


def name_of(node: ast.Node, position: int) -> str:
    """Return the name of a column: its alias, the name of the referenced column, or `_c0`."""
    match node:
        case ast.Named():
            return node.names[0]
        case ast.Ref():
            return node.path[-1]
        case ast.FunctionCall(name="FIELD") if isinstance(node.options[0], str):
            return str(node.options[0])
    return f"_c{position}"


def unique_names(names: list[str]) -> list[str]:
    """Number computed columns from 0, regardless of the columns between them."""
    result, computed = [], 0
    for name in names:
        if name.startswith("_c") and name[2:].isdigit():
            result.append(f"_c{computed}")
            computed += 1
        else:
            result.append(name)
    twice = next((name for name in result if result.count(name) > 1), None)
    if twice is not None:
        raise ValidationException(f"Ambiguous column name: {twice}")
    return result


def col_star() -> Expression[Any]:
    """Refer to all columns."""
    return Expression(ast.Star())


def __getattr__(name: str) -> Any:
    """Return the windowed tables, which PyFlink has in this module, but which import it here."""
    if name in ("GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable"):
        from penstock.table import windowed_table

        return getattr(windowed_table, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
