"""Table aggregates, which emit any number of rows for each group (T103)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.table.plan.nodes.base import ALL_CHANGES, Changelog, SingleInputRel


@dataclass(frozen=True, eq=False, slots=True)
class TableAggregateRel(SingleInputRel):
    """Keys, then the columns of the function. All rows of a group are replaced when it changes."""

    keys: tuple[int, ...]
    function: Any
    arguments: tuple[int, ...]

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Rows are retracted and added."""
        return ALL_CHANGES

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The accumulators must retract the row that an update replaces."""
        return [inputs[0].updates]

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.keys)
        return f"GroupTableAggregate(groupBy=[{keys}], function=[{self.function.name}])"
