"""Joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.runtime.table.expressions import Expr
from penstock.table.plan.nodes.base import Changelog, Rel, UpsertKeys

INNER, LEFT, RIGHT, FULL, SEMI, ANTI = "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"


@dataclass(frozen=True, eq=False, slots=True)
class JoinRel(Rel):
    """A regular join (T70 to T72). ``condition`` is over the columns of both inputs, left ones first.

    Semi and anti joins have the columns of the left input only.
    """

    left: Rel
    right: Rel
    kind: str
    condition: Expr
    null_aware: bool = False
    """Of an anti join: NOT IN, for which a NULL on either side may match (T35)."""

    @property
    def inputs(self) -> Sequence[Rel]:
        """Left, right."""
        return self.left, self.right

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        """Over other inputs."""
        return replace(self, left=inputs[0], right=inputs[1])

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Rows without partner come and go."""
        both = inputs[0] | inputs[1]
        if self.kind in (LEFT, RIGHT, FULL, ANTI):
            return Changelog(updates=both.updates, deletes=True)
        return both

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """Both sides count their rows, so an update must say which row it replaces."""
        return [one.updates for one in inputs]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """A key of the left side and one of the right side together; of a semi join the left ones."""
        if self.kind in (SEMI, ANTI):
            return inputs[0]
        width = len(self.left.fields)
        return frozenset(
            one | frozenset(column + width for column in other) for one in inputs[0] for other in inputs[1]
        )

    def describe(self) -> str:
        """With its kind."""
        names = {
            INNER: "InnerJoin",
            LEFT: "LeftOuterJoin",
            RIGHT: "RightOuterJoin",
            FULL: "FullOuterJoin",
            SEMI: "LeftSemiJoin",
            ANTI: "LeftAntiJoin",
        }
        return f"Join(joinType=[{names[self.kind]}], select=[{', '.join(self.names)}])"
