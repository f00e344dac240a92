"""Unresolved expressions of the Table API and SQL, before names and types are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.core.table.types import DataType


@dataclass(frozen=True, slots=True)
class Node:
    """Base class of nodes."""


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """A column, optionally with the name of its table before and fields of a row after it: ``t.a.b``."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class ColumnAt(Node):
    """A column by its position: the expansion of a star, since names may repeat."""

    index: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A Python value. Without a type, the type is inferred from the value."""

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
    """``operand AS name``; several names are for the columns of a table function."""

    operand: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star(Node):
    """All columns, or those of one table."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SortItem(Node):
    """An item of ORDER BY. If ``nulls_last`` is None, NULL is the smallest value (the default)."""

    operand: Node
    descending: bool = False
    nulls_last: bool | None = None


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """ROWS or RANGE BETWEEN ``start`` AND ``end``.

    ``start`` is None for UNBOUNDED PRECEDING, otherwise rows or an interval before the row. ``end`` is None for CURRENT
    ROW, a literal NULL for UNBOUNDED FOLLOWING, otherwise rows after the row.
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
    """A query inside an expression: IN, EXISTS or SCALAR. ``query`` creates the relation for an outer scope.

    IN compares with ``=``, or with the operator of ``x > SOME (SELECT ...)``.
    """

    kind: str
    query: Callable[[Any], Any]
    operands: tuple[Node, ...] = ()
    operator: str = "="


def children(node: Node) -> Iterator[Node]:
    """Yield the direct children of a node."""
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all its descendants."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewrite(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Replace parts of an expression: `change` returns the replacement, or None to descend."""
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
