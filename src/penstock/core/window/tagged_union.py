"""The elements of a window that holds two streams."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["TaggedUnion"]


class TaggedUnion(NamedTuple):
    """An element of the first or second stream of a join. Triggers and evictors of joins receive these.

    >>> element = TaggedUnion.two("b")
    >>> element.is_one(), element.get_two()
    (False, 'b')
    """

    tag: int
    value: Any

    @staticmethod
    def one(value: Any) -> TaggedUnion:
        """Wrap an element of the first stream."""
        return TaggedUnion(1, value)

    @staticmethod
    def two(value: Any) -> TaggedUnion:
        """Wrap an element of the second stream."""
        return TaggedUnion(2, value)

    def is_one(self) -> bool:
        return self.tag == 1

    def is_two(self) -> bool:
        return self.tag == 2

    def get_one(self) -> Any:
        return self.value if self.tag == 1 else None

    def get_two(self) -> Any:
        return self.value if self.tag == 2 else None
