"""Upserts by key made complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.table.plan.nodes.base import ALL_CHANGES, Changelog, SingleInputRel, UpsertKeys


@dataclass(frozen=True, eq=False, slots=True)
class ChangelogNormalizeRel(SingleInputRel):
    """The changes of a source that sends upserts, with the rows that they replace (T112)."""

    keys: tuple[int, ...]

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Everything."""
        return ALL_CHANGES

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """State knows the replaced rows."""
        return [False]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The key."""
        return frozenset({frozenset(self.keys)})

    def describe(self) -> str:
        return f"ChangelogNormalize(key=[{', '.join(self.fields[key].name for key in self.keys)}])"
