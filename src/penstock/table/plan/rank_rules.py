"""Rules that convert row numbers to Top-N and deduplication (T83 to T87).

A filter on ROW_NUMBER becomes a :class:`RankRel`. If it is partitioned by a window, it becomes a window rank. If it
keeps a single row by time, it becomes a deduplication.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.table.types import BooleanType
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef, input_columns
from penstock.table.plan.nodes.base import Changelog, Rel
from penstock.table.plan.nodes.rank import DeduplicateRel, OverRel, RankRel, SortRel, WindowRankRel
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel, identity
from penstock.table.plan.windows import window_columns


def changelog_of(rel: Rel) -> Changelog:
    """Return the row kinds of a relation in streaming mode."""
    return rel.changelog([changelog_of(one) for one in rel.inputs])


def rank_of_over(rel: Rel) -> Rel | None:
    """Convert filters on ROW_NUMBER with an upper limit to Top-N. Other conditions are applied after it."""
    conditions: list[Expr] = []
    node = rel
    while isinstance(node, FilterRel):
        conditions += _conjuncts(node.condition)
        node = node.input
    if not conditions or not isinstance(node, OverRel):
        return None
    if [call.function for call in node.calls] != ["ROW_NUMBER"]:
        return None
    bounds = _Bounds(len(node.fields) - 1)
    rest = [one for one in conditions if not bounds.take(one)]
    if bounds.high is None:
        return None
    window = node.window
    low, high = max(1, bounds.low), bounds.high
    if low > high:
        high, rest = low, [*rest, Constant(BooleanType(), False)]  # no number satisfies both
    result: Rel = RankRel(node.fields, node.input, window.partition, window.order, low, high, with_rank=True)
    if low == high:  # the rank is known
        plain = RankRel(node.fields[:-1], node.input, window.partition, window.order, low, high, with_rank=False)
        columns = (*identity(node.fields[:-1]), Constant(node.fields[-1].type, low))
        result = ProjectRel(node.fields, plain, columns)
    for condition in reversed(rest):
        result = FilterRel(result.fields, result, condition)
    return result


@dataclass(slots=True)
class _Bounds:
    """The limits of the column with row numbers."""

    column: int
    low: int = 1
    high: int | None = None

    def take(self, condition: Expr) -> bool:
        """Use a condition if it is a limit. Return whether it is."""
        if not isinstance(condition, Call) or len(condition.operands) != 2:
            return False
        left, right = condition.operands
        name = condition.function
        if _is_column(right, self.column):
            left, right = right, left
            name = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(name, name)
        number = _number(right)
        if not _is_column(left, self.column) or number is None:
            return False
        match name:
            case "<=" | "<":
                limit = number if name == "<=" else number - 1
                self.high = limit if self.high is None else min(self.high, limit)
            case ">=" | ">":
                self.low = max(self.low, number if name == ">=" else number + 1)
            case "=":
                self.low = max(self.low, number)
                self.high = number if self.high is None else min(self.high, number)
            case _:
                return False
        return True


def _is_column(expr: Expr, column: int) -> bool:
    return (isinstance(expr, InputRef) and expr.index == column) or (
        isinstance(expr, Call) and expr.function == "CAST" and _is_column(expr.operands[0], column)
    )


def _number(expr: Expr) -> int | None:
    if isinstance(expr, Call) and expr.function == "CAST":
        return _number(expr.operands[0])
    value: Any = expr.value if isinstance(expr, Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Call) and condition.function == "AND":
        return [one for operand in condition.operands for one in _conjuncts(operand)]
    return [condition]


def rank_without_numbers(rel: Rel) -> Rel | None:
    """Drop rank numbers that are not read. This reduces the number of changes (T84)."""
    if not isinstance(rel, ProjectRel):
        return None
    filters: list[Expr] = []
    node = rel.input
    while isinstance(node, FilterRel):
        filters.append(node.condition)
        node = node.input
    if not isinstance(node, RankRel | WindowRankRel) or not node.with_rank:
        return None
    number = len(node.fields) - 1
    if any(number in input_columns(expr) for expr in (*filters, *rel.expressions)):
        return None
    plain: Rel = replace(node, fields=node.fields[:-1], with_rank=False)
    for condition in reversed(filters):
        plain = FilterRel(plain.fields, plain, condition)
    return rel.with_inputs([plain])


def rank_of_limit(rel: Rel) -> Rel | None:
    """Convert ORDER BY with LIMIT to a Top-N of the whole table (T86)."""
    if not isinstance(rel, SortRel) or rel.fetch is None or not rel.fetch:
        return None
    if not rel.order and changelog_of(rel.input).insert_only:
        return None
    low, high = rel.offset + 1, rel.offset + rel.fetch
    return RankRel(rel.fields, rel.input, (), rel.order, low, high, with_rank=False)


def rank_of_windows(rel: Rel) -> Rel | None:
    """Convert a rank partitioned by start and end of a window to a window rank, emitted at its end (T66)."""
    if not isinstance(rel, RankRel):
        return None
    columns = window_columns(rel.input)
    if columns is None or not columns.bound_by(rel.partition):
        return None
    last = _by_time(rel) and rel.order[0].descending
    return WindowRankRel(
        rel.fields, rel.input, rel.partition, rel.order, rel.start, rel.end, rel.with_rank, ties_replace=last
    )


def deduplicate(rel: Rel) -> Rel | None:
    """Convert a Top-1 by a time attribute to a deduplication (T87)."""
    if not isinstance(rel, RankRel) or not _by_time(rel) or rel.with_rank:
        return None
    if not changelog_of(rel.input).insert_only:
        return None
    key = rel.order[0]
    rowtime = rel.input.fields[key.column].time.value == "ROWTIME"  # type: ignore[union-attr]
    return DeduplicateRel(rel.fields, rel.input, rel.partition, key.column, key.descending, rowtime)


def _by_time(rel: RankRel) -> bool:
    return rel.end == 1 and len(rel.order) == 1 and rel.input.fields[rel.order[0].column].time is not None


RANK_RULES: tuple[Callable[[Rel], Rel | None], ...] = (
    rank_of_over,
    rank_without_numbers,
    rank_of_limit,
    rank_of_windows,
    deduplicate,
)
