"""Functions that join the records of two streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.core.functions.base import Function
from penstock.core.functions.process import _SideOutputContext

__all__ = ["CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction"]


class JoinFunction(Function):
    """Called for every pair of a window join; gives one result."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for a pair."""


class FlatJoinFunction(Function):
    """Called for every pair of a window join; gives any number of results."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yields the results for a pair."""


class CoGroupFunction(Function):
    """Called once per key and window with the elements of both sides; either side may be empty.

    >>> class LeftOuter(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         matches = list(second) or [None]
    ...         for left in first:
    ...             for right in matches:
    ...                 yield left, right
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Yields the results for a key and window."""


class ProcessJoinFunction(Function):
    """Called for every pair of an interval join."""

    class Context(_SideOutputContext):
        """What :meth:`ProcessJoinFunction.process_element` can ask and do."""

        __slots__ = ()

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the pair: the larger of the two."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Yields the results for a pair."""
