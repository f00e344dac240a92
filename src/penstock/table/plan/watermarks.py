"""Finds queries that depend on the position of watermarks among the rows.

A watermark after each row that advances the clock splits a batch. Only CURRENT_WATERMARK depends on all of them.
Windows, sorts and joins in time depend on those before late rows. Other nodes have no clock.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from penstock.runtime.table.expressions import Call, Expr
from penstock.runtime.table.expressions import walk as walk_expression
from penstock.runtime.table.operators.watermark_assigner import Cuts
from penstock.table.plan.nodes.aggregate import AggregateRel, ExpandRel
from penstock.table.plan.nodes.base import Rel, walk
from penstock.table.plan.nodes.correlate import CorrelateRel
from penstock.table.plan.nodes.join import JoinRel
from penstock.table.plan.nodes.normalize import ChangelogNormalizeRel
from penstock.table.plan.nodes.rank import DeduplicateRel, RankRel
from penstock.table.plan.nodes.relational import (
    FilterRel,
    ProjectRel,
    ScanRel,
    UnionRel,
    ValuesRel,
    WatermarkRel,
)

_WITHOUT_CLOCK = (
    ScanRel,
    ValuesRel,
    WatermarkRel,
    ProjectRel,
    FilterRel,
    UnionRel,
    AggregateRel,
    ExpandRel,
    JoinRel,
    RankRel,
    ChangelogNormalizeRel,
    CorrelateRel,
)


def wanted_cuts(rel: Rel) -> Cuts:
    """Return where a plan needs watermarks among its rows."""
    nodes = list(walk(rel))
    if any(map(_reads_watermark, nodes)):
        return Cuts.EXACT
    return Cuts.NONE if all(map(_is_without_clock, nodes)) else Cuts.LATE


def _is_without_clock(node: Rel) -> bool:
    return type(node) in _WITHOUT_CLOCK or (isinstance(node, DeduplicateRel) and node.last)


def _reads_watermark(node: Rel) -> bool:
    return any(
        isinstance(part, Call) and part.function == "CURRENT_WATERMARK"
        for one in fields(node)
        for expr in _expressions(getattr(node, one.name))
        for part in walk_expression(expr)
    )


def _expressions(value: Any) -> list[Expr]:
    if isinstance(value, Expr):
        return [value]
    return [expr for one in value for expr in _expressions(one)] if isinstance(value, tuple) else []
