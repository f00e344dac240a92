"""Which queries depend on the place of watermarks among the rows: windows, sorts and joins in time, and the function.

All others get one watermark for each batch: it costs nothing, while a watermark behind every row that moves the clock
cuts a batch into pieces.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from penstock.runtime.table.expressions import Call, Expr
from penstock.runtime.table.expressions import walk as walk_expression
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


def depends_on_watermarks(rel: Rel) -> bool:
    """Whether any node of a plan waits for watermarks or reads them."""
    return any(not _is_without_clock(node) or _reads_watermark(node) for node in walk(rel))


def _is_without_clock(node: Rel) -> bool:
    return isinstance(node, _WITHOUT_CLOCK) or (isinstance(node, DeduplicateRel) and node.last)


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
