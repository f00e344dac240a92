"""GROUP BY TUMBLE(ts, size) and the windows of the Table API, as window table functions (T68)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.runtime.table.expressions import Expr, InputRef
from penstock.table.plan import ast, build
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import AggregateBuilder
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.scope import Scope, ScopeColumn
from penstock.table.plan.table_functions import check_time_attribute, make_window
from penstock.util.exceptions import ValidationException

_FUNCTIONS = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}
WINDOW_PARTS = ("$START", "$END", "$ROWTIME")
"""The Table API's names of the parts of a window."""
_PARTS = {"START": 0, "END": 1, "ROWTIME": 2, "PROCTIME": 2}


@dataclass(frozen=True, slots=True)
class GroupWindowSpec:
    """A window in GROUP BY, and the names of its parts in expressions."""

    kind: str
    time: ast.Node
    lengths: dict[str, int]
    alias: str | None = None
    call: ast.FunctionCall | None = None

    def part(self, node: ast.Node) -> int | None:
        """Return 0 to 2 if a node is the start, the end or the time of this window."""
        if not isinstance(node, ast.FunctionCall):
            return None
        if self.alias is not None:
            is_mine = node.arguments == (ast.Ref((self.alias,)),) and node.name.startswith("$")
            return _PARTS.get(node.name[1:]) if is_mine else None
        kind, _, part = node.name.upper().partition("_")
        if self.call is None or kind != self.kind or part not in _PARTS:
            return None
        if node.arguments != self.call.arguments:
            raise ValidationException(
                f"{node.name.upper()} needs the same arguments as {kind} in GROUP BY: GROUP BY has no such window"
            )
        return _PARTS[part]


def group_window(keys: Sequence[ast.Node]) -> ast.FunctionCall | None:
    """Return the window among the keys of GROUP BY."""
    found = [key for key in keys if isinstance(key, ast.FunctionCall) and key.name.upper() in _FUNCTIONS]
    if len(found) > 1:
        raise ValidationException("SQL validation failed. Only one window is allowed in GROUP BY")
    return found[0] if found else None


def window_of_call(call: ast.FunctionCall) -> GroupWindowSpec:
    """Parse TUMBLE(ts, size), HOP(ts, slide, size), SESSION(ts, gap)."""
    kind = call.name.upper()
    names = _FUNCTIONS[kind]
    if len(call.arguments) != len(names) + 1:
        raise ValidationException(f"SQL validation failed. {kind} needs a time attribute and {', '.join(names)}")
    lengths = {}
    for name, node in zip(names, call.arguments[1:], strict=True):
        if not isinstance(node, ast.Literal) or not isinstance(node.value, dt.timedelta):
            raise ValidationException(f"SQL validation failed. {name} of {kind} must be an interval of days to seconds")
        lengths[name] = node.value // dt.timedelta(milliseconds=1)
    return GroupWindowSpec(kind, call.arguments[0], lengths, call=call)


class GroupWindowBuilder:
    """Builds an aggregate by window and keys. ``builder`` builds the node, the binder resolves window parts."""

    def __init__(
        self,
        relation: Rel,
        scope: Scope,
        binder: Binder,
        window: GroupWindowSpec,
        keys: Sequence[ast.Node],
        names: Sequence[str],
    ) -> None:
        self._window = window
        bound = [binder.bind(key, scope) for key in keys]
        time = binder.bind(window.time, scope)
        if not isinstance(time, InputRef):
            raise ValidationException(f"A group window expects a time attribute for grouping ({window.kind})")
        check_time_attribute(window.kind, relation.fields[time.index])
        width = len(relation.fields)
        columns: list[Expr] = [InputRef(field.type, index) for index, field in enumerate(relation.fields)]
        partition = []
        if window.kind == "SESSION":
            for key in bound:
                if key not in columns:
                    columns.append(key)
                partition.append(columns.index(key))
        if len(columns) > width:
            extra = [f"$k{index}" for index in range(len(columns) - width)]
            relation = build.project(relation, columns, [*relation.names, *extra])
        windowed = make_window(window.kind, relation, time.index, window.lengths, tuple(partition))
        added = windowed.fields[width:]
        hidden = [ScopeColumn(field, ("$window",)) for field in added]
        self.scope = Scope([*scope.columns, *hidden], scope.outer, scope.style, scope.correlated)
        first = len(windowed.fields) - 3
        self._places = [first, first + 1, first + 2]
        parts: list[Expr] = [InputRef(windowed.fields[place].type, place) for place in self._places]
        all_names = [*names, "window_start", "window_end", "window_time"]
        self.builder = AggregateBuilder(windowed, self.scope, binder, [*bound, *parts], all_names)
        self._first_part = len(bound)
        self._types = [part.type for part in parts]

    def outer_binder(self) -> Binder:
        """Return a binder for expressions over the result."""
        outer = self.builder.outer_binder()
        outer.intercept.insert(0, self._part)
        return outer

    def _part(self, node: ast.Node, _: Scope) -> Expr | None:
        part = self._window.part(node)
        return None if part is None else InputRef(self._types[part], self._first_part + part)
