"""Without a skip strategy: runs are grouped by state, so that an event touches only the runs it affects.

The runs of a state are ordered by their first event. Runs whose limit has passed are at the front.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Any

from penstock.runtime.cep.decisions import IGNORED, NOWHERE, Step
from penstock.runtime.cep.fork_order import Ended, ForkOrder
from penstock.runtime.cep.nfa import NEVER, NFA, NO_NODE, NFAState
from penstock.runtime.cep.plans import JointQuestion, Plans
from penstock.runtime.cep.state import Automaton

__all__ = ["RunsByStateNFA"]

Run = tuple[int, int, int, int]
"""(number of the first event, last node, timestamp of the first event, timestamp of the last event)"""
Found = tuple[int, int, int]
"""A match: (number of the first event, last node, the transition that takes the current event, or IGNORED)"""

_start_of = itemgetter(2)
_FEW = 8  # up to this number, runs are inserted one by one


class RunsByStateNFA(NFA):
    """Emits every match at once."""

    def __init__(self, automaton: Automaton, *arguments: Any, **options: Any) -> None:
        super().__init__(automaton, *arguments, **options)
        self._plans = Plans(self.decisions, automaton.start)
        self._forks = ForkOrder(self.automaton, self.decisions)
        self._iterative = [number for number, differs in enumerate(self.decisions.per_run) if differs]

    def restore(self, runs: Any) -> tuple[Any, list[Any]]:
        """Return runs by state."""
        return {} if runs is None else runs, []

    def store(self, state: NFAState) -> Any:
        """Return the same dict."""
        return state.runs or None

    def process(self, state: NFAState, timestamps: list[int], values: list[Any]) -> int | None:  # noqa: C901
        """The inner loop of CEP, written out with local variables only, since calls would double its cost."""
        runs, nodes, number = state.runs, state.nodes, state.next_number
        plans, iterative, on_match = self._plans, self._iterative, self._on_match
        trees = plans.trees
        window, limits = self.window, self.limits
        deadline, moment, every_event = self._deadline(state), NEVER, self.advances_before_every_event
        occupied = _set_of(runs)
        began: int | None = None
        at: Any = None
        try:
            for position, value in enumerate(values):
                timestamp = timestamps[position]
                if timestamp >= deadline and (timestamp != moment or every_event):
                    deadline = self._expire(state, timestamp)
                    occupied = _set_of(runs)
                moment = timestamp
                at = trees.get(occupied) or plans.tree(occupied, value)
                while at.__class__ is JointQuestion:
                    at = at.yes or at.answer(held=True) if at.call(value) else at.no or at.answer(held=False)
                begins, asked = at.begins, None
                if iterative:
                    asked, per_run = self._ask_each_run(state, timestamp, value)
                    begins = begins or per_run
                    occupied = _set_of(runs)
                if not (at.moves or begins or asked):
                    continue  # the event affects no run

                event = number
                state.changed = True
                arrivals: dict[int, list[Run]] = {}
                found: list[Found] = []
                for place, stays, moves in at.moves:
                    here = runs[place]
                    if not stays:
                        del runs[place]
                        occupied ^= 1 << place
                    for transition, target, completes in moves:
                        if target == NOWHERE:
                            found += [(run[0], run[1], transition) for run in here]
                            continue
                        if transition == IGNORED:
                            moved = here[:]
                        else:
                            moved = []
                            for run in here:
                                nodes[number] = (run[1], transition, event, timestamp, value)
                                moved.append((run[0], number, run[2], timestamp))
                                number += 1
                            if completes:
                                found += [(run[0], run[1], IGNORED) for run in moved]
                        if target in arrivals:
                            arrivals[target] += moved
                        else:
                            arrivals[target] = moved
                if asked:
                    for run, moves in asked:
                        for transition, target, completes in moves:
                            node = run[1]
                            if transition != IGNORED and target != NOWHERE:
                                node = number
                                nodes[node] = (run[1], transition, event, timestamp, value)
                                number += 1
                            if target != NOWHERE:
                                one = run if transition == IGNORED else (run[0], node, run[2], timestamp)
                                arrivals.setdefault(target, []).append(one)
                            if completes:
                                found.append((run[0], node, transition if target == NOWHERE else IGNORED))
                for transition, target, completes in begins:
                    if began is None and timestamp > 0:
                        began = position
                    if target == NOWHERE:
                        found.append((event, NO_NODE, transition))
                        continue
                    nodes[number] = (NO_NODE, transition, event, timestamp, value)
                    if completes:
                        found.append((event, number, IGNORED))
                    if target in arrivals:
                        arrivals[target].append((event, number, timestamp, timestamp))
                    else:
                        arrivals[target] = [(event, number, timestamp, timestamp)]
                    number += 1
                    if window and timestamp + window < deadline:
                        deadline = timestamp + window

                for target, new in arrivals.items():
                    present = runs.get(target)
                    if present is None:
                        if len(new) > 1:
                            new.sort()
                        runs[target] = new
                        occupied |= 1 << target
                    elif len(new) == 1 and present[-1] <= new[0]:
                        present.append(new[0])
                    else:
                        _merge(present, new)
                    if limits and target in limits:
                        deadline = min(deadline, min(run[3] for run in new) + limits[target])
                if found:
                    if event == number:
                        number += 1  # the number of the event is used, although no node has it
                    matches: list[Ended] = []
                    for first, node, follows in found:
                        path = self.path(state, node)
                        if follows != IGNORED:
                            path.append((node, follows, event, timestamp, value))
                        matches.append((first, path, None, timestamp))
                    if len(matches) > 1:
                        matches = self._forks.sort_as_heap(matches)
                    for _, path, _, _ in matches:
                        on_match(path, timestamp, "complete match")
        except Exception:
            if at.__class__ is JointQuestion or plans.asked is not None:
                self.asked = plans.asked or at
            raise
        state.next_number = number
        return began

    def _ask_each_run(
        self, state: NFAState, timestamp: int, value: Any
    ) -> tuple[list[tuple[Run, tuple[Step, ...]]], tuple[Step, ...]]:
        """Return the steps of the start and of runs whose conditions read their events. Remove runs that end."""
        runs, roots = state.runs, self.decisions.roots
        truth: dict[int, bool] = {}
        moving: list[tuple[Run, tuple[Step, ...]]] = []
        begins: tuple[Step, ...] = ()
        staying: dict[int, list[Run]] = {}
        for place in self._iterative:
            if place == self.automaton.start:
                begins = self.decide_for_run(state, roots[place], NO_NODE, timestamp, value, truth).moves
            elif place in runs:
                here = runs[place]
                outcomes = [self.decide_for_run(state, roots[place], run[1], timestamp, value, truth) for run in here]
                moving += [(run, one.moves) for run, one in zip(here, outcomes, strict=True) if one.moves]
                kept = [run for run, one in zip(here, outcomes, strict=True) if one.stays]
                if len(kept) < len(here):
                    staying[place] = kept
        for place, kept in staying.items():
            state.changed = True
            if kept:
                runs[place] = kept
            else:
                del runs[place]
        return moving, begins

    # -- time ---------------------------------------------------------------------------------------------------

    def advance_time(self, state: NFAState, timestamp: int) -> None:
        """Drop runs whose limit has passed. Runs that waited for a forbidden event become matches."""
        self._expire(state, timestamp)

    def _expire(self, state: NFAState, timestamp: int) -> int:
        """Return the next time at which a limit may pass."""
        runs, window = state.runs, self.window
        begun_until = timestamp - window
        matched: list[Ended] = []
        expired: list[Ended] = []
        changed = False
        for occupied in tuple(runs):
            here = runs[occupied]
            gone: list[tuple[Run, int]] = []
            if window and here[0][2] <= begun_until:
                count = bisect_right(here, begun_until, key=_start_of)
                gone = [(run, run[2] + window) for run in here[:count]]
                del here[:count]
            if self.limits and (limit := self.limits.get(occupied)):
                late = [run for run in here if timestamp - run[3] >= limit]
                gone = [(run, run[3] + limit if timestamp - run[3] >= limit else at) for run, at in gone]
                gone += [(run, run[3] + limit) for run in late]
                if late:
                    here[:] = [run for run in here if timestamp - run[3] < limit]
            if not gone:
                continue
            changed = True
            if not here:
                del runs[occupied]
            if occupied in self._pending:
                matched += [(run[0], self.path(state, run[1]), occupied, at) for run, at in gone]
            elif self._on_timeout is not None:
                expired += [(run[0], self.path(state, run[1]), occupied, at) for run, at in gone]
        if changed:
            state.changed = True
            for _, path, _, _ in self._forks.sort_as_heap(matched):
                self._on_match(path, timestamp, "match completed by its time limit")
            self._forks.sort(expired)
            for _, path, place, at in expired:
                assert self._on_timeout is not None
                assert place is not None
                where = f"partial match that timed out in state {self.automaton.states[place].name}"
                self._on_timeout(path, at, where)
        return self._deadline(state)

    def _deadline(self, state: NFAState) -> int:
        """Return a time before which no limit passes."""
        runs, deadline = state.runs, NEVER
        if self.window and runs:
            deadline = min([here[0][2] for here in runs.values()]) + self.window
        if self.limits:
            for occupied, here in runs.items():
                if limit := self.limits.get(occupied):
                    deadline = min(deadline, min(run[3] for run in here) + limit)
        return deadline

    def earliest_start(self, state: NFAState) -> int | None:
        """Return the earliest front of all states."""
        return min((here[0][2] for here in state.runs.values()), default=None)

    def last_nodes(self, state: NFAState) -> Iterable[int]:
        """Return the last nodes of the runs in all states."""
        return (run[1] for run in chain.from_iterable(state.runs.values()))

    def count_runs(self, state: NFAState) -> int:
        """Return the number of runs in all states."""
        return sum(map(len, state.runs.values()))


def _set_of(runs: dict[int, list[Run]]) -> int:
    """Return the occupied states as bits."""
    occupied = 0
    for place in runs:
        occupied |= 1 << place
    return occupied


def _merge(here: list[Any], new: list[Run]) -> None:
    """Add runs to the runs of a state, ordered by their first events."""
    new.sort()
    if here[-1] <= new[0]:
        here.extend(new)
    elif len(new) <= _FEW:
        for run in new:
            insort(here, run)
    else:
        here.extend(new)
        here.sort()
