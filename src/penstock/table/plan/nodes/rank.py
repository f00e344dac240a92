"""Windows of rows, Top-N, sorting and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import INSERT_ONLY, Changelog, SingleInputRel, UpsertKeys


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column to sort by."""

    column: int
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """Rows of an OVER window. ``preceding`` is rows or milliseconds before the current row, or None for all.

    ``following`` is rows after the current one, or None for all.
    """

    rows: bool
    preceding: int | None
    following: int | None = 0


@dataclass(frozen=True, slots=True)
class OverSpec:
    """PARTITION BY, ORDER BY and the frame of functions over rows."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: FrameSpec


@dataclass(frozen=True, eq=False, slots=True)
class OverRel(SingleInputRel):
    """Functions over a window of rows: the input's columns, then the results (T80 to T82).

    A filter on ROW_NUMBER above it converts it to a :class:`RankRel`; see plan/rank_rules.py.
    """

    window: OverSpec
    calls: tuple[AggregateSpec, ...]

    @property
    def by_time(self) -> bool:
        """Whether rows are in the order of a time attribute."""
        order = self.window.order
        return bool(order) and self.input.fields[order[0].column].time is not None

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """By time, results are final. Otherwise, rows that sort after a new one are updated (T81)."""
        return inputs[0] if self.by_time else Changelog(updates=True, deletes=not inputs[0].insert_only)

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The replaced row takes a position of its own."""
        return [inputs[0].updates]

    def describe(self) -> str:
        return f"OverAggregate(select=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class RankRel(SingleInputRel):
    """Top-N: rows from rank ``start`` to ``end`` of each partition, optionally with a rank column (T83 to T85)."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    start: int
    end: int
    with_rank: bool

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Rows change rank and are removed. Without rank numbers, a replaced row is deleted (T84).

        The first of rows that are only added is updated.
        """
        if inputs[0].insert_only and self.start == self.end == 1:
            return Changelog(updates=True, deletes=False)
        return Changelog(updates=self.with_rank, deletes=True)

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The replaced row takes a rank of its own."""
        return [inputs[0].updates]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The partition if it has one row, or partition and rank. Otherwise, the keys of the input.

        A row that replaces another one updates it, and may have another key of the input.
        """
        if self.start == self.end:
            return frozenset({frozenset(self.partition)})
        if self.with_rank:
            return frozenset({frozenset({*self.partition, len(self.fields) - 1})})
        return inputs[0]

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.partition)
        return f"Rank(rankRange=[{self.start}..{self.end}], partitionBy=[{keys}], select=[{', '.join(self.names)}])"


@dataclass(frozen=True, eq=False, slots=True)
class WindowRankRel(SingleInputRel):
    """Top-N of windows, which is emitted once, at the end of the window (T66).

    With ``ties_replace``, the last one of equal rows ranks first.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    start: int
    end: int
    with_rank: bool
    ties_replace: bool = False

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """A window is emitted once."""
        return INSERT_ONLY

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The replaced row takes a rank of its own."""
        return [inputs[0].updates]

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.partition)
        return f"WindowRank(rankRange=[{self.start}..{self.end}], partitionBy=[{keys}])"


@dataclass(frozen=True, eq=False, slots=True)
class DeduplicateRel(SingleInputRel):
    """The first or last row of each key by a time attribute (T87)."""

    keys: tuple[int, ...]
    time_column: int
    last: bool
    rowtime: bool

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """First rows are final: by rowtime, they are emitted when no earlier row can arrive (T13). Last rows change."""
        return Changelog(updates=self.last)

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """The key of the deduplication."""
        return frozenset({frozenset(self.keys)})

    def describe(self) -> str:
        keys = ", ".join(self.input.fields[key].name for key in self.keys)
        order = ("ROWTIME" if self.rowtime else "PROCTIME"), ("LastRow" if self.last else "FirstRow")
        return f"Deduplicate(keep=[{order[1]}], key=[{keys}], order=[{order[0]}])"


@dataclass(frozen=True, eq=False, slots=True)
class SortRel(SingleInputRel):
    """ORDER BY, OFFSET and LIMIT (T86). Without ``order``, it is only a limit."""

    order: tuple[SortKey, ...]
    offset: int = 0
    fetch: int | None = None

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """With an order and a limit, it is a Top-N."""
        if self.fetch is not None and (self.order or not inputs[0].insert_only):
            return Changelog(deletes=True)
        return inputs[0]

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """The replaced row takes a position of its own."""
        return [inputs[0].updates]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return the keys of the input."""
        return inputs[0]

    def describe(self) -> str:
        by = ", ".join(
            f"{self.input.fields[key.column].name} {'DESC' if key.descending else 'ASC'}" for key in self.order
        )
        limit = "" if self.fetch is None else f", offset=[{self.offset}], fetch=[{self.fetch}]"
        return f"{'Sort' if self.order else 'Limit'}(orderBy=[{by}]{limit})"
