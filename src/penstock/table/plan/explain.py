"""EXPLAIN: the plan as text (T127)."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.plan.nodes.base import Changelog, Rel
from penstock.table.plan.planner import Planner


def explain(planner: Planner, plans: Sequence[tuple[Rel, str | None]]) -> str:
    """Return the logical plan and the optimized plan with its changelogs."""
    logical, optimized = ["== Logical Plan =="], ["== Optimized Plan =="]
    for relation, sink in plans:
        logical += _tree(relation, sink)
        optimized += _tree(planner.optimize(relation), sink, planner)
    return "\n".join([*logical, "", *optimized, ""])


def _tree(relation: Rel, sink: str | None, planner: Planner | None = None) -> list[str]:
    lines = [] if sink is None else [f"Sink(table=[{sink}])"]
    _add(lines, relation, 0 if sink is None else 1, planner)
    return lines


def _add(lines: list[str], rel: Rel, depth: int, planner: Planner | None) -> None:
    indent = "" if not depth else "   " * (depth - 1) + "+- "
    kinds = "" if planner is None else f", changelogMode=[{_kinds(planner.changelog(rel))}]"
    lines.append(indent + rel.describe() + kinds)
    for one in rel.inputs:
        _add(lines, one, depth + 1, planner)


def _kinds(changelog: Changelog) -> str:
    return "I" + (",UB,UA" if changelog.updates else "") + (",D" if changelog.deletes else "")
