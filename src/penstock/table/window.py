"""Windows of the Table API: Tumble, Slide and Session for groups, Over for rows (T68, T80)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from penstock.table.expression import Expression, node_of
from penstock.table.plan import ast
from penstock.table.plan.group_windows import GroupWindowSpec
from penstock.util.exceptions import TableException, ValidationException

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]

Expr_ = Expression[Any]


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """A window with its time attribute and its name, the argument of :meth:`Table.window`."""

    spec: GroupWindowSpec


@dataclass(frozen=True, slots=True)
class _OnTime:
    spec: GroupWindowSpec

    def alias(self, alias: str) -> GroupWindow:
        """Set the name of the window in ``group_by`` and ``select``."""
        return GroupWindow(replace(self.spec, alias=alias))


@dataclass(frozen=True, slots=True)
class _Sized:
    kind: str
    lengths: dict[str, int]

    def on(self, time_field: Expr_) -> _OnTime:
        """Set the time attribute that assigns rows to windows."""
        return _OnTime(GroupWindowSpec(self.kind, node_of(time_field), self.lengths))


@dataclass(frozen=True, slots=True)
class _SlideWithSize:
    size: int

    def every(self, slide: Expr_) -> _Sized:
        """Set the distance between the starts of windows."""
        return _Sized("HOP", {"SIZE": self.size, "SLIDE": _length(slide, "Slide")})


class Tumble:
    """Tumbling windows: ``Tumble.over(lit(10).minutes).on(col("ts")).alias("w")``."""

    @classmethod
    def over(cls, size: Expr_) -> _Sized:
        """Set the size of the windows."""
        return _Sized("TUMBLE", {"SIZE": _length(size, "Tumble")})


class Slide:
    """Sliding windows: ``Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("ts")).alias("w")``."""

    @classmethod
    def over(cls, size: Expr_) -> _SlideWithSize:
        """Set the size of the windows."""
        return _SlideWithSize(_length(size, "Slide"))


class Session:
    """Session windows: ``Session.with_gap(lit(10).minutes).on(col("ts")).alias("w")``."""

    @classmethod
    def with_gap(cls, gap: Expr_) -> _Sized:
        """Set the gap between windows."""
        return _Sized("SESSION", {"GAP": _length(gap, "Session")})


def _length(size: Expr_, what: str) -> int:
    node = node_of(size)
    if isinstance(node, ast.FunctionCall) and node.name == "$ROWS":
        raise TableException(f"{what} windows of a number of rows are not supported: use an interval of time")
    value = getattr(node, "value", None)
    if not isinstance(value, dt.timedelta):
        raise ValidationException(f"A {what} window needs an interval of time, such as lit(10).minutes")
    return value // dt.timedelta(milliseconds=1)


# -- windows of rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OverWindow:
    """A window of rows with its name, the argument of :meth:`Table.over_window`."""

    name: str
    partition: tuple[ast.Node, ...]
    order: ast.SortItem
    frame: ast.Frame | None


@dataclass(frozen=True, slots=True)
class _OverOrdered:
    partition: tuple[ast.Node, ...]
    order: ast.SortItem
    start: Expr_ | None = None
    end: Expr_ | None = None

    def preceding(self, preceding: Expr_) -> _OverOrdered:
        """Set the start of the window: ``row_interval(2)``, an interval, UNBOUNDED_ROW or UNBOUNDED_RANGE."""
        return replace(self, start=preceding)

    def following(self, following: Expr_) -> _OverOrdered:
        """Set the end of the window: CURRENT_ROW or CURRENT_RANGE."""
        return replace(self, end=following)

    def alias(self, alias: str) -> OverWindow:
        """Set the name of the window in ``select``."""
        return OverWindow(alias, self.partition, self.order, _frame(self.start, self.end))


@dataclass(frozen=True, slots=True)
class _OverPartitioned:
    partition: tuple[ast.Node, ...]

    def order_by(self, order_by: Expr_) -> _OverOrdered:
        """Set the time attribute."""
        return _OverOrdered(self.partition, sort_item(order_by))


class Over:
    """Windows of rows: ``Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")``."""

    @classmethod
    def order_by(cls, order_by: Expr_) -> _OverOrdered:
        """Order all rows in one partition."""
        return _OverOrdered((), sort_item(order_by))

    @classmethod
    def partition_by(cls, *partition_by: Expr_) -> _OverPartitioned:
        """Partition the rows by key."""
        return _OverPartitioned(tuple(node_of(one) for one in partition_by))


def sort_item(expression: Expr_) -> ast.SortItem:
    """Return the sort item of ``col("a")``, ``col("a").asc`` or ``col("a").desc``."""
    node = node_of(expression)
    if isinstance(node, ast.SortItem):
        return node
    if isinstance(node, ast.FunctionCall) and node.name.strip("$").upper() in ("ASC", "DESC"):
        return ast.SortItem(node.arguments[0], descending=node.name.strip("$").upper() == "DESC")
    return ast.SortItem(node)


def _frame(start: Expr_ | None, end: Expr_ | None) -> ast.Frame | None:
    if start is None:
        return None
    node = node_of(start)
    if end is not None and getattr(node_of(end), "name", "") not in ("$CURRENT_ROW", "$CURRENT_RANGE"):
        raise TableException("OVER windows end at the current row: following takes CURRENT_ROW or CURRENT_RANGE")
    match node:
        case ast.FunctionCall(name="$ROWS"):
            return ast.Frame(rows=True, start=node.arguments[0])
        case ast.FunctionCall(name="$UNBOUNDED_ROW"):
            return ast.Frame(rows=True, start=None)
        case ast.FunctionCall(name="$UNBOUNDED_RANGE"):
            return ast.Frame(rows=False, start=None)
        case ast.FunctionCall(name="$CURRENT_ROW" | "$CURRENT_RANGE"):
            return ast.Frame(rows=node.name == "$CURRENT_ROW", start=ast.Literal(0))
    return ast.Frame(rows=False, start=node)
