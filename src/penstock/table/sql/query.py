"""Converts a query's tree to a relation: FROM, WHERE, GROUP BY, HAVING, QUALIFY, SELECT, ORDER BY, in this order.

This module imports one module for each clause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.core.table.type_rules import common_type
from penstock.runtime.table.expressions import Constant
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder, cast_to, constant
from penstock.table.plan.build import AggregateBuilder, has_aggregate
from penstock.table.plan.group_windows import GroupWindowBuilder, group_window, window_of_call
from penstock.table.plan.grouping import grouping_sets, with_grouping_sets
from penstock.table.plan.joins import join_relations
from penstock.table.plan.match_recognize import match_recognize
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.rank import SortKey
from penstock.table.plan.nodes.relational import ValuesRel
from penstock.table.plan.over import bind_parts, has_over_or_subquery, with_over_windows
from penstock.table.plan.scope import Scope
from penstock.table.plan.set_operations import set_operation
from penstock.table.plan.sorting import sort_keys, sort_relation
from penstock.table.plan.subquery import SubqueryPlanner, join_lateral
from penstock.table.plan.table_functions import apply_table_function, window_table_function
from penstock.table.sql.hints import StateTtl, hint_options
from penstock.table.sql.match_syntax import read_match
from penstock.table.sql.parser import ExpressionReader
from penstock.table.sql.select_list import expanded, key_name, order_node, output_names, qualify_node
from penstock.util.exceptions import SqlParserException, ValidationException

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment


class QueryTranslator:
    """Translates queries, with their common table expressions and the scopes of outer queries."""

    def __init__(
        self, t_env: TableEnvironment, ctes: dict[str, Callable[[], Rel]] | None = None, outer: Scope | None = None
    ) -> None:
        self._t_env = t_env
        self._ctes = dict(ctes or {})
        self._outer = outer

    def translate(self, tree: Any) -> Rel:
        """Return the relation of a query."""
        self._read_ctes(tree)
        match type(tree).__name__:
            case "Select":
                return self._select(tree)
            case "Union" | "Intersect" | "Except":
                return self._set_operation(tree)
            case "Subquery" | "Paren":
                return self._modified(tree, self._nested(tree.this))
            case "Values":
                return self._values(tree)
            case "Table":
                return self._from_item(tree)[0]
        raise SqlParserException(f"SQL parse failed. '{tree.sql()[:60]}' is not a query")

    def _nested(self, tree: Any, outer: Scope | None = None) -> Rel:
        return QueryTranslator(self._t_env, self._ctes, outer or self._outer).translate(tree)

    def _read_ctes(self, tree: Any) -> None:
        with_ = tree.args.get("with_")
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise ValidationException("Recursive common table expressions are not supported")
        for cte in with_.expressions:
            relation = self._nested(cte.this)
            columns = [column.name for column in cte.args["alias"].args.get("columns") or ()]
            if columns:
                relation = _renamed(relation, columns, cte.alias)
            self._ctes[cte.alias] = lambda relation=relation: relation  # type: ignore[misc]

    # -- SELECT -------------------------------------------------------------------------------------------------

    def _select(self, tree: Any) -> Rel:
        relation, scope = self._from(tree)
        state_ttl = StateTtl(tree)
        relation = state_ttl.of_joins(relation)
        reader = self._reader()
        for window in tree.args.get("windows") or ():
            reader.windows[window.name] = window
        binder = self.binder()
        where = tree.args.get("where")
        if where is not None:
            relation, scope = self._filter(reader.read(where.this), relation, scope, "WHERE")
        nodes = [reader.read(one) for one in tree.expressions]
        nodes = [one for node in nodes for one in expanded(node, scope)]
        having_tree = tree.args.get("having")
        having = None if having_tree is None else reader.read(having_tree.this)
        names = output_names(nodes)
        order = tree.args.get("order")
        sort_items = [] if order is None else [reader.sort_item(one) for one in order.expressions]
        sort_nodes = [order_node(item.operand, nodes, names) for item in sort_items]
        qualify_tree = tree.args.get("qualify")
        qualify = [] if qualify_tree is None else [qualify_node(reader.read(qualify_tree.this), nodes)]
        grouped = any(has_aggregate(one, binder) for one in (*nodes, *qualify))
        if tree.args.get("group") is not None or grouped or having is not None:
            later = [*(one for one in sort_nodes if not isinstance(one, int)), *qualify]
            relation, binder, scope = self._aggregate(tree, relation, scope, reader, nodes, having, later)
            relation = state_ttl.of_aggregate(relation)
        relation = self._project(
            relation, scope, binder, nodes, names, sort_nodes, qualify, distinct=bool(tree.args.get("distinct"))
        )
        extra = iter(range(len(names), len(names) + len(sort_nodes)))
        places = [node if isinstance(node, int) else next(extra) for node in sort_nodes]
        return self._modified(tree, relation, sort_keys(sort_items, places), len(names))

    def _project(
        self,
        relation: Rel,
        scope: Scope,
        binder: Binder,
        nodes: list[ast.Node],
        names: list[str],
        sort_nodes: list[ast.Node | int],
        qualify: list[ast.Node],
        *,
        distinct: bool,
    ) -> Rel:
        """Build QUALIFY and the SELECT list, followed by the other columns for ORDER BY."""
        extra = [node for node in sort_nodes if not isinstance(node, int)]
        every = [*nodes, *extra]
        relation, scope, binder = with_over_windows(relation, scope, binder, [*every, *qualify])
        relation, scope, binder = SubqueryPlanner(self._t_env).scalars(relation, scope, binder, [*every, *qualify])
        for node in qualify:
            relation = build.filter_rows(relation, binder.condition(node, scope, "QUALIFY"))
        expressions = [binder.bind(node, scope) for node in every]
        all_names = [*names, *(f"$sort{index}" for index in range(len(extra)))]
        relation = build.project(relation, expressions, all_names)
        if distinct:
            if extra:
                raise ValidationException("for SELECT DISTINCT, ORDER BY expressions must appear in the SELECT list")
            relation = build.distinct(relation)
        return relation

    def _aggregate(
        self,
        tree: Any,
        relation: Rel,
        scope: Scope,
        reader: ExpressionReader,
        nodes: list[ast.Node],
        having: ast.Node | None,
        later: list[ast.Node],
    ) -> tuple[Rel, Binder, Scope]:
        """Build GROUP BY and HAVING. Later expressions are bound to the groups."""
        binder = self.binder()
        group = tree.args.get("group")
        sets = grouping_sets(group, reader, nodes)
        keys = sets.keys
        window = group_window(keys)
        if window is not None:
            return self._window_aggregate(window, keys, relation, scope, nodes, having, later)
        bound = [binder.bind(key, scope) for key in keys]
        names = [key_name(key, index) for index, key in enumerate(keys)]
        if sets.is_plain:
            builder = AggregateBuilder(relation, scope, binder, bound, names)
        else:
            builder = with_grouping_sets(relation, scope, binder, bound, names, sets)
        return self._grouped(builder, scope, nodes, having, later)

    def _window_aggregate(
        self,
        window: ast.FunctionCall,
        keys: list[ast.Node],
        relation: Rel,
        scope: Scope,
        nodes: list[ast.Node],
        having: ast.Node | None,
        later: list[ast.Node],
    ) -> tuple[Rel, Binder, Scope]:
        """Build GROUP BY TUMBLE(ts, size) and similar (T68)."""
        plain = [key for key in keys if key != window]
        names = [key_name(key, index) for index, key in enumerate(plain)]
        spec = window_of_call(window)
        grouped = GroupWindowBuilder(relation, scope, self.binder(), spec, plain, names)
        return self._grouped(grouped.builder, grouped.scope, nodes, having, later, grouped.outer_binder())

    def _grouped(
        self,
        builder: AggregateBuilder,
        scope: Scope,
        nodes: list[ast.Node],
        having: ast.Node | None,
        later: list[ast.Node],
        outer: Binder | None = None,
    ) -> tuple[Rel, Binder, Scope]:
        outer = outer or builder.outer_binder()
        # Bind all expressions once, so that all aggregates are known before the node is built.
        conditions = [] if having is None else [having]
        for node in [*nodes, *conditions, *later]:
            if not has_over_or_subquery(node):
                outer.bind(node, scope)
            else:
                bind_parts(node, outer, scope)
        result = builder.build()
        groups = builder.scope_of(result)
        for node in conditions:
            wider, inner_scope, inner = SubqueryPlanner(self._t_env).scalars(result, groups, outer, [node])
            filtered = build.filter_rows(wider, inner.condition(node, inner_scope, "HAVING"))
            result = filtered if wider is result else build.keep_columns(filtered, range(len(result.fields)))
        return result, outer, groups

    # -- FROM ---------------------------------------------------------------------------------------------------

    def _from(self, tree: Any) -> tuple[Rel, Scope]:
        source = tree.args.get("from_")
        if source is None:
            relation: Rel = ValuesRel((Field("ZERO", constant(0).type),), ((0,),))
            return relation, Scope([], self._outer, "sql")
        relation, scope = self._from_item(source.this)
        match = tree.args.get("match") or source.this.args.get("match")
        if match is not None:
            relation, scope = self._match_recognize(match, relation, scope)
        for join in tree.args.get("joins") or ():
            relation, scope = self._join(relation, scope, join)
        for lateral in tree.args.get("laterals") or ():
            relation, scope = self._lateral(relation, scope, lateral, outer=False)
        return relation, scope

    def _match_recognize(self, tree: Any, relation: Rel, scope: Scope) -> tuple[Rel, Scope]:
        relation = match_recognize(read_match(tree, self._reader()), relation, scope, self.binder())
        alias = tree.args.get("alias")
        names = [column.name for column in (alias.args.get("columns") or ())] if alias is not None else []
        relation = _renamed(relation, names, alias.name) if names else relation
        qualifier = (alias.name,) if alias is not None and alias.name else ()
        return relation, Scope.of(relation.fields, qualifier, self._outer, "sql")

    def _from_item(self, tree: Any) -> tuple[Rel, Scope]:
        kind = type(tree).__name__
        qualifier: tuple[str, ...]
        if kind == "Table" and type(tree.this).__name__ == "Anonymous":
            relation, qualifier = self._table_function(tree), (tree.alias,) if tree.alias else ()
        elif kind == "Table":
            relation, qualifier = self._table(tree)
        elif kind in ("Subquery", "Paren"):
            relation, qualifier = self._nested(tree.this), (tree.alias,) if tree.alias else ()
        elif kind == "Values":
            relation, qualifier = self._values(tree), (tree.alias,) if tree.alias else ()
        elif kind in ("Lateral", "Unnest"):
            single: Rel = ValuesRel((Field("ZERO", constant(0).type),), ((0,),))
            relation, scope = self._lateral(single, Scope([], self._outer, "sql"), tree, outer=False)
            relation = build.keep_columns(relation, range(1, len(relation.fields)))
            return relation, Scope(scope.columns, self._outer, "sql")
        else:
            raise SqlParserException(f"SQL parse failed. '{tree.sql()[:60]}' is not supported in FROM")
        alias = tree.args.get("alias")
        columns = [column.name for column in (alias.args.get("columns") or ())] if alias is not None else []
        if columns:
            relation = _renamed(relation, columns, tree.alias)
        for join in tree.args.get("joins") or ():  # FROM (a JOIN b)
            return self._join(relation, Scope.of(relation.fields, qualifier, self._outer, "sql"), join)
        return relation, Scope.of(relation.fields, qualifier, self._outer, "sql")

    def _table(self, tree: Any) -> tuple[Rel, tuple[str, ...]]:
        path = tuple(part.name for part in tree.parts)
        qualifier = (tree.alias,) if tree.alias else path
        if len(path) == 1 and path[0] in self._ctes:
            return self._ctes[path[0]](), qualifier
        hints = hint_options(tree)
        try:
            relation = self._t_env.relation_of(path, hints.get("OPTIONS"))
        except ValidationException as error:
            if "was not found" in str(error):
                raise ValidationException(f"SQL validation failed. Object '{'.'.join(path)}' not found") from None
            raise
        return relation, qualifier

    def _table_function(self, tree: Any) -> Rel:
        call = tree.this
        name = call.this if isinstance(call.this, str) else call.this.name
        if name.upper() in ("TUMBLE", "HOP", "CUMULATE", "SESSION"):
            return window_table_function(name.upper(), call.expressions, self._reader(), self._table_argument)
        function = self._t_env.catalogs.find_function(name)
        if function is None or not function.is_table:
            raise ValidationException(f"SQL validation failed. No match found for function signature {name}(...)")
        single: Rel = ValuesRel((Field("ZERO", constant(0).type),), ((0,),))
        arguments = [self._reader().read(one) for one in call.expressions]
        scope = Scope([], self._outer, "sql")
        relation = apply_table_function(single, scope, self.binder(), function, arguments, outer=False)
        return build.keep_columns(relation, range(1, len(relation.fields)))

    def _table_argument(self, tree: Any) -> tuple[Rel, Scope]:
        if type(tree).__name__ == "Table":
            return self._from_item(tree)
        relation = self._nested(tree)
        return relation, Scope.of(relation.fields, (), self._outer, "sql")

    def _lateral(self, relation: Rel, scope: Scope, tree: Any, *, outer: bool) -> tuple[Rel, Scope]:
        """Build LATERAL TABLE(f(x)), UNNEST(x) and LATERAL (SELECT ...)."""
        alias = tree.args.get("alias")
        qualifier = (tree.alias,) if tree.alias else ()
        names = [column.name for column in (alias.args.get("columns") or ())] if alias is not None else []
        ordinality = False
        if type(tree).__name__ == "Unnest":
            function: Any = "UNNEST"
            arguments = [self._reader().read(one) for one in tree.expressions]
            offset = tree.args.get("offset")
            ordinality = bool(offset)
            if names and not isinstance(offset, bool) and offset is not None:  # the parser takes the last name away
                names.append(offset.name)
        elif type(tree.this).__name__ == "Anonymous":
            call = tree.this
            name = call.this if isinstance(call.this, str) else call.this.name
            function = self._t_env.catalogs.find_function(name)
            if function is None or not function.is_table:
                raise ValidationException(f"SQL validation failed. No match found for table function {name}(...)")
            arguments = [self._reader().read(one) for one in call.expressions]
        elif type(tree.this).__name__ == "Unnest":
            return self._lateral(relation, scope, tree.this, outer=outer)
        else:
            joined = join_lateral(relation, self._nested(tree.this, scope), outer=outer)
            return joined, scope.extended(joined.fields[len(relation.fields) :], qualifier, names)
        joined = apply_table_function(
            relation, scope, self.binder(), function, arguments, outer=outer, names=names, ordinality=ordinality
        )
        return joined, scope.extended(joined.fields[len(relation.fields) :], qualifier)

    def _join(self, left: Rel, left_scope: Scope, tree: Any) -> tuple[Rel, Scope]:
        side, kind = (tree.side or "").upper(), (tree.kind or "").upper()
        item = tree.this
        if type(item).__name__ in ("Lateral", "Unnest"):
            joined, joined_scope = self._lateral(left, left_scope, item, outer=side == "LEFT")
            on = tree.args.get("on")
            return (joined, joined_scope) if on is None else self._lateral_condition(joined, joined_scope, on, side)
        right, right_scope = self._from_item(item)
        scope = Scope([*left_scope.columns, *right_scope.columns], self._outer, "sql", aliases=left_scope.aliases)
        using = [one.name for one in tree.args.get("using") or ()]
        if (tree.args.get("method") or "").upper() == "NATURAL":
            using = [name for name in left.names if name in right.names]
        on = tree.args.get("on")
        condition = None if on is None else self._reader().read(on)
        version = item.args.get("version")
        as_of = None if version is None else self._reader().read(version.expression)
        join_kind = kind if kind in ("SEMI", "ANTI") else side or "INNER"
        return join_relations(
            left, right, join_kind, scope, self.binder(), condition=condition, using=using, as_of=as_of
        )

    def _lateral_condition(self, relation: Rel, scope: Scope, on: Any, side: str) -> tuple[Rel, Scope]:
        condition = self.binder().condition(self._reader().read(on), scope, "ON")
        if side == "LEFT" and not build.always_true(condition):
            raise ValidationException("SQL validation failed. LEFT JOIN of a table function supports only ON TRUE")
        return build.filter_rows(relation, condition), scope

    # -- WHERE, ORDER BY, LIMIT ---------------------------------------------------------------------------------

    def _filter(self, node: ast.Node, relation: Rel, scope: Scope, what: str) -> tuple[Rel, Scope]:
        """Build a condition. Its subqueries become joins."""
        return SubqueryPlanner(self._t_env).filter(relation, scope, self.binder(), node, what)

    def _modified(self, tree: Any, relation: Rel, keys: list[SortKey] | None = None, width: int | None = None) -> Rel:
        """Build ORDER BY, OFFSET and LIMIT."""
        order, limit, offset = tree.args.get("order"), tree.args.get("limit"), tree.args.get("offset")
        if order is None and limit is None and offset is None:
            return relation
        if keys is None:
            items = [] if order is None else [self._reader().sort_item(one) for one in order.expressions]
            nodes: list[ast.Node] = [ast.ColumnAt(index, name) for index, name in enumerate(relation.names)]
            places = [order_node(item.operand, nodes, relation.names) for item in items]
            unknown = next((one for one in places if not isinstance(one, int)), None)
            if unknown is not None:
                raise ValidationException(f"SQL validation failed. Column '{unknown}' not found in any table")
            keys = sort_keys(items, [one for one in places if isinstance(one, int)])
        return sort_relation(relation, keys, width, _count(limit), _count(offset) or 0)

    # -- VALUES and set operations ------------------------------------------------------------------------------

    def _values(self, tree: Any) -> Rel:
        reader, binder = self._reader(), self.binder()
        rows = []
        for row in tree.expressions:
            items = (
                row.expressions
                if type(row).__name__ == "Tuple"
                else [row.this if type(row).__name__ == "Paren" else row]
            )
            rows.append([binder.bind(reader.read(item), Scope([], None, "sql")) for item in items])
        if len({len(row) for row in rows}) > 1:
            raise ValidationException(
                "SQL validation failed. Values passed to VALUES operator must have compatible types"
            )
        types = []
        for column in zip(*rows, strict=True):
            joined = common_type([expr.type for expr in column])
            if joined is None:
                raise ValidationException(
                    "SQL validation failed. Values passed to VALUES operator must have compatible types"
                )
            types.append(joined)
        names = [f"EXPR${index}" for index in range(len(types))]
        if all(
            isinstance(expr, Constant) and expr.type.same_type(type_)
            for row in rows
            for expr, type_ in zip(row, types, strict=True)
        ):
            fields = tuple(Field(name, type_) for name, type_ in zip(names, types, strict=True))
            return ValuesRel(
                fields, tuple(tuple(expr.value for expr in row if isinstance(expr, Constant)) for row in rows)
            )
        single: Rel = ValuesRel((Field("ZERO", constant(0).type),), ((0,),))
        branches = [
            build.project(single, [cast_to(expr, type_) for expr, type_ in zip(row, types, strict=True)], names)
            for row in rows
        ]
        return branches[0] if len(branches) == 1 else build.union_all(branches, "VALUES")

    def _set_operation(self, tree: Any) -> Rel:
        left, right = self._nested(tree.this), self._nested(tree.expression)
        keeps_all = not tree.args.get("distinct")
        relation = set_operation(type(tree).__name__.upper(), left, right, keeps_all=keeps_all)
        return self._modified(tree, relation)

    # -- helpers ------------------------------------------------------------------------------------------------

    def _reader(self) -> ExpressionReader:
        ctes = self._ctes

        def query(tree: Any) -> Callable[[Scope], Rel]:
            inner = tree.this if type(tree).__name__ == "Subquery" else tree

            def translate(scope: Scope) -> Rel:
                return QueryTranslator(self._t_env, ctes, scope).translate(inner)

            return translate

        return ExpressionReader(query)

    def binder(self) -> Binder:
        return self._t_env.binder()


def _renamed(relation: Rel, names: list[str], what: str) -> Rel:
    if len(names) != len(relation.fields):
        raise ValidationException(
            f"SQL validation failed. List of column aliases must have same degree as table; table '{what}' has "
            f"{len(relation.fields)} columns, whereas alias list has {len(names)}"
        )
    return build.rename(relation, names)


def _count(tree: Any) -> int | None:
    if tree is None:
        return None
    expression = tree.args.get("expression") or tree.args.get("count")
    if expression is None or not str(expression.name).isdigit():
        raise SqlParserException("SQL parse failed. LIMIT and OFFSET take a number")
    return int(expression.name)
