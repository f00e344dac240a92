"""What an event does to all runs of a key, determined by evaluating each simple condition once.

Most events find the key's runs in the same few states. For each set of occupied states there is one tree of questions,
whose leaves are plans. This makes the automaton deterministic, as far as events require it.
"""

from __future__ import annotations

from typing import Any

from penstock.runtime.cep.decisions import Decisions, Outcome, Question, Step

__all__ = ["JointQuestion", "Plan", "Plans"]

_MOST_TREES = 256
_MOST_STATES = 12  # with more occupied states, a set rarely occurs again


class Plan:
    """The states that an event affects, and how their runs continue. Other runs do not change."""

    __slots__ = ("begins", "moves")

    def __init__(self, moves: list[tuple[int, Outcome]], begins: tuple[Step, ...]) -> None:
        self.moves = [(state, outcome.stays, outcome.moves) for state, outcome in moves]
        self.begins = begins
        """The steps of the start state."""


class JointQuestion:
    """A simple condition that must be evaluated before the plan is known."""

    __slots__ = ("_known", "_plans", "_states", "call", "condition", "no", "pattern_name", "yes")

    def __init__(self, plans: Plans, states: list[int], known: dict[int, bool], question: Question) -> None:
        self._plans = plans
        self._states = states
        self._known = known
        self.condition = question.condition
        self.pattern_name = question.pattern_name
        self.call = question.call
        self.yes: JointQuestion | Plan | None = None
        self.no: JointQuestion | Plan | None = None

    def answer(self, *, held: bool) -> JointQuestion | Plan:
        """Return what follows from this result, computed on first use."""
        found = self._plans.explore(self._states, {**self._known, self.condition: held})
        if held:
            self.yes = found
        else:
            self.no = found
        return found


class Plans:
    """The trees of an automaton, by set of occupied states. Bit *n* stands for state *n*.

    States whose outcome differs between runs are left out: their conditions read the events of the run.
    """

    def __init__(self, decisions: Decisions, start: int) -> None:
        self._decisions = decisions
        self._start = start
        self.trees: dict[int, JointQuestion | Plan] = {}
        self.asked: Question | None = None
        """The condition that is being evaluated outside of a tree."""

    def tree(self, occupied: int, value: Any) -> JointQuestion | Plan:
        """Return the tree of a set of states. If there would be too many, return the plan for this event only."""
        states = [number for number in range(occupied.bit_length()) if occupied >> number & 1]
        if len(states) > _MOST_STATES or len(self.trees) >= _MOST_TREES:
            return self._ask(states, value)
        found = self.trees[occupied] = self.explore(states, {})
        return found

    def explore(self, states: list[int], known: dict[int, bool]) -> JointQuestion | Plan:
        """Return the plan, or the next condition to evaluate."""
        outcomes: dict[int, Outcome] = {}
        for number in (*states, self._start):
            at = self._decisions.roots[number]
            if self._decisions.per_run[number]:
                continue
            while isinstance(at, Question):
                held = known.get(at.condition)
                if held is None:
                    return JointQuestion(self, states, known, at)
                at = (at.yes if held else at.no) or at.answer(held=held)
            outcomes[number] = at
        return self._plan(states, outcomes)

    def _ask(self, states: list[int], value: Any) -> Plan:
        truth: dict[int, bool] = {}
        outcomes: dict[int, Outcome] = {}
        for number in (*states, self._start):
            at = self._decisions.roots[number]
            if self._decisions.per_run[number]:
                continue
            while isinstance(at, Question):
                held = truth.get(at.condition)
                if held is None:
                    self.asked = at
                    held = truth[at.condition] = bool(at.call(value))
                at = (at.yes if held else at.no) or at.answer(held=held)
            outcomes[number] = at
        self.asked = None
        return self._plan(states, outcomes)

    def _plan(self, states: list[int], outcomes: dict[int, Outcome]) -> Plan:
        start = outcomes.get(self._start)
        moves = [(number, outcomes[number]) for number in states if number in outcomes]
        return Plan([one for one in moves if not one[1].idle], start.moves if start is not None else ())
