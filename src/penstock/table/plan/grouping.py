"""GROUP BY: plain keys, GROUPING SETS, ROLLUP and CUBE (T57)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from penstock.core.table.types import BigIntType
from penstock.runtime.table.expressions import Constant, Expr, InputRef
from penstock.table.plan import ast
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import AggregateBuilder
from penstock.table.plan.nodes.aggregate import ExpandRel
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.scope import Scope


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """All keys, and the sets of keys by position. One set of all keys is a plain GROUP BY."""

    keys: list[ast.Node]
    sets: list[tuple[int, ...]]

    @property
    def is_plain(self) -> bool:
        """Whether there is only one set."""
        return len(self.sets) == 1 and len(self.sets[0]) == len(self.keys)


def grouping_sets(group: Any, reader: Any, nodes: Sequence[ast.Node]) -> GroupingSets:
    """Return the grouping sets of GROUP BY."""
    keys: list[ast.Node] = []

    def place(node: ast.Node) -> int:
        if node not in keys:
            keys.append(node)
        return keys.index(node)

    def members(tree: Any) -> tuple[int, ...]:
        kind = type(tree).__name__
        if kind == "Tuple":
            return tuple(place(reader.read(one)) for one in tree.expressions)
        return (place(reader.read(tree.this if kind == "Paren" else tree)),)

    def expand(tree: Any) -> list[tuple[int, ...]]:
        kind = type(tree).__name__
        # A function also has expressions, its arguments, which are not keys.
        parts = [members(one) for one in tree.expressions] if kind in ("Rollup", "Cube") else []
        match kind:
            case "Rollup":
                return [_joined(parts[:size]) for size in range(len(parts), -1, -1)]
            case "Cube":
                sizes = range(len(parts), -1, -1)
                return [_joined(chosen) for size in sizes for chosen in combinations(parts, size)]
            case "GroupingSets":
                nested = [
                    expand(one) if type(one).__name__ in ("Rollup", "Cube", "GroupingSets") else [members(one)]
                    for one in tree.expressions
                ]
                return [one for some in nested for one in some]
        return [members(tree)]

    trees = [] if group is None else list(group.expressions)
    if group is not None:
        for name in ("grouping_sets", "rollup", "cube"):
            trees += group.args.get(name) or []
    sets = [_joined(chosen) for chosen in product(*(expand(tree) for tree in trees))]
    return GroupingSets(keys, sets)


def _joined(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    seen: list[int] = []
    for part in parts:
        seen += [one for one in part if one not in seen]
    return tuple(seen)


def with_grouping_sets(
    relation: Rel, scope: Scope, binder: Binder, keys: list[Expr], names: list[str], sets: GroupingSets
) -> AggregateBuilder:
    """Copy each row for each set, with NULL for keys outside the set and the set's number at the end."""
    width = len(relation.fields)
    number = BigIntType(_nullable=False)
    projections = []
    for members in sets.sets:
        copies: list[Expr] = [InputRef(field.type, index) for index, field in enumerate(relation.fields)]
        copies += [key if place in members else Constant(key.type.nullable(), None) for place, key in enumerate(keys)]
        missing = sum(1 << place for place in range(len(keys)) if place not in members)
        projections.append((*copies, Constant(number, missing)))
    fields = [
        *relation.fields,
        *(Field(name, key.type.nullable()) for name, key in zip(names, keys, strict=True)),
        Field("$e", number),
    ]
    expanded = ExpandRel(tuple(fields), relation, tuple(projections))
    group_keys: list[Expr] = [InputRef(field.type, width + place) for place, field in enumerate(fields[width:])]
    return _GroupingSetsBuilder(expanded, scope, binder, group_keys, [*names, "$e"], keys)


class _GroupingSetsBuilder(AggregateBuilder):
    """GROUPING and GROUPING_ID read the number of the set."""

    def _grouping(self, node: ast.FunctionCall) -> Expr:
        binder = Binder()
        missing = InputRef(self.keys[-1].type, len(self.keys) - 1)
        number = BigIntType(_nullable=False)
        total: Expr = Constant(number, 0)
        for place in self._key_places(node):
            bit = Constant(number, 1 << place)
            flag = binder.function("%", binder.function("/", missing, bit), Constant(number, 2))
            total = binder.function("+", binder.function("*", total, Constant(number, 2)), flag)
        return total
