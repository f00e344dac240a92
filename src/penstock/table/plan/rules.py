"""Rewrites logical plans. A rule maps a node to another one, or returns None if it does not apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.runtime.table.expressions import Expr, InputRef, transform
from penstock.table.plan.join_rules import JOIN_RULES
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel
from penstock.table.plan.rank_rules import RANK_RULES
from penstock.table.plan.time_joins import TIME_JOIN_RULES, check_time_attributes
from penstock.table.plan.windows import window_aggregate

Rule = Callable[[Rel], Rel | None]


def optimize(rel: Rel, *, batch: bool) -> Rel:
    """Apply all rules from the leaves up until none applies, then the rules for joins in time."""
    rel = _applied(rel, RULES)
    if batch:
        return rel
    rel = _applied(rel, TIME_JOIN_RULES)
    check_time_attributes(rel)
    return rel


def _applied(rel: Rel, rules: Sequence[Rule]) -> Rel:
    inputs = [_applied(one, rules) for one in rel.inputs]
    if any(new is not old for new, old in zip(inputs, rel.inputs, strict=True)):
        rel = rel.with_inputs(inputs)
    for rule in rules:
        changed = rule(rel)
        if changed is not None:
            return _applied(changed, rules)
    return rel


def merge_projections(rel: Rel) -> Rel | None:
    """Merge a projection of a projection, if nothing is computed twice."""
    if not isinstance(rel, ProjectRel) or not isinstance(rel.input, ProjectRel):
        return None
    inner = rel.input
    computed = [index for index, expr in enumerate(inner.expressions) if not isinstance(expr, InputRef)]
    used = [node.index for expr in rel.expressions for node in _refs(expr)]
    if any(used.count(index) > 1 for index in computed):
        return None
    merged = tuple(substitute(expr, inner.expressions) for expr in rel.expressions)
    return ProjectRel(rel.fields, inner.input, merged)


def filter_below_projection(rel: Rel) -> Rel | None:
    """Move a filter of plain columns below a projection, so that both become one Calc."""
    if not isinstance(rel, FilterRel) or not isinstance(rel.input, ProjectRel):
        return None
    project = rel.input
    if any(not isinstance(project.expressions[index], InputRef) for index in rel.reads()):
        return None
    condition = substitute(rel.condition, project.expressions)
    return project.with_inputs([FilterRel(project.input.fields, project.input, condition)])


def substitute(expr: Expr, columns: Sequence[Expr]) -> Expr:
    """Replace the columns of an expression."""
    return transform(expr, lambda node: columns[node.index] if isinstance(node, InputRef) else None)


def _refs(expr: Expr) -> list[InputRef]:
    from penstock.runtime.table.expressions import walk

    return [node for node in walk(expr) if isinstance(node, InputRef)]


RULES: list[Rule] = [merge_projections, filter_below_projection, window_aggregate, *RANK_RULES, *JOIN_RULES]
"""The rules in order. Put rules for a new kind of node into a separate module and add them here."""
