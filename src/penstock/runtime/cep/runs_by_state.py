"""Without a skip strategy: runs grouped by state, so that an event touches only the runs it concerns.

The runs of a state are ordered by their first event. Those whose limit has passed are at the front.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Any

from penstock.runtime.cep.decisions import IGNORED, NOWHERE, Outcome, Question
from penstock.runtime.cep.nfa import NEVER, NFA, NO_NODE, NFAState

__all__ = ["RunsByStateNFA"]

Run = tuple[int, int, int, int]
"""(number of the first event, last node, timestamp of the first event, timestamp of the last event)"""
Found = tuple[int, int, int]
"""A match: (number of the first event, last node, the transition by which the current event follows, or IGNORED)"""

_start_of = itemgetter(2)
_FEW = 8  # runs that are sorted in one by one


class RunsByStateNFA(NFA):
    """Emits every match at once."""

    def restore(self, runs: Any) -> tuple[Any, list[Any]]:
        """Runs by state."""
        return {} if runs is None else runs, []

    def store(self, state: NFAState) -> Any:
        """The same dict."""
        return state.runs or None

    def process(  # noqa: C901 - the inner loop: calls would double its cost
        self, state: NFAState, timestamps: list[int], values: list[Any]
    ) -> int | None:
        """The inner loop of CEP: written out, with everything in local variables."""
        runs, nodes, number = state.runs, state.nodes, state.next_number
        decisions = self.decisions
        roots, per_run = decisions.roots, decisions.per_run
        start_state = self.automaton.start
        start_root, start_per_run = roots[start_state], per_run[start_state]
        window, limits = self.window, self.limits
        deadline, moment, every_event = self._deadline(state), NEVER, self.advances_before_every_event
        began: int | None = None
        value: Any
        for position, value in enumerate(values):
            timestamp = timestamps[position]
            if timestamp >= deadline and (timestamp != moment or every_event):
                state.next_number = number
                self.advance_time(state, timestamp)
                deadline = self._deadline(state)
            moment = timestamp
            truth: dict[int, bool] = {}
            event = number
            arrivals: dict[int, list[Run]] | None = None
            found: list[Found] | None = None
            left: list[int] | None = None
            at: Any

            for occupied, here in runs.items():
                if per_run[occupied]:
                    outcomes = [
                        self.decide_for_run(state, roots[occupied], run[1], timestamp, value, truth) for run in here
                    ]
                    if all(outcome.idle for outcome in outcomes):
                        continue
                    staying: list[Run] = [run for run, outcome in zip(here, outcomes, strict=True) if outcome.stays]
                    moving: Iterable[tuple[Run, Outcome]] = zip(here, outcomes, strict=True)
                    if len(staying) < len(here):
                        runs[occupied] = staying
                        if not staying:
                            left = [occupied] if left is None else [*left, occupied]
                else:
                    at = roots[occupied]
                    while at.__class__ is Question:
                        held = truth.get(at.condition)
                        if held is None:
                            self.asked = at
                            held = truth[at.condition] = bool(at.call(value))
                        at = (at.yes if held else at.no) or at.answer(held=held)
                    if at.idle:
                        continue
                    if not at.stays:
                        left = [occupied] if left is None else [*left, occupied]
                    moving = [(run, at) for run in here]
                if arrivals is None:
                    arrivals = {}
                for run, outcome in moving:
                    for transition, target, completes in outcome.moves:
                        if transition == IGNORED:
                            moved, node = run, run[1]
                        elif target == NOWHERE:
                            node = run[1]
                        else:
                            node = number
                            nodes[node] = (run[1], transition, event, timestamp, value)
                            number += 1
                            moved = (run[0], node, run[2], timestamp)
                        if target != NOWHERE:
                            if target in arrivals:
                                arrivals[target].append(moved)
                            else:
                                arrivals[target] = [moved]
                        if completes:
                            follows = transition if target == NOWHERE else IGNORED
                            if found is None:
                                found = []
                            found.append((run[0], node, follows))

            at = start_root
            if start_per_run:
                at = self.decide_for_run(state, at, NO_NODE, timestamp, value, truth)
            else:
                while at.__class__ is Question:
                    held = truth.get(at.condition)
                    if held is None:
                        self.asked = at
                        held = truth[at.condition] = bool(at.call(value))
                    at = (at.yes if held else at.no) or at.answer(held=held)
            for transition, target, completes in at.moves:
                if began is None and timestamp > 0:
                    began = position
                node = NO_NODE
                if target != NOWHERE:
                    node = number
                    nodes[node] = (NO_NODE, transition, event, timestamp, value)
                    number += 1
                    moved = (event, node, timestamp, timestamp)
                    if arrivals is None:
                        arrivals = {target: [moved]}
                    elif target in arrivals:
                        arrivals[target].append(moved)
                    else:
                        arrivals[target] = [moved]
                    if window and timestamp + window < deadline:
                        deadline = timestamp + window
                if completes:
                    if found is None:
                        found = []
                    found.append((event, node, transition if target == NOWHERE else IGNORED))

            if left is not None:
                for occupied in left:
                    del runs[occupied]
                state.changed = True
            if arrivals:
                state.changed = True
                for target, new in arrivals.items():
                    here = runs.get(target)
                    if here is None:
                        if len(new) > 1:
                            new.sort()
                        runs[target] = new
                    elif here[-1] <= new[0] and len(new) == 1:
                        here.append(new[0])
                    else:
                        _merge(here, new)
                    if limits and target in limits:
                        deadline = min(deadline, min(run[3] for run in new) + limits[target])
            if found is not None:
                if event == number:
                    number += 1  # the number of the event is taken, though no node has it
                if len(found) > 1:
                    found.sort(key=itemgetter(0))
                for _, node, follows in found:
                    path = self.path(state, node)
                    if follows != IGNORED:
                        path.append((node, follows, event, timestamp, value))
                    self._on_match(path, timestamp, "complete match")
        state.next_number = number
        return began

    # -- time ---------------------------------------------------------------------------------------------------

    def advance_time(self, state: NFAState, timestamp: int) -> None:
        """Drop runs whose limit has passed; those that wait for a forbidden event not to come become matches."""
        matched: list[tuple[Run, int]] = []
        expired: list[tuple[Run, int, int]] = []
        for occupied in list(state.runs):
            here = state.runs[occupied]
            limit = self.limits.get(occupied)
            gone: list[tuple[Run, int]] = []
            if self.window:
                count = bisect_right(here, timestamp - self.window, key=_start_of)
                gone = [(run, run[2] + self.window) for run in here[:count]]
                if count:
                    del here[:count]
            if limit:
                late = [run for run in here if timestamp - run[3] >= limit]
                gone = [(run, run[3] + limit if timestamp - run[3] >= limit else at) for run, at in gone]
                gone += [(run, run[3] + limit) for run in late]
                if late:
                    here[:] = [run for run in here if timestamp - run[3] < limit]
            if not here:
                del state.runs[occupied]
            if occupied in self._pending:
                matched += gone
            else:
                expired += [(run, at, occupied) for run, at in gone]
        if not matched and not expired:
            return
        state.changed = True
        for run, _ in sorted(matched):
            self._on_match(self.path(state, run[1]), timestamp, "match completed by its time limit")
        if self._on_timeout is not None:
            for run, at, occupied in sorted(expired):
                where = f"partial match that timed out in state {self.automaton.states[occupied].name}"
                self._on_timeout(self.path(state, run[1]), at, where)

    def _deadline(self, state: NFAState) -> int:
        """A time before which no limit passes."""
        deadline = NEVER
        for occupied, here in state.runs.items():
            if self.window:
                deadline = min(deadline, here[0][2] + self.window)
            if self.limits and (limit := self.limits.get(occupied)):
                deadline = min(deadline, min(run[3] for run in here) + limit)
        return deadline

    def earliest_start(self, state: NFAState) -> int | None:
        """The front of one of the states."""
        return min((here[0][2] for here in state.runs.values()), default=None)

    def last_nodes(self, state: NFAState) -> Iterable[int]:
        """Of the runs in all states."""
        return (run[1] for run in chain.from_iterable(state.runs.values()))

    def count_runs(self, state: NFAState) -> int:
        """In all states."""
        return sum(map(len, state.runs.values()))


def _merge(here: list[Any], new: list[Run]) -> None:
    """Add runs to those of a state, in order of their first events."""
    new.sort()
    if here[-1] <= new[0]:
        here.extend(new)
    elif len(new) <= _FEW:
        for run in new:
            insort(here, run)
    else:
        here.extend(new)
        here.sort()
