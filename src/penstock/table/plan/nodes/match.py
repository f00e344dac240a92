"""MATCH_RECOGNIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.runtime.table.expressions import Expr
from penstock.runtime.table.match_values import MatchValue
from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import INSERT_ONLY, Changelog, SingleInputRel
from penstock.table.plan.nodes.rank import SortKey


@dataclass(frozen=True, slots=True)
class PatternTerm:
    """A variable of a pattern and its number of repetitions. ``high`` is None for no limit."""

    variable: str
    low: int
    high: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """The condition on a row: a Boolean column of the input, or an expression.

    The expression is over the columns of the input, followed by values of previously matched rows.
    """

    flag: int | None
    expression: Expr | None = None
    values: tuple[tuple[MatchValue, AggregateSpec | None], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class MatchRel(SingleInputRel):
    """The matches of a pattern: partition keys, then the values for measures (T90 to T93)."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: tuple[PatternTerm, ...]
    skip: tuple[str, str]
    within: int | None
    conditions: tuple[tuple[str, MatchCondition], ...]
    values: tuple[tuple[MatchValue, AggregateSpec | None], ...]

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Matches are final."""
        return INSERT_ONLY

    def describe(self) -> str:
        return f"Match(pattern=[{' '.join(term.variable for term in self.pattern)}])"
