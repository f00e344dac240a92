"""Unresolved expressions: what the Table API and SQL say, before names and types are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.core.table.types import DataType


@dataclass(frozen=True, slots=True)
class Node:
    """Base."""


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """A column, perhaps with the name of its table in front and fields of a row after: ``t.a.b``."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class ColumnAt(Node):
    """A column by its position: what a star stands for, although names may repeat."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A Python value; without a type, the value tells."""

    value: Any
    type: DataType | None = None


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function by name: scalar, aggregate or user-defined. ``options`` is fixed at planning time."""

    name: str
    arguments: tuple[Node, ...] = ()
    distinct: bool = False
    filter: Node | None = None
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class UserFunctionCall(Node):
    """A user-defined function object (Table API), applied to arguments."""

    function: Any
    arguments: tuple[Node, ...] = ()
    distinct: bool = False
    filter: Node | None = None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """CAST or TRY_CAST."""

    operand: Node
    type: DataType
    or_null: bool = False


@dataclass(frozen=True, slots=True)
class Named(Node):
    """``operand AS name``; several names for the columns of a table function."""

    operand: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star(Node):
    """All columns, or those of one table."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SortItem(Node):
    """ORDER BY one expression; ``nulls_last`` None is the default: NULL is the smallest value."""

    operand: Node
    descending: bool = False
    nulls_last: bool | None = None


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """ROWS or RANGE BETWEEN ``start`` AND ``end``.

    ``start`` None is UNBOUNDED PRECEDING, else rows or an interval in front. ``end`` None is CURRENT ROW, a literal
    NULL is UNBOUNDED FOLLOWING, else rows after.
    """

    rows: bool
    start: Node | None
    end: Node | None = None


@dataclass(frozen=True, slots=True)
class Over(Node):
    """A function over a window of rows."""

    call: Node
    partition: tuple[Node, ...]
    order: tuple[SortItem, ...]
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Subquery(Node):
    """A query inside an expression: IN, EXISTS or SCALAR. ``query`` makes the relation for an outer scope."""

    kind: str
    query: Callable[[Any], Any]
    operands: tuple[Node, ...] = ()


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside."""
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """The node and everything inside."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewrite(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The expression with parts replaced: `change` gives the replacement, or None to look inside."""
    changed = change(node)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, Node):
            updates[one.name] = rewrite(value, change)
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            updates[one.name] = tuple(rewrite(item, change) if isinstance(item, Node) else item for item in value)
    return replace(node, **updates) if updates else node
