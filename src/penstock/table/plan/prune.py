"""Drops unused columns as early as possible: from projections, from windows, and from files.

Scans of one table share a source, so all of them read the union of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.runtime.table.expressions import Expr, input_columns, shifted
from penstock.table.connectors.base import TableSource
from penstock.table.plan.nodes.aggregate import WindowTableFunctionRel
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel, ScanRel, WatermarkRel

Pruned = tuple[Rel, list[int]]
"""A relation with fewer columns, and their old positions."""


def prune_columns(rel: Rel) -> Rel:
    """Return the same relation without unused columns."""
    pruning = _Pruning()
    pruning.whole(rel)  # collects the columns that all scans of a table need
    pruning.results.clear()
    return pruning.whole(rel)


class _Pruning:
    def __init__(self) -> None:
        self.read: dict[Any, set[int]] = {}
        """The columns of each table that its scans need."""
        self.results: dict[tuple[int, frozenset[int]], Pruned] = {}
        """Pruned relations: a relation that is used twice stays one."""

    def whole(self, rel: Rel) -> Rel:
        """Return the relation with all columns."""
        return self.prune(rel, set(range(len(rel.fields))))[0]

    def prune(self, rel: Rel, needed: set[int]) -> Pruned:
        """Return the relation with the needed columns, and possibly others, in their old order."""
        key = (id(rel), frozenset(needed))
        known = self.results.get(key)
        if known is None:
            known = self.results[key] = self._pruned(rel, needed)
        return known

    def _pruned(self, rel: Rel, needed: set[int]) -> Pruned:
        match rel:
            case ProjectRel():
                return self._projection(rel, needed)
            case FilterRel():
                source, kept = self.prune(rel.input, needed | rel.reads())
                condition = _moved(rel.condition, kept)
                return replace(rel, fields=_some(rel, kept), input=source, condition=condition), kept
            case WatermarkRel():
                source, kept = self.prune(rel.input, needed | {rel.column} | input_columns(rel.expression))
                column, expression = kept.index(rel.column), _moved(rel.expression, kept)
                fields = _some(rel, kept)
                return replace(rel, fields=fields, input=source, column=column, expression=expression), kept
            case WindowTableFunctionRel():
                return self._windows(rel, needed)
            case ScanRel():
                return self._scan(rel, needed)
        inputs = [self.whole(one) for one in rel.inputs]
        if any(new is not old for new, old in zip(inputs, rel.inputs, strict=True)):
            rel = rel.with_inputs(inputs)
        return rel, list(range(len(rel.fields)))

    def _projection(self, rel: ProjectRel, needed: set[int]) -> Pruned:
        if isinstance(rel.input, ScanRel) and rel.input.identity is not None:  # the computed columns of a table
            read = self.read.setdefault((rel.input.identity, rel.expressions), set())
            read |= needed
            needed = read
        wanted = sorted(needed) or [0]
        expressions = [rel.expressions[place] for place in wanted]
        source, kept = self.prune(rel.input, set().union(*map(input_columns, expressions)))
        moved = tuple(_moved(one, kept) for one in expressions)
        if len(wanted) == len(rel.expressions) and source is rel.input:
            return rel, wanted
        return replace(rel, fields=_some(rel, wanted), input=source, expressions=moved), wanted

    def _windows(self, rel: WindowTableFunctionRel, needed: set[int]) -> Pruned:
        width, window = len(rel.input.fields), rel.window
        used = {window.time_column, *window.partition}
        source, kept = self.prune(rel.input, {column for column in needed if column < width} | used)
        moved = replace(
            window,
            time_column=kept.index(window.time_column),
            partition=tuple(kept.index(column) for column in window.partition),
        )
        kept = [*kept, *range(width, width + 3)]
        return replace(rel, fields=_some(rel, kept), input=source, window=moved), kept

    def _scan(self, rel: ScanRel, needed: set[int]) -> Pruned:
        everything = list(range(len(rel.fields)))
        if not isinstance(rel.origin, TableSource) or rel.identity is None:
            return rel, everything
        read = self.read.setdefault(rel.identity, set())
        read |= needed
        kept = sorted(read) or [0]
        origin = rel.origin.project(kept) if len(kept) < len(everything) else None
        if origin is None:
            return rel, everything
        place = {column: position for position, column in enumerate(kept)}
        keys = frozenset(frozenset(map(place.__getitem__, key)) for key in rel.keys if key <= place.keys())
        identity = (rel.identity, tuple(kept))
        return replace(rel, fields=_some(rel, kept), origin=origin, keys=keys, identity=identity), kept


def _some(rel: Rel, columns: Sequence[int]) -> tuple[Any, ...]:
    return tuple(rel.fields[column] for column in columns)


def _moved(expr: Expr, kept: Sequence[int]) -> Expr:
    place: Callable[[int], int] = {column: position for position, column in enumerate(kept)}.__getitem__
    return shifted(expr, place)
