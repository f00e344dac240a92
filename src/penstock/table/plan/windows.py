"""Finds the window columns of a relation, which make aggregates, ranks and joins windowed (T62)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.runtime.table.expressions import Expr, InputRef
from penstock.table.plan.nodes.aggregate import (
    AggregateRel,
    ExpandRel,
    WindowAggregateRel,
    WindowTableFunctionRel,
)
from penstock.table.plan.nodes.base import Rel, TimeAttribute
from penstock.table.plan.nodes.rank import DeduplicateRel, RankRel, WindowRankRel
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel


@dataclass(frozen=True, slots=True)
class WindowColumns:
    """The positions of the columns with start, end and time of the same window."""

    starts: frozenset[int]
    ends: frozenset[int]
    times: frozenset[int]
    local: bool
    """Whether the time attribute is a TIMESTAMP, not an instant."""
    processing_time: bool

    def mapped(self, sources: Sequence[int | None]) -> WindowColumns | None:
        """Return the window columns after a projection, given the source of each plain column."""

        def places(columns: frozenset[int]) -> frozenset[int]:
            return frozenset(place for place, source in enumerate(sources) if source in columns)

        return replace(self, starts=places(self.starts), ends=places(self.ends), times=places(self.times))

    def bound_by(self, columns: Sequence[int]) -> bool:
        """Whether columns identify the window: they include both its start and its end."""
        return bool(self.starts & set(columns)) and bool(self.ends & set(columns))


def window_columns(rel: Rel) -> WindowColumns | None:
    """Return the window columns of a relation, or None if its rows are not in windows."""
    match rel:
        case WindowTableFunctionRel():
            width = len(rel.input.fields)
            time = rel.fields[width + 2]
            return WindowColumns(
                frozenset({width}),
                frozenset({width + 1}),
                frozenset({width + 2}),
                local=type(time.type).__name__ == "TimestampType",
                processing_time=time.time is TimeAttribute.PROCTIME,
            )
        case ProjectRel():
            found = window_columns(rel.input)
            sources = [expr.index if isinstance(expr, InputRef) else None for expr in rel.expressions]
            return None if found is None else found.mapped(sources)
        case FilterRel() | DeduplicateRel() | RankRel() | WindowRankRel():
            return window_columns(rel.input)
        case WindowAggregateRel():
            found = window_columns(rel.input)
            return None if found is None else found.mapped([*rel.keys, *(None for _ in rel.calls)])
        case ExpandRel():
            found = window_columns(rel.input)
            return (
                None
                if found is None
                else found.mapped([_same_column(copies) for copies in zip(*rel.projections, strict=True)])
            )
    return None


def _same_column(copies: Sequence[Expr]) -> int | None:
    """Return the column that all grouping sets have at a position."""
    first = copies[0]
    return first.index if isinstance(first, InputRef) and all(one == first for one in copies) else None


def window_aggregate(rel: Rel) -> Rel | None:
    """Convert GROUP BY with start and end of a window to a window aggregate."""
    if not isinstance(rel, AggregateRel):
        return None
    columns = window_columns(rel.input)
    if columns is None or not columns.bound_by(rel.keys):
        return None
    return WindowAggregateRel(rel.fields, rel.input, rel.keys, rel.calls)
