"""States and transitions: the compiled form of a pattern.

States refer to each other by position, so that an automaton with thousands of states can be pickled.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field
from typing import Any

from penstock.core.cep import (
    AfterMatchSkipStrategy,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from penstock.core.cep.conditions import ask

__all__ = [
    "ENDING_STATE_NAME",
    "Automaton",
    "PatternCondition",
    "State",
    "StateTransition",
    "StateTransitionAction",
    "StateType",
]

ENDING_STATE_NAME = "$endState$"


class StateType(enum.Enum):
    """The role of a state in the automaton."""

    START = "start"  # always occupied
    NORMAL = "normal"
    PENDING = "pending"  # a match if its time limit passes
    STOP = "stop"  # a forbidden event occurred
    FINAL = "final"  # a match


class StateTransitionAction(enum.Enum):
    """The effect of a transition on the current event."""

    TAKE = "take"  # the event becomes part of the match
    IGNORE = "ignore"  # the event is skipped
    PROCEED = "proceed"  # the event is offered to the next state


class PatternCondition(IterativeCondition[Any]):
    """A user's condition with the name of its pattern, for errors."""

    def __init__(self, pattern_name: str, condition: IterativeCondition[Any]) -> None:
        self.pattern_name = pattern_name
        self.condition = condition

    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Return the result of the user's condition."""
        return ask(self.condition, value, ctx)


@dataclass(slots=True)
class StateTransition:
    """An edge, followed if its condition holds."""

    action: StateTransitionAction
    target: int
    condition: IterativeCondition[Any]


@dataclass(slots=True)
class State:
    """A state. Its name is that of the pattern, with a number after a colon if the pattern has several states."""

    name: str
    type: StateType
    transitions: list[StateTransition] = field(default_factory=list)

    @property
    def pattern_name(self) -> str:
        """The name of its pattern."""
        return self.name.split(":")[0]


@dataclass(slots=True)
class Automaton:
    """A compiled pattern."""

    description: str
    states: list[State]
    start: int
    window_time: int  # ms between the first and the last event; 0 means no limit
    window_times: dict[int, int]  # ms since the previous event, by state
    skip_strategy: AfterMatchSkipStrategy
    links: dict[str, str]  # the contiguity before each pattern, in order; for pictures
    repeats_groups: bool = False  # whether some group repeats or is optional

    @property
    def keeps_order(self) -> bool:
        """Whether runs are stored in Flink's order: if it cannot be derived, or if matches may drop other runs."""
        return self.repeats_groups or self.skip_strategy.is_skip_strategy()

    @property
    def fingerprint(self) -> str:
        """Return a hash of what must not change while there are partial matches: states, transitions and limits, but
        not conditions.
        """
        digest = hashlib.sha256(f"{self.window_time} {self.keeps_order}".encode())
        for number, state in enumerate(self.states):
            edges = " ".join(f"{edge.action.value}>{edge.target}" for edge in state.transitions)
            digest.update(f"\n{state.name} {state.type.value} {self.window_times.get(number)} {edges}".encode())
        return digest.hexdigest()[:12]

    def user_conditions(self) -> list[IterativeCondition[Any]]:
        """Return every condition object of the user once."""
        found: dict[int, IterativeCondition[Any]] = {}
        waiting: list[IterativeCondition[Any]] = [edge.condition for state in self.states for edge in state.transitions]
        while waiting:
            condition = waiting.pop()
            if isinstance(condition, (RichAndCondition, RichOrCondition)):
                waiting += (condition.left, condition.right)
            elif isinstance(condition, RichNotCondition):
                waiting.append(condition.original)
            elif isinstance(condition, PatternCondition):
                waiting.append(condition.condition)
            else:
                found[id(condition)] = condition
        return list(found.values())
