"""GROUP BY, with and without windows, and the copies that GROUPING SETS need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.table.types import DataType
from penstock.runtime.table.expressions import Expr
from penstock.table.plan.nodes.base import ALL_CHANGES, INSERT_ONLY, Changelog, SingleInputRel, UpsertKeys


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """One aggregate call over columns of the input. ``function`` is a name, or a user-defined function object."""

    function: Any
    arguments: tuple[int, ...]
    type: DataType
    distinct: bool = False
    filter: int | None = None
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class AggregateRel(SingleInputRel):
    """GROUP BY without a window: keys, then results (T50 to T58)."""

    keys: tuple[int, ...]
    calls: tuple[AggregateSpec, ...]
    state_ttl: int | None = None
    """How long the state is kept, in milliseconds; None is the option `table.exec.state.ttl`."""

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Results are updated. Groups are deleted only if the input retracts rows."""
        updates = bool(self.calls) or not inputs[0].insert_only
        return Changelog(updates=updates, deletes=not inputs[0].insert_only)

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The accumulators must retract the row that an update replaces."""
        return [inputs[0].updates]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The key is the group."""
        return frozenset({frozenset(range(len(self.keys)))})

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.keys)
        return f"GroupAggregate(groupBy=[{keys}], select=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class ExpandRel(SingleInputRel):
    """Several projections of each row: one for each grouping set (T57)."""

    projections: tuple[tuple[Expr, ...], ...]

    def describe(self) -> str:
        return f"Expand(projects=[{len(self.projections)}])"


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window table function: kind and parameters in milliseconds."""

    kind: str  # TUMBLE, HOP, CUMULATE, SESSION
    time_column: int
    size: int
    slide: int = 0  # for HOP; the step of CUMULATE
    offset: int = 0
    partition: tuple[int, ...] = ()  # for SESSION

    def describe(self) -> str:
        return f"{self.kind}(size=[{self.size} ms])"


@dataclass(frozen=True, eq=False, slots=True)
class WindowTableFunctionRel(SingleInputRel):
    """Adds window_start, window_end and window_time to rows, once for each window of a row (T60)."""

    window: WindowSpec

    def describe(self) -> str:
        return f"WindowTableFunction(window=[{self.window.describe()}])"


@dataclass(frozen=True, eq=False, slots=True)
class WindowAggregateRel(SingleInputRel):
    """GROUP BY with window_start and window_end among the keys: one row for each window and key at its end (T62).

    The output is keys, then results. The rows of the input contain their windows.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateSpec, ...]

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """A window is emitted once."""
        return INSERT_ONLY

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The accumulators must retract the row that an update replaces."""
        return [inputs[0].updates]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The key is the window and the group."""
        return frozenset({frozenset(range(len(self.keys)))})

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.keys)
        return f"WindowAggregate(groupBy=[{keys}], select=[{', '.join(self.names)}])"


__all__ = [
    "ALL_CHANGES",
    "AggregateRel",
    "AggregateSpec",
    "ExpandRel",
    "WindowAggregateRel",
    "WindowSpec",
    "WindowTableFunctionRel",
]
