"""Flink's order of runs that began with the same event.

Flink keeps the runs of a key in one list. Where a run forks, the new runs take its place, in the order of the steps.
This order can be derived without storing it. Two runs with a common beginning separated in the state to which its last
event led. Either one of them followed an edge that Flink tries earlier, or both waited in the same state and one took
an earlier event, since a state offers an event to its TAKE edge first. This does not hold for groups that repeat or are
optional, so `runs_in_order.py` handles them.
"""

from __future__ import annotations

from operator import itemgetter

from penstock.runtime.cep.decisions import Decisions
from penstock.runtime.cep.nfa import NEVER, Path
from penstock.runtime.cep.priority_queue import poll
from penstock.runtime.cep.state import Automaton, State, StateTransitionAction

__all__ = ["Ended", "ForkOrder"]

Ended = tuple[int, Path, int | None, int]
"""A run that ends: number of its first event, path, the state in which it waited unless it has matched, a time."""
Key = list[tuple[int, int]]
"""For each event of a path: how early Flink tries the state that took it, and the number of the event."""

_first_event = itemgetter(0)
_IGNORE, _PROCEED = StateTransitionAction.IGNORE, StateTransitionAction.PROCEED


class ForkOrder:
    """Computes sort keys from the paths of runs."""

    def __init__(self, automaton: Automaton, decisions: Decisions) -> None:
        self._states = automaton.states
        self._start = automaton.start
        self._sources, self._targets = decisions.sources, decisions.targets
        self._places: dict[int, _Place] = {}

    def sort(self, runs: list[Ended]) -> bool:
        """Sort runs in the order in which Flink visits them. Return whether any of them began with the same event."""
        runs.sort(key=_first_event)
        if len({run[0] for run in runs}) == len(runs):
            return False
        runs.sort(key=lambda run: (run[0], self._key(run[1], run[2])))
        return True

    def sort_as_heap(self, matches: list[Ended]) -> list[Ended]:
        """Return matches in the order in which they leave Flink's heap, which is built in the order of the runs."""
        return [poll(matches) for _ in matches[:]] if self.sort(matches) else matches

    def _key(self, path: Path, state: int | None) -> Key:
        key: Key = []
        place = self._start
        for _, transition, event, _, _ in path:
            key.append(self._place(place).key(self._sources[transition], event))
            place = self._targets[transition]
        key.append(self._place(place).key(place if state is None else state, NEVER))
        return key

    def _place(self, state: int) -> _Place:
        place = self._places.get(state)
        if place is None:
            place = self._places[state] = _Place(self._states, state)
        return place


class _Place:
    """A state to which an event led, and the order in which Flink tries the states from there on."""

    def __init__(self, states: list[State], place: int) -> None:
        self._states = states
        self._ranks: dict[int, int] = {}
        self._visit(place)

    def key(self, state: int, event: int) -> tuple[int, int]:
        return self._ranks.get(state, len(self._ranks)), event

    def _visit(self, place: int) -> None:
        waiting = [[place]]
        while waiting:
            twins = waiting.pop()
            rank = len(self._ranks)
            for current in twins:
                if current in self._ranks:
                    continue
                self._ranks[current] = rank
                ahead: dict[str, list[int]] = {}
                for edge in self._states[current].transitions:
                    if edge.action is _IGNORE:
                        self._visit(edge.target)
                    elif edge.action is _PROCEED:
                        # A run enters either a state or its copy without the constraint of a greedy loop.
                        ahead.setdefault(self._states[edge.target].pattern_name, []).append(edge.target)
                waiting += ahead.values()
