"""Completes upserts by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.table.plan.nodes.base import ALL_CHANGES, Changelog, SingleInputRel, UpsertKeys


@dataclass(frozen=True, eq=False, slots=True)
class ChangelogNormalizeRel(SingleInputRel):
    """Adds the replaced rows to the changes of a source that emits upserts (T112)."""

    keys: tuple[int, ...]

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """All row kinds."""
        return ALL_CHANGES

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The replaced rows are in the state."""
        return [False]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The key of the upserts."""
        return frozenset({frozenset(self.keys)})

    def describe(self) -> str:
        return f"ChangelogNormalize(key=[{', '.join(self.fields[key].name for key in self.keys)}])"
