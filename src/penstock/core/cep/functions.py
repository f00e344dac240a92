"""Functions that receive matches and timed-out partial matches."""

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
    """Called for each match. Add :class:`TimedOutPartialMatchHandler` to also receive timed-out partial matches."""

    class Context(ABC):
        """The context of a match: time and side outputs."""

        __slots__ = ()

        @abstractmethod
        def timestamp(self) -> int:
            """Return the timestamp of the match: that of its last event, or the time at which it completed."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def output(self, tag: OutputTag, value: Any) -> None:
            """Emit to a side output."""

    @abstractmethod
    def process_match(self, match: Match[IN], ctx: Context) -> Iterable[OUT] | None:
        """Yield any number of results; ``yield tag, value`` emits to a side output."""


class TimedOutPartialMatchHandler(ABC, Generic[IN]):
    """A mixin for a :class:`PatternProcessFunction` that receives partial matches whose time limit has passed."""

    @abstractmethod
    def process_timed_out_match(self, match: Match[IN], ctx: PatternProcessFunction.Context) -> Any:
        """Emit with ``ctx.output(tag, value)`` or ``yield tag, value``: there is no main output here."""


class PatternSelectFunction(Function, Generic[IN, OUT]):
    """Returns one result for each match."""

    @abstractmethod
    def select(self, match: Match[IN]) -> OUT:
        """Return the result."""


class PatternFlatSelectFunction(Function, Generic[IN, OUT]):
    """Yields any number of results for each match."""

    @abstractmethod
    def flat_select(self, match: Match[IN]) -> Iterable[OUT] | None:
        """Yield the results."""


class PatternTimeoutFunction(Function, Generic[IN, OUT]):
    """Returns one result for each timed-out partial match."""

    @abstractmethod
    def timeout(self, match: Match[IN], timeout_timestamp: int) -> OUT:
        """Return the result; the timestamp is the time at which the limit passed."""


class PatternFlatTimeoutFunction(Function, Generic[IN, OUT]):
    """Yields any number of results for each timed-out partial match."""

    @abstractmethod
    def timeout(self, match: Match[IN], timeout_timestamp: int) -> Iterable[OUT] | None:
        """Yield the results; the timestamp is the time at which the limit passed."""


# Every function has open(), close() and a runtime context here: Flink's "rich" names are other names of the same.
RichPatternSelectFunction = PatternSelectFunction
RichPatternFlatSelectFunction = PatternFlatSelectFunction
