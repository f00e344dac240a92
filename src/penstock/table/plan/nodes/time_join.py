"""Joins in time: interval, temporal and window joins. If their inputs are insert-only, so are their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.table.plan.nodes.base import INSERT_ONLY, NO_KEYS, Changelog, UpsertKeys
from penstock.table.plan.nodes.join import JoinRel


@dataclass(frozen=True, eq=False, slots=True)
class InsertOnlyJoinRel(JoinRel):
    """A join of inserts with final results: it pads a row only when no more matches can arrive."""

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """The results are inserts only."""
        return INSERT_ONLY

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The inputs are insert-only."""
        return [False, False]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """No keys: results are never updated."""
        return NO_KEYS


@dataclass(frozen=True, eq=False, slots=True)
class IntervalJoinRel(InsertOnlyJoinRel):
    """Rows whose times are close: ``lower <= right time - left time <= upper``, in milliseconds (T73)."""

    left_time: int
    right_time: int
    lower: int
    upper: int

    def describe(self) -> str:
        return f"IntervalJoin(joinType=[{self.kind}], bounds=[{self.lower} ms, {self.upper} ms])"


@dataclass(frozen=True, eq=False, slots=True)
class WindowJoinRel(InsertOnlyJoinRel):
    """Joins rows in the same window, and emits them when the window ends (T65)."""

    left_end: int
    right_end: int
    local: bool
    processing_time: bool

    def describe(self) -> str:
        return f"WindowJoin(joinType=[{self.kind}], select=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class TemporalJoinRel(JoinRel):
    """Joins each left row with the version of the right row at the left row's time (T74)."""

    left_time: int

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Return the changelog of the left side: later versions change nothing."""
        return inputs[0]

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """A new version replaces the old one by its key."""
        return [inputs[0].updates, False]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the keys of the left input: each of its rows has at most one version."""
        return inputs[0]

    def describe(self) -> str:
        return f"TemporalJoin(joinType=[{self.kind}], select=[{', '.join(self.names)}])"
