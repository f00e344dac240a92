"""Functions that receive matches, and partial matches whose time limit has passed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from penstock.core.cep.match import Match
from penstock.core.functions import Function
from penstock.core.output_tag import OutputTag

__all__ = [
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternTimeoutFunction",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "TimedOutPartialMatchHandler",
]

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class PatternProcessFunction(Function, Generic[IN, OUT]):
    """Called for every match. Add :class:`TimedOutPartialMatchHandler` to receive timed-out partial matches, too."""

    class Context(ABC):
        """Time and side outputs."""

        __slots__ = ()

        @abstractmethod
        def timestamp(self) -> int:
            """The timestamp of the match: that of its last event, or of the moment at which it became one."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock in ms."""

        @abstractmethod
        def output(self, tag: OutputTag, value: Any) -> None:
            """Emit to a side output."""

    @abstractmethod
    def process_match(self, match: Match[IN], ctx: Context) -> Iterable[OUT] | None:
        """Yield any number of results; ``yield tag, value`` emits to a side output."""


class TimedOutPartialMatchHandler(ABC, Generic[IN]):
    """Mixin of a :class:`PatternProcessFunction` that wants partial matches whose time limit has passed."""

    @abstractmethod
    def process_timed_out_match(self, match: Match[IN], ctx: PatternProcessFunction.Context) -> Any:
        """Emit with ``ctx.output(tag, value)`` or ``yield tag, value``: there is no main output here."""


class PatternSelectFunction(Function, Generic[IN, OUT]):
    """One result for every match."""

    @abstractmethod
    def select(self, match: Match[IN]) -> OUT:
        """The result."""


class PatternFlatSelectFunction(Function, Generic[IN, OUT]):
    """Any number of results for every match."""

    @abstractmethod
    def flat_select(self, match: Match[IN]) -> Iterable[OUT] | None:
        """Yield the results."""


class PatternTimeoutFunction(Function, Generic[IN, OUT]):
    """One result for every partial match that has timed out."""

    @abstractmethod
    def timeout(self, match: Match[IN], timeout_timestamp: int) -> OUT:
        """The result; the timestamp is the moment at which the limit passed."""


class PatternFlatTimeoutFunction(Function, Generic[IN, OUT]):
    """Any number of results for every partial match that has timed out."""

    @abstractmethod
    def timeout(self, match: Match[IN], timeout_timestamp: int) -> Iterable[OUT] | None:
        """Yield the results; the timestamp is the moment at which the limit passed."""


# Every function has open(), close() and a runtime context here: Flink's "rich" names are other names of the same.
RichPatternSelectFunction = PatternSelectFunction
RichPatternFlatSelectFunction = PatternFlatSelectFunction
