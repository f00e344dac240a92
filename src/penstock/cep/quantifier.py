"""Quantifiers: how many events a pattern takes, and which events may lie between them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration

__all__ = ["ConsumingStrategy", "Quantifier", "QuantifierProperty", "Times", "WithinType"]


class ConsumingStrategy(enum.Enum):
    """The events that a pattern allows between the previous event and its own."""

    STRICT = "next"
    SKIP_TILL_NEXT = "followed by"
    SKIP_TILL_ANY = "followed by any"
    NOT_FOLLOW = "not followed by"
    NOT_NEXT = "not next"

    @property
    def negated(self) -> bool:
        """Whether the pattern forbids an event."""
        return self in {ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT}


class QuantifierProperty(enum.Enum):
    """Properties of a quantifier."""

    SINGLE = "single"
    LOOPING = "looping"
    TIMES = "times"
    OPTIONAL = "optional"
    GREEDY = "greedy"


class WithinType(enum.Enum):
    """The events between which a time limit applies."""

    FIRST_AND_LAST = "first and last"
    PREVIOUS_AND_CURRENT = "previous and current"


@dataclass(frozen=True)
class Times:
    """The number of events that a loop takes; `to` equals `from_` for a loop without an upper limit."""

    from_: int
    to: int
    window: Duration | None = None

    def __post_init__(self) -> None:
        if self.from_ < 1 or self.to < self.from_:
            raise InvalidProgramError(f"a pattern cannot repeat {self.from_} to {self.to} times")

    def get_from(self) -> int:
        return self.from_

    def get_to(self) -> int:
        return self.to

    def get_window_size(self) -> Duration | None:
        return self.window


class Quantifier:
    """The properties of a pattern: single or repeated, optional, greedy, and its two strategies."""

    def __init__(self, kind: QuantifierProperty, consuming_strategy: ConsumingStrategy) -> None:
        self.properties = {kind}
        self.consuming_strategy = consuming_strategy
        self.inner_consuming_strategy = ConsumingStrategy.SKIP_TILL_NEXT

    def has_property(self, quantifier_property: QuantifierProperty) -> bool:
        return quantifier_property in self.properties

    def get_consuming_strategy(self) -> ConsumingStrategy:
        return self.consuming_strategy

    def get_inner_consuming_strategy(self) -> ConsumingStrategy:
        return self.inner_consuming_strategy

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Quantifier) else NotImplemented

    def __hash__(self) -> int:
        return hash((frozenset(self.properties), self.consuming_strategy, self.inner_consuming_strategy))

    def __repr__(self) -> str:
        names = sorted(one.name for one in self.properties)
        return f"Quantifier({', '.join(names)}, {self.consuming_strategy.name}, {self.inner_consuming_strategy.name})"
