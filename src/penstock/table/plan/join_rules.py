"""Rules for joins: push filters below them, and drop columns that are not needed.

A join should store as little as possible, and its rows are distributed by the equalities in its condition: `FROM a, b
WHERE a.x = b.y` is a filter of a cross join before these rules apply.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.runtime.table.expressions import Expr, input_columns, shifted
from penstock.table.plan import build
from penstock.table.plan.join_conditions import LEFT_SIDE, RIGHT_SIDE, conditions_of, side_of
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.join import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, JoinRel
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel
from penstock.table.plan.subquery import conjunction

_FILTERED_INPUTS = {  # the inputs to which a filter above the join may move
    INNER: {LEFT_SIDE, RIGHT_SIDE},
    LEFT: {LEFT_SIDE},
    RIGHT: {RIGHT_SIDE},
    FULL: set(),
    SEMI: {LEFT_SIDE},
    ANTI: {LEFT_SIDE},
}
_CONDITION_INPUTS = {  # the inputs to which a part of the join's own condition may move
    INNER: {LEFT_SIDE, RIGHT_SIDE},
    LEFT: {RIGHT_SIDE},
    RIGHT: {LEFT_SIDE},
    FULL: set(),
    SEMI: {LEFT_SIDE, RIGHT_SIDE},
    ANTI: {RIGHT_SIDE},
}


def filter_into_join(rel: Rel) -> Rel | None:
    """Move a filter of joined rows into an inner join, or to one input."""
    if not isinstance(rel, FilterRel) or type(rel.input) is not JoinRel:
        return None
    join = rel.input
    width = len(join.left.fields)
    stays: list[Expr] = []
    moves: dict[str, list[Expr]] = {LEFT_SIDE: [], RIGHT_SIDE: []}
    into: list[Expr] = []
    for condition in conditions_of(rel.condition):
        side = side_of(condition, width)
        if side in _FILTERED_INPUTS[join.kind]:
            moves[side].append(condition)
        elif join.kind == INNER:
            into.append(condition)
        else:
            stays.append(condition)
    if not into and not moves[LEFT_SIDE] and not moves[RIGHT_SIDE]:
        return None
    joined = _with_filters(join, moves, [*conditions_of(join.condition), *into])
    return build.filter_rows(joined, conjunction(stays)) if stays else joined


def condition_into_inputs(rel: Rel) -> Rel | None:
    """Move parts of a join's condition that read only one side to that side."""
    if type(rel) is not JoinRel:
        return None
    width = len(rel.left.fields)
    stays: list[Expr] = []
    moves: dict[str, list[Expr]] = {LEFT_SIDE: [], RIGHT_SIDE: []}
    for condition in conditions_of(rel.condition):
        side = side_of(condition, width)
        if side in _CONDITION_INPUTS[rel.kind]:
            moves[side].append(condition)
        else:
            stays.append(condition)
    if not moves[LEFT_SIDE] and not moves[RIGHT_SIDE]:
        return None
    return _with_filters(rel, moves, stays)


def _with_filters(join: JoinRel, moves: dict[str, list[Expr]], condition: list[Expr]) -> JoinRel:
    left, right, width = join.left, join.right, len(join.left.fields)
    if moves[LEFT_SIDE]:
        left = build.filter_rows(left, conjunction(moves[LEFT_SIDE]))
    if moves[RIGHT_SIDE]:
        own = [shifted(one, lambda index: index - width) for one in moves[RIGHT_SIDE]]
        right = build.filter_rows(right, conjunction(own))
    return replace(join, left=left, right=right, condition=conjunction(condition))


def narrow_join(rel: Rel) -> Rel | None:
    """Drop columns before a join that neither the projection above it nor the condition reads."""
    if not isinstance(rel, ProjectRel) or type(rel.input) is not JoinRel:
        return None
    join = rel.input
    needed = set().union(input_columns(join.condition), *map(input_columns, rel.expressions))
    narrowed = _narrowed(join, needed)
    if narrowed is None:
        return None
    new, place = narrowed
    expressions = tuple(shifted(expr, lambda index: place[index]) for expr in rel.expressions)
    return ProjectRel(rel.fields, new, expressions)


def narrow_semi_join(rel: Rel) -> Rel | None:
    """Keep only the columns of the condition on the right side of a semi join."""
    if type(rel) is not JoinRel or rel.kind not in (SEMI, ANTI):
        return None
    narrowed = _narrowed(rel, input_columns(rel.condition) | set(range(len(rel.left.fields))))
    return None if narrowed is None else narrowed[0]


def _narrowed(join: JoinRel, needed: set[int]) -> tuple[JoinRel, dict[int, int]] | None:
    width, total = len(join.left.fields), len(join.left.fields) + len(join.right.fields)
    left = [index for index in range(width) if index in needed] or [0]
    right = [index for index in range(width, total) if index in needed] or [width]
    if len(left) + len(right) == total:
        return None
    place = {old: new for new, old in enumerate([*left, *right])}
    fields = [*join.fields, *(() if join.kind not in (SEMI, ANTI) else join.right.fields)]
    kept = left if join.kind in (SEMI, ANTI) else [*left, *right]
    return (
        replace(
            join,
            fields=tuple(fields[index] for index in kept),
            left=build.keep_columns(join.left, left) if len(left) < width else join.left,
            right=build.keep_columns(join.right, [index - width for index in right])
            if len(right) < total - width
            else join.right,
            condition=shifted(join.condition, lambda index: place[index]),
        ),
        place,
    )


JOIN_RULES = [filter_into_join, condition_into_inputs, narrow_join, narrow_semi_join]
