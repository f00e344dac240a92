"""MATCH_RECOGNIZE: names and types of patterns, conditions and measures (T90 to T93)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.table.types import DataType
from penstock.runtime.table.aggregates.registry import find_aggregate
from penstock.runtime.table.expressions import Expr, InputRef
from penstock.runtime.table.match_values import MatchValue
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import is_aggregate_call
from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import Field, Rel, TimeAttribute
from penstock.table.plan.nodes.match import MatchCondition, MatchRel, PatternTerm
from penstock.table.plan.scope import Scope
from penstock.table.plan.sorting import sort_keys
from penstock.util.exceptions import TableException, ValidationException

__all__ = ["MatchDescription", "PatternTerm", "match_recognize"]


@dataclass(frozen=True, slots=True)
class MatchDescription:
    """The contents of a MATCH_RECOGNIZE clause."""

    partition: tuple[ast.Node, ...]
    order: tuple[ast.SortItem, ...]
    measures: tuple[tuple[str, ast.Node], ...]
    skip: tuple[str, str]
    pattern: tuple[PatternTerm, ...]
    within: int | None
    define: dict[str, ast.Node]


def match_recognize(description: MatchDescription, relation: Rel, scope: Scope, binder: Binder) -> Rel:
    """Build the relation of partition keys and measures."""
    return _MatchBuilder(description, relation, scope, binder).build()


class _MatchBuilder:
    def __init__(self, description: MatchDescription, relation: Rel, scope: Scope, binder: Binder) -> None:
        self._description = description
        self._relation = relation
        self._scope = scope
        self._binder = binder
        self._variables = list(dict.fromkeys(term.variable for term in description.pattern))
        self._columns: list[Expr] = [InputRef(field.type, index) for index, field in enumerate(relation.fields)]

    def build(self) -> Rel:
        """Build the node, with a projection before and after it."""
        given = self._description
        self._check_pattern()
        partition = [self._plain_column(node, "PARTITION BY") for node in given.partition]
        order = sort_keys(given.order, [self._plain_column(item.operand, "ORDER BY") for item in given.order])
        time = self._check_order(order[0].column if order else None, descending=bool(order) and order[0].descending)
        conditions = [(name, self._condition(name, node)) for name, node in given.define.items()]
        measures = _Values(self, None, time)
        names = [name for name, _ in given.measures]
        bound = [measures.binder().bind(node, self._scope) for _, node in given.measures]
        width = len(partition)
        bound = [_moved(expr, measures.base, width) for expr in bound]
        source = build.project(
            self._relation,
            self._columns,
            [
                *self._relation.names,
                *(f"$m{index}" for index in range(len(self._columns) - len(self._relation.fields))),
            ],
        )
        keys = [self._relation.fields[index] for index in partition]
        fields = [*keys, *(Field(f"$v{index}", *kind) for index, kind in enumerate(measures.kinds))]
        match = MatchRel(
            tuple(fields),
            source,
            tuple(partition),
            tuple(order),
            given.pattern,
            given.skip,
            given.within,
            tuple(conditions),
            tuple(measures.values),
        )
        outer: list[Expr] = [InputRef(field.type, index) for index, field in enumerate(keys)]
        return build.project(match, [*outer, *bound], [*(field.name for field in keys), *names])

    # -- checks -------------------------------------------------------------------------------------------------

    def _check_pattern(self) -> None:
        given = self._description
        last = given.pattern[-1]
        if last.greedy and last.low != last.high and (last.low, last.high) != (0, 1):
            raise TableException(
                "Greedy quantifiers are not allowed as the last element of a Pattern yet. Finish your pattern with "
                "either a simple variable or reluctant quantifier."
            )
        if any((term.low, term.high, term.greedy) == (0, 1, False) for term in given.pattern):
            raise TableException("Reluctant optional variables are not supported yet.")
        names = [term.variable for term in given.pattern]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TableException(f"Pattern variable '{twice}' is used more than once, which is not supported.")
        for name in given.define:
            if name not in names:
                raise ValidationException(f"SQL validation failed. Unknown pattern '{name}' in DEFINE")
        if given.skip[1] and given.skip[1] not in names:
            raise ValidationException(f"SQL validation failed. Unknown pattern '{given.skip[1]}' in AFTER MATCH SKIP")

    def _check_order(self, column: int | None, *, descending: bool) -> int:
        if column is None or self._relation.fields[column].time is None:
            raise TableException("You must specify either rowtime or proctime for order by as the first one.")
        if descending:
            raise TableException("Primary sort order of a streaming table must be ascending on time.")
        return column

    def _plain_column(self, node: ast.Node, what: str) -> int:
        bound = self._binder.bind(node, self._scope)
        if not isinstance(bound, InputRef):
            raise ValidationException(f"SQL validation failed. {what} of MATCH_RECOGNIZE takes columns")
        return bound.index

    # -- expressions --------------------------------------------------------------------------------------------

    def _condition(self, variable: str, node: ast.Node) -> MatchCondition:
        values = _Values(self, variable, None)
        bound = values.binder().condition(node, self._scope, "DEFINE")
        if not values.values:
            return MatchCondition(self.column(bound))
        return MatchCondition(None, bound, tuple(values.values))

    def column(self, expr: Expr) -> int:
        """Return the position of an expression of a single row."""
        if expr not in self._columns:
            self._columns.append(expr)
        return self._columns.index(expr)

    def row_expression(self, node: ast.Node) -> tuple[str | None, Expr]:
        """Bind an expression over the rows of one variable. Return the variable (or None) and the result."""
        found: set[str] = set()

        def strip(one: ast.Node) -> ast.Node | None:
            if isinstance(one, ast.Ref) and len(one.path) > 1 and one.path[0] in self._variables:
                found.add(one.path[0])
                return ast.Ref(one.path[1:])
            return None

        plain = ast.rewrite(node, strip)
        if len(found) > 1:
            raise ValidationException(
                f"SQL validation failed. LAST, FIRST and aggregates are of one variable, not of {sorted(found)}"
            )
        return (found.pop() if found else None), self._binder.bind(plain, self._scope)

    @property
    def variables(self) -> list[str]:
        """The variables of the pattern, in order."""
        return self._variables

    @property
    def base_binder(self) -> Binder:
        """The binder of expressions of single rows."""
        return self._binder

    @property
    def relation(self) -> Rel:
        """The input relation."""
        return self._relation


class _Values:
    """Values that an expression reads from the rows of a match, as columns after those of the input.

    ``variable`` is the variable of the condition, or None for measures.
    """

    def __init__(self, owner: _MatchBuilder, variable: str | None, time: int | None) -> None:
        self._owner = owner
        self._variable = variable
        self._time = time
        self.base = 1_000_000
        """A placeholder for the first column, until the width of the input is known."""
        self.values: list[tuple[MatchValue, AggregateSpec | None]] = []
        self.kinds: list[tuple[DataType, TimeAttribute | None]] = []

    def binder(self) -> Binder:
        """Return a binder for conditions or measures."""
        base = self._owner.base_binder
        return Binder(base.user_functions, base.subqueries, [self._intercept, *base.intercept])

    def _intercept(self, node: ast.Node, scope: Scope) -> Expr | None:
        match node:
            case ast.Ref():
                return self._reference(node)
            case ast.FunctionCall() if node.name.upper() in ("LAST", "FIRST"):
                return self._navigation(node)
            case ast.FunctionCall() if node.name.upper() in ("MATCH_ROWTIME", "MATCH_PROCTIME"):
                return self._match_time(node.name.upper())
            case ast.FunctionCall() if node.name.upper() in ("PREV", "NEXT", "CLASSIFIER", "MATCH_NUMBER"):
                raise ValidationException(
                    f"SQL validation failed. {node.name.upper()} is not supported: use LAST(v.c, 1)"
                )
        if is_aggregate_call(node, self._owner.base_binder):
            return self._aggregate(node)
        return None

    def _reference(self, node: ast.Ref) -> Expr | None:
        """Bind ``v.c``, which means LAST(v.c). In the condition of v it is the row itself."""
        variable, bound = self._owner.row_expression(node)
        if self._variable is not None and variable in (None, self._variable):
            return bound
        return self._add(MatchValue("LAST", variable, (self._owner.column(bound),)), bound.type.nullable())

    def _navigation(self, node: ast.FunctionCall) -> Expr:
        if not 1 <= len(node.arguments) <= 2:
            raise ValidationException(f"SQL validation failed. {node.name.upper()} takes a column and a number of rows")
        offset = 0 if len(node.arguments) == 1 else getattr(node.arguments[1], "value", None)
        if not isinstance(offset, int):
            raise ValidationException(f"SQL validation failed. The offset of {node.name.upper()} must be a number")
        variable, bound = self._owner.row_expression(node.arguments[0])
        value = MatchValue(node.name.upper(), variable, (self._owner.column(bound),), offset)
        return self._add(value, bound.type.nullable())

    def _match_time(self, name: str) -> Expr:
        if self._time is None:
            raise ValidationException(f"SQL validation failed. {name}() is for MEASURES")
        field = self._owner.relation.fields[self._time]
        return self._add(MatchValue("LAST", None, (self._time,)), field.type.not_null(), time=field.time)

    def _aggregate(self, node: ast.Node) -> Expr:
        assert isinstance(node, (ast.FunctionCall, ast.UserFunctionCall))
        found: list[str | None] = []
        bound: list[Expr] = []
        for argument in node.arguments:
            if isinstance(argument, ast.Star):
                found.append(argument.qualifier[0] if argument.qualifier else None)
                continue
            variable, expr = self._owner.row_expression(argument)
            found.append(variable)
            bound.append(expr)
        if len(set(found)) > 1:
            raise ValidationException("SQL validation failed. An aggregate is of the rows of one variable")
        columns = tuple(self._owner.column(expr) for expr in bound)
        types = [expr.type for expr in bound]
        if isinstance(node, ast.FunctionCall) and find_aggregate(node.name) is not None:
            definition = find_aggregate(node.name)
            assert definition is not None
            result, name = definition.result_type(types), definition.name
            if result is None:
                raise ValidationException(
                    f"SQL validation failed. Cannot apply '{name}' to {', '.join(map(str, types))}"
                )
            if name != "COUNT":
                result = result.nullable()
            spec = AggregateSpec(name, columns, result, node.distinct, None, node.options)
        else:
            function = (
                node.function
                if isinstance(node, ast.UserFunctionCall)
                else self._owner.base_binder.user_functions(node.name)
            )
            assert function is not None
            result = function.result_type
            spec = AggregateSpec(function, columns, result, node.distinct)
        return self._add(MatchValue("AGGREGATE", found[0] if found else None, columns), result, spec)

    def _add(
        self, value: MatchValue, type_: DataType, spec: AggregateSpec | None = None, time: TimeAttribute | None = None
    ) -> Expr:
        if (value, spec) not in self.values:
            self.values.append((value, spec))
            self.kinds.append((type_, time))
        return InputRef(type_, self.base + self.values.index((value, spec)))


def _moved(expr: Expr, base: int, width: int) -> Expr:
    """Shift a measure to the node's columns: its values follow the partition keys."""
    from penstock.runtime.table.expressions import shifted

    return shifted(expr, lambda index: index - base + width)
