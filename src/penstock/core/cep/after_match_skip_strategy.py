"""Skip strategies: which other partial matches to drop after a match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from penstock.common.checks import require_name
from penstock.common.errors import JobExecutionError

__all__ = [
    "AfterMatchSkipStrategy",
    "NoSkipStrategy",
    "SkipPastLastStrategy",
    "SkipToElementStrategy",
    "SkipToFirstStrategy",
    "SkipToLastStrategy",
    "SkipToNextStrategy",
]

Taken = Sequence[tuple[str, int]]
"""The events of a match as pattern name and event number, in order. Numbers ascend in processing order."""


class AfterMatchSkipStrategy(ABC):
    """Decides which partial matches of the same key to drop when a match is emitted.

    >>> AfterMatchSkipStrategy.skip_to_first("a")
    skip to first 'a'
    """

    @staticmethod
    def no_skip() -> NoSkipStrategy:
        """Emit every possible match."""
        return NoSkipStrategy()

    @staticmethod
    def skip_to_next() -> SkipToNextStrategy:
        """Drop partial matches that started with the same event."""
        return SkipToNextStrategy()

    @staticmethod
    def skip_past_last_event() -> SkipPastLastStrategy:
        """Drop partial matches that started between the first and the last event of the match."""
        return SkipPastLastStrategy()

    @staticmethod
    def skip_to_first(pattern_name: str) -> SkipToFirstStrategy:
        """Drop partial matches that started before the first event of the pattern."""
        return SkipToFirstStrategy(pattern_name)

    @staticmethod
    def skip_to_last(pattern_name: str) -> SkipToLastStrategy:
        """Drop partial matches that started before the last event of the pattern."""
        return SkipToLastStrategy(pattern_name)

    def is_skip_strategy(self) -> bool:
        """Whether the strategy can drop partial matches."""
        return True

    def get_pattern_name(self) -> str | None:
        """Return the pattern to skip to, if the strategy has one."""
        return None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).items()))

    @abstractmethod
    def prune_before(self, taken: Taken) -> int | None:
        """Return the event number before which partial matches must have started to be dropped; None drops nothing."""


class NoSkipStrategy(AfterMatchSkipStrategy):
    """Drops nothing."""

    def is_skip_strategy(self) -> bool:
        """Return False: this strategy drops nothing."""
        return False

    def prune_before(self, taken: Taken) -> int | None:
        """Drop nothing."""
        return None

    def __repr__(self) -> str:
        return "no skip"


class SkipToNextStrategy(AfterMatchSkipStrategy):
    """Drops partial matches that started with the first event of the match."""

    def prune_before(self, taken: Taken) -> int | None:
        """Drop up to and including the first event."""
        return taken[0][1] + 1

    def __repr__(self) -> str:
        return "skip to next"


class SkipPastLastStrategy(AfterMatchSkipStrategy):
    """Drops partial matches that started within the match."""

    def prune_before(self, taken: Taken) -> int | None:
        """Drop up to and including the last event."""
        return taken[-1][1] + 1

    def __repr__(self) -> str:
        return "skip past last event"


class SkipToElementStrategy(AfterMatchSkipStrategy):
    """Drops partial matches that started before an event of a given pattern."""

    _position: ClassVar[int]
    _which: ClassVar[str]

    def __init__(self, pattern_name: str, *, throws_on_miss: bool = False) -> None:
        self._pattern_name = require_name(pattern_name, "the name of the pattern to skip to")
        self._throws_on_miss = throws_on_miss

    def get_pattern_name(self) -> str | None:
        """Return the pattern to skip to."""
        return self._pattern_name

    def throw_exception_on_miss(self) -> SkipToElementStrategy:
        """Return a strategy that fails the job if the match has no event to skip to, or only its first one."""
        return type(self)(self._pattern_name, throws_on_miss=True)

    def prune_before(self, taken: Taken) -> int | None:
        """Drop up to, but not including, the event of the pattern."""
        events = [number for name, number in taken if name == self._pattern_name]
        if self._throws_on_miss:
            if not events:
                raise JobExecutionError(
                    f"cannot {self!r}: a match has no event of that pattern. Without throw_exception_on_miss() nothing "
                    "is skipped after such a match"
                )
            if events[self._position] == taken[0][1]:
                raise JobExecutionError(
                    f"cannot {self!r}: this is the first event of the match, so the same match would start again. Skip "
                    "to a later pattern, or remove throw_exception_on_miss()"
                )
        return events[self._position] if events else None

    def __repr__(self) -> str:
        return f"skip to {self._which} {self._pattern_name!r}"


class SkipToFirstStrategy(SkipToElementStrategy):
    """Drops partial matches that started before the first event of a pattern."""

    _position = 0
    _which = "first"


class SkipToLastStrategy(SkipToElementStrategy):
    """Drops partial matches that started before the last event of a pattern."""

    _position = -1
    _which = "last"
