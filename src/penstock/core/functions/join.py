"""Functions that join the records of two streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from penstock.core.functions.base import Function
from penstock.core.functions.process import SideOutputContext

__all__ = ["CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction"]

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Returns one result for each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return the result for a pair."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Yields any number of results for each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Iterable[OUT] | None:
        """Yield the results for a pair."""


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Called once per key and window with the elements of both sides. Either side may be empty.

    >>> class LeftOuter(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         matches = list(second) or [None]
    ...         for left in first:
    ...             for right in matches:
    ...                 yield left, right
    """

    @abstractmethod
    def co_group(self, first: Iterable[IN1], second: Iterable[IN2]) -> Iterable[OUT] | None:
        """Yield the results for a key and window."""


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Called for every pair of an interval join."""

    class Context(SideOutputContext):
        """The context of :meth:`ProcessJoinFunction.process_element`."""

        __slots__ = ()

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the pair: the larger of the two."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context) -> Iterable[OUT] | None:
        """Yield the results for a pair."""
