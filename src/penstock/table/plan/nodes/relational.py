"""Scans, projections, filters, unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.runtime.table.expressions import Expr, InputRef, input_columns
from penstock.table.plan.nodes.base import INSERT_ONLY, NO_KEYS, Changelog, Field, Rel, SingleInputRel, UpsertKeys


@dataclass(frozen=True, eq=False, slots=True)
class ScanRel(Rel):
    """A table of the catalog, or a stream. ``origin`` creates the transformation; see plan/exec/scan.py."""

    origin: Any
    name: str = ""
    kinds: Changelog = INSERT_ONLY
    keys: UpsertKeys = NO_KEYS
    identity: Any = None
    """Scans with equal identities read the same data. None if the scan is unique."""

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Return the changelog that the connector declares."""
        return self.kinds

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the primary key."""
        return self.keys

    def describe(self) -> str:
        return f"TableSourceScan(table=[{self.name}], fields=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class ValuesRel(Rel):
    """Rows of constants, as Python values."""

    rows: tuple[tuple[Any, ...], ...]

    def describe(self) -> str:
        return f"Values({len(self.rows)} rows, fields=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class ProjectRel(SingleInputRel):
    """Computed columns."""

    expressions: tuple[Expr, ...]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the keys whose columns are all projected."""
        places = {
            expr.index: place
            for place, expr in reversed(list(enumerate(self.expressions)))
            if isinstance(expr, InputRef)
        }
        kept = [key for key in inputs[0] if all(column in places for column in key)]
        return frozenset(frozenset(places[column] for column in key) for key in kept)

    def describe(self) -> str:
        return f"Calc(select=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class FilterRel(SingleInputRel):
    """Keeps the rows for which a condition is TRUE."""

    condition: Expr

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """A row that no longer satisfies the condition must be removed, and only its `-U` tells that (T12, T14)."""
        return [demanded or inputs[0].updates]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the keys of the input."""
        return inputs[0]

    def reads(self) -> set[int]:
        """Return the columns of the condition."""
        return input_columns(self.condition)

    def describe(self) -> str:
        return "Calc(where=[...])"


@dataclass(frozen=True, eq=False, slots=True)
class UnionRel(Rel):
    """UNION ALL of inputs with the same types."""

    branches: tuple[Rel, ...]

    @property
    def inputs(self) -> Sequence[Rel]:
        """Return all branches."""
        return self.branches

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        return replace(self, branches=tuple(inputs))

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Return the union of the inputs' changelogs."""
        result = Changelog()
        for one in inputs:
            result = result | one
        return result

    def describe(self) -> str:
        return f"Union(all=[true], inputs=[{len(self.branches)}])"


@dataclass(frozen=True, eq=False, slots=True)
class WatermarkRel(SingleInputRel):
    """Declares a column as the rowtime. ``expression`` is the watermark after each row (T41, T42)."""

    column: int
    expression: Expr

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the keys of the input."""
        return inputs[0]

    def describe(self) -> str:
        return f"WatermarkAssigner(rowtime=[{self.fields[self.column].name}])"


def identity(fields: Sequence[Field]) -> list[InputRef]:
    """Return references to all columns."""
    return [InputRef(field.type, index) for index, field in enumerate(fields)]
