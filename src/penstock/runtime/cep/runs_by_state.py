"""Without a skip strategy: runs grouped by state, so that an event touches only the runs it concerns.

The runs of a state are ordered by their first event. Those whose limit has passed are at the front.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from penstock.runtime.cep.decisions import IGNORED, NOTHING, NOWHERE, Outcome, Question
from penstock.runtime.cep.nfa import NEVER, NFA, NO_NODE, NFAState

__all__ = ["RunsByStateNFA"]

Run = tuple[int, int, int, int]
"""(number of the first event, last node, timestamp of the first event, timestamp of the last event)"""
Found = tuple[int, int, int]
"""A match: (number of the first event, last node, the transition by which the current event follows, or IGNORED)"""
Change = tuple[int, list[Run], "Outcome | list[Outcome]"]
"""A state, its runs, and what becomes of them: of all the same, or of each."""

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

    def process(self, state: NFAState, timestamps: list[int], values: list[Any]) -> int | None:
        """Ask what becomes of the runs of each occupied state. Written out: it is the inner loop of CEP."""
        roots, gates, per_run = self.decisions.roots, self.decisions.gates, self.decisions.per_run
        start = self.automaton.start
        runs = state.runs
        deadline, moment, every_event = self._deadline(state), NEVER, self.advances_before_every_event
        began: int | None = None
        value: Any
        at: Any = gates[start]
        try:
            opens = repeat(True) if at is None else [at.call(value) for value in values]
            for position, (timestamp, value, opened) in enumerate(zip(timestamps, values, opens, strict=False)):
                if timestamp >= deadline and (timestamp != moment or every_event):
                    deadline = self._pass_time(state, timestamp)
                moment = timestamp
                changes: list[Change] = []
                for occupied, here in runs.items():
                    at = gates[occupied]
                    if at is not None and not at.call(value):
                        continue
                    if per_run[occupied]:
                        changes += self._decide_each(state, occupied, here, timestamp, value)
                        continue
                    at = roots[occupied]
                    while at.__class__ is Question:
                        held = bool(at.call(value))
                        at = (at.yes if held else at.no) or at.answer(held=held)
                    if not at.idle:
                        changes.append((occupied, here, at))
                at = roots[start]
                if not opened:
                    at = NOTHING
                elif per_run[start]:
                    at = self.decide_for_run(state, at, NO_NODE, timestamp, value)
                while at.__class__ is Question:
                    held = bool(at.call(value))
                    at = (at.yes if held else at.no) or at.answer(held=held)
                if changes or at.moves:
                    if at.moves and began is None and timestamp > 0:
                        began = position
                    deadline = min(deadline, self._follow(state, changes, at, timestamp, value))
        except Exception:
            if at.__class__ is Question:
                self.asked = at
            raise
        return began

    def _pass_time(self, state: NFAState, timestamp: int) -> int:
        """Drop what has timed out; returns the next moment at which something may."""
        if timestamp >= self._deadline(state):  # the run that the last one was for may be gone
            self.advance_time(state, timestamp)
        return self._deadline(state)

    def _decide_each(
        self, state: NFAState, occupied: int, here: list[Run], timestamp: int, value: Any
    ) -> list[Change]:
        """The outcome of each run of a state, unless nothing happens to any of them."""
        root = self.decisions.roots[occupied]
        truth: dict[int, bool] = {}
        outcomes = [self.decide_for_run(state, root, run[1], timestamp, value, truth) for run in here]
        return [] if all(outcome.idle for outcome in outcomes) else [(occupied, here, outcomes)]

    def _follow(self, state: NFAState, changes: list[Change], begin: Outcome, timestamp: int, value: Any) -> int:
        """Let runs take their steps, and new ones begin. Returns the earliest moment at which one of them times out."""
        runs, nodes = state.runs, state.nodes
        event = number = state.next_number
        arrivals: dict[int, list[Run]] = {}
        found: list[Found] = []
        for occupied, here, decided in changes:
            each = decided if isinstance(decided, list) else repeat(decided)
            for run, outcome in zip(here, each, strict=False):
                for transition, target, completes in outcome.moves:
                    node, moved = run[1], run
                    if transition != IGNORED and target != NOWHERE:
                        nodes[number] = (node, transition, event, timestamp, value)
                        node, moved = number, (run[0], number, run[2], timestamp)
                        number += 1
                    if target != NOWHERE:
                        if target in arrivals:
                            arrivals[target].append(moved)
                        else:
                            arrivals[target] = [moved]
                    if completes:
                        found.append((run[0], node, transition if target == NOWHERE else IGNORED))
            self._keep(runs, occupied, here, decided)
        for transition, target, completes in begin.moves:
            node = NO_NODE
            if target != NOWHERE:
                nodes[number] = (NO_NODE, transition, event, timestamp, value)
                node = number
                number += 1
                arrivals.setdefault(target, []).append((event, node, timestamp, timestamp))
            if completes:
                found.append((event, node, transition if target == NOWHERE else IGNORED))
        state.changed = True
        state.next_number = number if number > event else event + 1
        if found:
            self._emit(state, found, event, timestamp, value)
        return self._arrive(runs, arrivals, timestamp + self.window if self.window else NEVER)

    def _keep(self, runs: dict[int, list[Run]], occupied: int, here: list[Run], decided: Outcome | list[Outcome]) -> None:
        """The runs that stay where they were."""
        if isinstance(decided, list):
            staying = [run for run, outcome in zip(here, decided, strict=True) if outcome.stays]
            if staying:
                runs[occupied] = staying
            else:
                del runs[occupied]
        elif not decided.stays:
            del runs[occupied]

    def _arrive(self, runs: dict[int, list[Run]], arrivals: dict[int, list[Run]], soonest: int) -> int:
        """Put runs into their new states."""
        limits = self.limits
        for target, new in arrivals.items():
            if limits and target in limits:
                soonest = min(soonest, min(run[3] for run in new) + limits[target])
            here = runs.get(target)
            if len(new) > 1:
                new.sort()
            if here is None:
                runs[target] = new
            elif here[-1] <= new[0]:
                here.extend(new)
            elif len(new) <= _FEW:
                for run in new:
                    insort(here, run)
            else:
                here.extend(new)
                here.sort()
        return soonest

    def _emit(self, state: NFAState, found: list[Found], event: int, timestamp: int, value: Any) -> None:
        """Matches in the order of their first events."""
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        for _, node, follows in found:
            path = self.path(state, node)
            if follows != IGNORED:
                path.append((node, follows, event, timestamp, value))
            self._on_match(path, timestamp, "complete match")

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
