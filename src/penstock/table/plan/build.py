"""Builds relations: each function checks its arguments and returns a new node (Flink's OperationTreeBuilder)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.core.table.type_rules import common_type
from penstock.core.table.types import BigIntType, BooleanType, DataType
from penstock.runtime.table.aggregates.registry import find_aggregate
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef
from penstock.table.plan import ast
from penstock.table.plan.bind import Binder, cast_to, constant
from penstock.table.plan.nodes.aggregate import AggregateRel, AggregateSpec
from penstock.table.plan.nodes.base import Field, Rel, TimeAttribute
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel, UnionRel
from penstock.table.plan.scope import Scope, ScopeColumn
from penstock.util.exceptions import ValidationException


def project(rel: Rel, expressions: Sequence[Expr], names: Sequence[str]) -> Rel:
    """Compute columns. A plain reference to a time attribute remains a time attribute (T41)."""
    fields = []
    for expr, name in zip(expressions, names, strict=True):
        time = rel.fields[expr.index].time if isinstance(expr, InputRef) else None
        if isinstance(expr, Call) and expr.function == "PROCTIME":
            time = TimeAttribute.PROCTIME
        fields.append(Field(name, expr.type, time))
    if isinstance(rel, ProjectRel) and all(isinstance(expr, InputRef) for expr in expressions):
        inner = [rel.expressions[expr.index] for expr in expressions if isinstance(expr, InputRef)]
        return ProjectRel(tuple(fields), rel.input, tuple(inner))
    return ProjectRel(tuple(fields), rel, tuple(expressions))


def keep_columns(rel: Rel, columns: Sequence[int], names: Sequence[str] | None = None) -> Rel:
    """Keep some columns of a relation."""
    refs = [InputRef(rel.fields[index].type, index) for index in columns]
    return project(rel, refs, names or [rel.fields[index].name for index in columns])


def rename(rel: Rel, names: Sequence[str]) -> Rel:
    """Rename the columns."""
    if list(names) == rel.names:
        return rel
    if isinstance(rel, ProjectRel):
        return replace(rel, fields=tuple(replace(one, name=name) for one, name in zip(rel.fields, names, strict=True)))
    return keep_columns(rel, range(len(rel.fields)), names)


def filter_rows(rel: Rel, condition: Expr) -> Rel:
    """Keep the rows for which a condition is TRUE."""
    if isinstance(condition, Constant) and condition.value is True:
        return rel
    return FilterRel(rel.fields, rel, condition)


def union_all(branches: Sequence[Rel], what: str = "UNION") -> Rel:
    """Build UNION ALL. Columns get their common types (T23)."""
    counts = {len(branch.fields) for branch in branches}
    if len(counts) > 1:
        raise ValidationException(f"Column count mismatch in {what}")
    types: list[DataType] = []
    for position, columns in enumerate(zip(*(branch.fields for branch in branches), strict=True)):
        joined = common_type([one.type for one in columns])
        if joined is None:
            raise ValidationException(
                f"Type mismatch in column {position + 1} of {what}: {', '.join(str(one.type) for one in columns)}"
            )
        types.append(joined)
    aligned = [cast_columns(branch, types) for branch in branches]
    fields = []
    for columns, type_ in zip(zip(*(branch.fields for branch in aligned), strict=True), types, strict=True):
        same = len({one.time for one in columns}) == 1
        fields.append(Field(columns[0].name, type_, columns[0].time if same else None))
    flat: list[Rel] = []
    for branch in aligned:
        flat += branch.branches if isinstance(branch, UnionRel) else [branch]
    return UnionRel(tuple(fields), tuple(flat))


def cast_columns(rel: Rel, types: Sequence[DataType], names: Sequence[str] | None = None) -> Rel:
    """Cast the columns to other types."""
    if all(one.type.same_type(type_) for one, type_ in zip(rel.fields, types, strict=True)):
        return rel if names is None else rename(rel, names)
    refs = [InputRef(one.type, index) for index, one in enumerate(rel.fields)]
    return project(rel, [cast_to(ref, type_) for ref, type_ in zip(refs, types, strict=True)], names or rel.names)


def distinct(rel: Rel) -> Rel:
    """Remove duplicate rows."""
    return AggregateRel(rel.fields, rel, tuple(range(len(rel.fields))), ())


# -- aggregates -------------------------------------------------------------------------------------------------------


def is_aggregate_call(node: ast.Node, binder: Binder) -> bool:
    """Whether a node is a call of an aggregate function."""
    match node:
        case ast.FunctionCall():
            if find_aggregate(node.name) is not None:
                return True
            user = binder.user_functions(node.name)
            return user is not None and user.is_aggregate
        case ast.UserFunctionCall():
            return bool(node.function.is_aggregate)
    return False


def has_aggregate(node: ast.Node, binder: Binder) -> bool:
    """Whether an expression has an aggregate call outside of OVER and subqueries."""
    if isinstance(node, (ast.Over, ast.Subquery)):
        return False
    return is_aggregate_call(node, binder) or any(has_aggregate(child, binder) for child in ast.children(node))


GROUPING_FUNCTIONS = ("GROUPING", "GROUPING_ID", "GROUP_ID")


class AggregateBuilder:
    """Builds GROUP BY: collects the aggregate calls of later expressions and binds these to the result."""

    def __init__(
        self,
        rel: Rel,
        scope: Scope,
        binder: Binder,
        keys: Sequence[Expr],
        key_names: Sequence[str],
        meanings: Sequence[Expr] | None = None,
    ) -> None:
        self._rel = rel
        self._meanings = list(keys if meanings is None else meanings)
        """Each key in terms of the input. It differs from the key only for grouping sets."""
        self._scope = scope
        self.binder = binder
        self.keys = list(keys)
        self.key_names = list(key_names)
        self._columns: list[Expr] = list(keys)
        self._calls: list[AggregateSpec] = []
        self._inner = Binder(binder.user_functions, None, list(binder.intercept))

    def outer_binder(self) -> Binder:
        """Return a binder for expressions over the result, whose columns are keys and aggregates."""
        return Binder(self.binder.user_functions, self.binder.subqueries, [self._intercept])

    def _intercept(self, node: ast.Node, scope: Scope) -> Expr | None:
        if isinstance(node, (ast.Literal, ast.Named, ast.Subquery)):
            return None
        if is_aggregate_call(node, self.binder):
            return self._aggregate(node)
        if isinstance(node, ast.FunctionCall) and node.name.upper() in GROUPING_FUNCTIONS:
            return self._grouping(node)
        if has_aggregate(node, self.binder):
            return None
        try:
            bound = self._inner.bind(node, self._scope)
        except ValidationException:
            if isinstance(node, ast.Ref):
                raise
            return None
        for index, meaning in enumerate(self._meanings):
            if bound == meaning:
                return InputRef(self.keys[index].type, index)
        if isinstance(node, (ast.Ref, ast.ColumnAt)):
            raise ValidationException(f"Expression '{node}' is not being grouped")
        return None

    def _grouping(self, node: ast.FunctionCall) -> Expr:
        """GROUPING and GROUPING_ID: every key is in the only set of a plain GROUP BY (T57)."""
        self._key_places(node)
        return Constant(BigIntType(_nullable=False), 0)

    def _key_places(self, node: ast.FunctionCall) -> list[int]:
        """Which keys the arguments of GROUPING are."""
        places = []
        for argument in node.arguments:
            bound = self._inner.bind(argument, self._scope)
            if bound not in self._meanings:
                raise ValidationException(f"Argument to operator '{node.name.upper()}' must be a grouped expression")
            places.append(self._meanings.index(bound))
        return places

    def _aggregate(self, node: ast.Node) -> Expr:
        assert isinstance(node, (ast.FunctionCall, ast.UserFunctionCall))
        arguments = [one for one in node.arguments if not isinstance(one, ast.Star)]
        bound = self._inner.bind_all(arguments, self._scope)
        condition = None
        if node.filter is not None:
            condition = self._column(self._inner.condition(node.filter, self._scope, "FILTER"))
        function: Any
        if isinstance(node, ast.FunctionCall) and find_aggregate(node.name) is not None:
            definition = find_aggregate(node.name)
            assert definition is not None
            function, result = definition.name, definition.result_type([one.type for one in bound])
            if result is None:
                types = ", ".join(f"<{one.type}>" for one in bound)
                raise ValidationException(f"Cannot apply '{function}' to arguments of type '{function}({types})'")
        else:
            function = (
                node.function if isinstance(node, ast.UserFunctionCall) else self.binder.user_functions(node.name)
            )
            function.check_arguments(len(bound))
            bound = cast_arguments(function, bound)
            result = function.result_type
        if not self.keys:
            result = result.nullable() if function != "COUNT" else result
        columns = tuple(self._column(one) for one in bound)
        options = node.options if isinstance(node, ast.FunctionCall) else ()
        spec = AggregateSpec(function, columns, result, node.distinct and bool(bound), condition, options)
        if spec not in self._calls:
            self._calls.append(spec)
        return InputRef(result, len(self.keys) + self._calls.index(spec))

    def _column(self, expr: Expr) -> int:
        """Return the position of an expression in the projection before the aggregate."""
        if expr not in self._columns[len(self.keys) :] and expr not in self.keys:
            self._columns.append(expr)
        return self._columns.index(expr)

    def build(self) -> Rel:
        """Build the aggregate. Call this after binding all expressions."""
        # A batch without columns would lose its number of rows, so COUNT(*) alone reads a constant.
        columns = self._columns or [Constant(BooleanType(_nullable=False), True)]
        source = project(self._rel, columns, [f"$f{index}" for index in range(len(columns))])
        fields = [
            Field(name, key.type, source.fields[index].time)
            for index, (name, key) in enumerate(zip(self.key_names, self.keys, strict=True))
        ]
        fields += [Field(f"EXPR${index}", call.type) for index, call in enumerate(self._calls)]
        return AggregateRel(tuple(fields), source, tuple(range(len(self.keys))), tuple(self._calls))

    def scope_of(self, result: Rel) -> Scope:
        """Return the names that subqueries may use: columns that are keys. Other columns of the result have none."""
        columns = [ScopeColumn(replace(one, name="")) for one in result.fields]
        places: dict[int, int] = {}
        for place, meaning in enumerate(self._meanings):
            if isinstance(meaning, InputRef) and meaning.index not in places:
                places[meaning.index] = place
                known = self._scope.columns[meaning.index]
                columns[place] = ScopeColumn(replace(result.fields[place], name=known.field.name), known.qualifier)
        aliases = [(table, name, places[index]) for table, name, index in self._scope.aliases if index in places]
        return Scope(columns, self._scope.outer, self._scope.style, aliases=aliases)


def cast_arguments(function: Any, bound: list[Expr]) -> list[Expr]:
    """Cast the arguments to the types that a user-defined function declares, if any."""
    if function.input_types is None:
        return bound
    return [cast_to(one, type_) for one, type_ in zip(bound, function.input_types, strict=True)]


def always_true(expr: Expr) -> bool:
    """Whether a condition is the constant TRUE."""
    return isinstance(expr, Constant) and expr.value is True and isinstance(expr.type, BooleanType)


def by_name(
    rel: Rel, wanted: Sequence[tuple[str, DataType]], columns: Sequence[str] | None, partition: dict[str, Any]
) -> Rel:
    """Order the columns of INSERT INTO t (a, b) as in the table. Missing columns are NULL (T123)."""
    names = [name for name, _ in wanted]
    given = [name for name in names if name not in partition] if columns is None else list(columns)
    for name in (*given, *partition):
        if name not in names:
            raise ValidationException(f"Unknown target column '{name}'")
    if len(given) != len(rel.fields):
        raise ValidationException(
            f"Number of INSERT target columns ({len(given)}) does not equal number of source items ({len(rel.fields)})"
        )
    expressions: list[Expr] = []
    for name, type_ in wanted:
        if name in partition:
            expressions.append(cast_to(constant(partition[name]), type_))
        elif name in given:
            index = given.index(name)
            expressions.append(InputRef(rel.fields[index].type, index))
        elif not type_.is_nullable:
            raise ValidationException(f"Column '{name}' has no default value and does not allow NULLs")
        else:
            expressions.append(Constant(type_, None))
    return project(rel, expressions, names)
