"""Groups of rows from which a table aggregate function makes any number of rows (T103)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.table.plan.nodes.base import ALL_CHANGES, Changelog, Rel


@dataclass(frozen=True, eq=False, slots=True)
class TableAggregateRel(Rel):
    """Keys, then the columns of the function. All rows of a group are replaced when it changes."""

    input: Rel
    keys: tuple[int, ...]
    function: Any
    arguments: tuple[int, ...]

    @property
    def inputs(self) -> Sequence[Rel]:
        """The one input."""
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        """Over another input."""
        return replace(self, input=inputs[0])

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Rows are taken away and added."""
        return ALL_CHANGES

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The accumulators must give up the row that an update replaces."""
        return [inputs[0].updates]

    def describe(self) -> str:
        """With the group keys and the function."""
        keys = ", ".join(self.input.fields[key].name for key in self.keys)
        return f"GroupTableAggregate(groupBy=[{keys}], function=[{self.function.name}])"
