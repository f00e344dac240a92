"""Joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.runtime.table.expressions import Call, Expr, InputRef
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
    state_ttl: tuple[int | None, int | None] = field(default=(None, None), kw_only=True)
    """How long rows of each side are kept, in milliseconds; None is the option `table.exec.state.ttl`."""

    @property
    def inputs(self) -> Sequence[Rel]:
        """Return the left and the right input."""
        return self.left, self.right

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        return replace(self, left=inputs[0], right=inputs[1])

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Padded rows of outer joins are retracted when a match arrives."""
        left, right = inputs
        match self.kind:
            case "INNER":
                return left | right
            case "SEMI" | "ANTI":
                comes_and_goes = self.kind == ANTI or not right.insert_only
                return Changelog(updates=left.updates, deletes=left.deletes or comes_and_goes)
        return Changelog(updates=False, deletes=True)

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """Both sides count their rows, so an update must include the row that it replaces."""
        return [one.updates for one in inputs]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """A key of the left and one of the right side together, or one alone if its rows have at most one match.

        A key must include the columns of the equality. Otherwise, when these change, its row moves to another task, and
        the output of the two tasks has no order (T17).
        """
        if self.kind in (SEMI, ANTI):
            return inputs[0]
        width = len(self.left.fields)
        pairs = equal_columns(self.condition, width)
        left_columns, right_columns = frozenset(one for one, _ in pairs), frozenset(other for _, other in pairs)
        left = frozenset(key for key in inputs[0] if left_columns <= key)
        right = frozenset(key for key in inputs[1] if right_columns <= key)
        keys = {one | frozenset(column + width for column in other) for one in left for other in right}
        if self.kind in (INNER, LEFT) and any(key <= right_columns for key in inputs[1]):
            keys |= left
        if self.kind in (INNER, RIGHT) and any(key <= left_columns for key in inputs[0]):
            keys |= {frozenset(column + width for column in key) for key in right}
        return frozenset(keys)

    def describe(self) -> str:
        names = {
            INNER: "InnerJoin",
            LEFT: "LeftOuterJoin",
            RIGHT: "RightOuterJoin",
            FULL: "FullOuterJoin",
            SEMI: "LeftSemiJoin",
            ANTI: "LeftAntiJoin",
        }
        return f"Join(joinType=[{names[self.kind]}], select=[{', '.join(self.names)}])"


def equal_columns(condition: Expr, left_width: int) -> list[tuple[int, int]]:
    """Return the plain columns of both sides that a condition of an AND requires to be equal."""
    if isinstance(condition, Call) and condition.function == "AND":
        return [pair for operand in condition.operands for pair in equal_columns(operand, left_width)]
    if not isinstance(condition, Call) or condition.function not in ("=", "IS NOT DISTINCT FROM"):
        return []
    one, other = condition.operands
    if not isinstance(one, InputRef) or not isinstance(other, InputRef):
        return []
    first, second = sorted((one.index, other.index))
    return [(first, second - left_width)] if first < left_width <= second else []
