"""Which transitions an event takes from a state, determined with as few condition calls as possible.

As in Flink, all edges of a state whose condition holds are followed, including those of states after PROCEED edges. The
result depends only on the results of the user's conditions, so it is cached in a tree of questions, whose leaves are
:class:`Outcome` objects. Trees grow as results come up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core.cep import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    SimpleCondition,
)
from penstock.core.cep.conditions import FunctionCondition, IterativeFunctionCondition
from penstock.runtime.cep.state import Automaton, PatternCondition, StateTransitionAction, StateType

__all__ = ["Decisions", "Outcome", "Question", "Step"]

Step = tuple[int, int, bool]
"""(number of the TAKE transition or IGNORED, the next state or NOWHERE, whether the event completes a match)"""

IGNORED = -1
NOWHERE = -1

_TAKE, _IGNORE, _PROCEED = StateTransitionAction.TAKE, StateTransitionAction.IGNORE, StateTransitionAction.PROCEED
_ALWAYS = BooleanConditions.true_function()


class Outcome:
    """The outcome for a run: it may stay, and takes steps, each of which creates a new run or a match."""

    __slots__ = ("idle", "moves", "stays", "steps")

    def __init__(self, state: int, steps: list[Step]) -> None:
        itself = (IGNORED, state, False)
        self.steps = tuple(steps)
        self.stays = itself in steps
        self.moves = tuple(step for step in steps if step != itself)
        self.idle = self.stays and not self.moves


class Question:
    """A condition that must be evaluated before the outcome is known."""

    __slots__ = ("_decisions", "_known", "_state", "call", "condition", "iterative", "no", "pattern_name", "yes")

    def __init__(self, decisions: Decisions, state: int, known: dict[int, bool], asked: _Unanswered) -> None:
        self._decisions = decisions
        self._state = state
        self._known = known
        self.condition = id(asked.condition)
        self.pattern_name = asked.pattern_name
        self.iterative = not isinstance(asked.condition, SimpleCondition)
        self.call = _callable(asked.condition)
        self.yes: Question | Outcome | None = None
        self.no: Question | Outcome | None = None

    def answer(self, *, held: bool) -> Question | Outcome:
        """Return the next question or outcome, computed on first use."""
        found = self._decisions.explore(self._state, {**self._known, self.condition: held})
        if held:
            self.yes = found
        else:
            self.no = found
        return found


class _Unanswered(Exception):  # noqa: N818 - not an error: exploring stops until the question is answered
    def __init__(self, condition: IterativeCondition[Any], pattern_name: str) -> None:
        super().__init__()
        self.condition = condition
        self.pattern_name = pattern_name


class Decisions:
    """The question trees of an automaton, and the table of its TAKE transitions."""

    def __init__(self, automaton: Automaton) -> None:
        self._states = automaton.states
        self._start = automaton.start
        self.transitions: list[tuple[str, str]] = []  # names of source and target
        self.sources: list[int] = []  # states, by transition
        self.targets: list[int] = []
        self.names: list[str] = []  # the pattern that takes the event, by transition
        self._numbers: dict[tuple[int, int], int] = {}  # (state, position of the edge) -> transition
        for number, state in enumerate(self._states):
            for position, edge in enumerate(state.transitions):
                if edge.action is _TAKE and state.type is not StateType.STOP:
                    self._numbers[number, position] = len(self.transitions)
                    self.transitions.append((state.name, self._states[edge.target].name))
                    self.sources.append(number)
                    self.targets.append(edge.target)
                    self.names.append(state.pattern_name)
        self.per_run = [self._is_iterative(number) for number in range(len(self._states))]
        """Whether the outcome of a state differs between runs, because a condition reads their events."""
        self.roots: list[Question | Outcome] = [self.explore(number, {}) for number in range(len(self._states))]

    def explore(self, state: int, known: dict[int, bool]) -> Question | Outcome:
        """Return the outcome for a run in a state, or the next condition to evaluate."""
        try:
            return Outcome(state, self._steps(state, known))
        except _Unanswered as question:
            return Question(self, state, known, question)

    def _steps(self, state: int, known: dict[int, bool]) -> list[Step]:
        steps: list[Step] = []
        stopped = False
        waiting = [state]
        while waiting:
            current = waiting.pop()
            for position, edge in enumerate(self._states[current].transitions):
                if not _holds(edge.condition, known, ""):
                    continue
                target = self._states[edge.target].type
                if edge.action is _PROCEED:
                    waiting.append(edge.target)
                elif edge.action is _TAKE:
                    if target is StateType.STOP:
                        stopped = True
                        continue
                    transition = self._numbers[current, position]
                    final = target is StateType.FINAL
                    completes = final or self._proceeds_to_final(edge.target, known)
                    steps.append((transition, NOWHERE if final else edge.target, completes))
                elif state != self._start:  # the start never waits: every event may begin a match
                    final = target is StateType.FINAL
                    steps.append((IGNORED, NOWHERE if final else edge.target, final))
        if stopped:  # a forbidden event ends the run, but not the matches that it completes
            return [(transition, NOWHERE, True) for transition, _, completes in steps if completes]
        return steps

    def _proceeds_to_final(self, state: int, known: dict[int, bool]) -> bool:
        waiting = [state]
        while waiting:
            for edge in self._states[waiting.pop()].transitions:
                if edge.action is _PROCEED and _holds(edge.condition, known, ""):
                    if self._states[edge.target].type is StateType.FINAL:
                        return True
                    waiting.append(edge.target)
        return False

    def _is_iterative(self, state: int) -> bool:
        """Whether an iterative condition may be evaluated for a run in this state."""
        for current in self._behind_proceed(state):
            for edge in self._states[current].transitions:
                if _has_iterative_part(edge.condition):
                    return True
                if edge.action is _TAKE and any(
                    ahead.action is _PROCEED and _has_iterative_part(ahead.condition)
                    for reached in self._behind_proceed(edge.target)
                    for ahead in self._states[reached].transitions
                ):
                    return True
        return False

    def _behind_proceed(self, state: int) -> set[int]:
        """Return the state and all states to which PROCEED edges lead."""
        found = {state}
        waiting = [state]
        while waiting:
            for edge in self._states[waiting.pop()].transitions:
                if edge.action is _PROCEED and edge.target not in found:
                    found.add(edge.target)
                    waiting.append(edge.target)
        return found


def _holds(condition: IterativeCondition[Any], known: dict[int, bool], pattern_name: str) -> bool:
    """Evaluate the condition with the known results, from left to right."""
    if condition is _ALWAYS:
        return True
    if isinstance(condition, PatternCondition):
        return _holds(condition.condition, known, condition.pattern_name)
    if isinstance(condition, RichAndCondition):
        return _holds(condition.left, known, pattern_name) and _holds(condition.right, known, pattern_name)
    if isinstance(condition, RichOrCondition):
        return _holds(condition.left, known, pattern_name) or _holds(condition.right, known, pattern_name)
    if isinstance(condition, RichNotCondition):
        return not _holds(condition.original, known, pattern_name)
    answer = known.get(id(condition))
    if answer is None:
        raise _Unanswered(condition, pattern_name)
    return answer


def _has_iterative_part(condition: IterativeCondition[Any]) -> bool:
    if isinstance(condition, PatternCondition):
        return _has_iterative_part(condition.condition)
    if isinstance(condition, (RichAndCondition, RichOrCondition)):
        return _has_iterative_part(condition.left) or _has_iterative_part(condition.right)
    if isinstance(condition, RichNotCondition):
        return _has_iterative_part(condition.original)
    return not isinstance(condition, SimpleCondition)


def _callable(condition: IterativeCondition[Any]) -> Callable[..., Any]:
    """Return the user's function itself if possible, which saves a call per event."""
    if isinstance(condition, (FunctionCondition, IterativeFunctionCondition)):
        return condition.function
    return condition.filter
