"""Runs in Flink's own order: with a skip strategy, and for groups that repeat or are optional.

With a skip strategy, the order decides which of several matches is emitted. Matches are emitted in the order of their
first events. A complete match waits while an earlier run is alive, since that run may become a match that drops it.
Without a skip strategy, matches are emitted at once, in the order of Flink's heaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from penstock.runtime.cep.decisions import IGNORED, NOWHERE, Outcome, Question
from penstock.runtime.cep.nfa import NEVER, NFA, NO_NODE, NFAState, Path
from penstock.runtime.cep.priority_queue import discard, poll, push

__all__ = ["RunsInOrderNFA"]

Run = tuple[int, int, int, int, int]
"""(number of the first event, last node, timestamp of the first event, timestamp of the last event, state)"""

_state_of = itemgetter(4)


class RunsInOrderNFA(NFA):
    """Emits matches one after the other, and drops runs and matches as the skip strategy requires."""

    @property
    def _start_run(self) -> Run:
        return NEVER, NO_NODE, NEVER, NEVER, self.automaton.start

    def restore(self, runs: Any) -> tuple[Any, list[Any]]:
        """Return a heap of runs, including the start, and a heap of waiting matches."""
        return ([self._start_run], []) if runs is None else runs

    def store(self, state: NFAState) -> Any:
        """Return both heaps, unless only the start is left."""
        return (state.runs, state.completed) if len(state.runs) > 1 or state.completed else None

    def process(self, state: NFAState, timestamps: list[int], values: list[Any]) -> int | None:
        """Follow every run in heap order, and build the next heap from the resulting runs."""
        roots, per_run = self.decisions.roots, self.decisions.per_run
        occupied = set(map(_state_of, state.runs))
        deadline, moment = self._deadline(state), NEVER
        began: int | None = None
        value: Any
        for position, value in enumerate(values):
            timestamp = timestamps[position]
            if timestamp >= deadline and (timestamp != moment or self.advances_before_every_event):
                self.advance_time(state, timestamp)
                occupied = set(map(_state_of, state.runs))
                deadline = self._deadline(state)
            moment = timestamp
            truth: dict[int, bool] = {}
            outcomes: dict[int, Outcome] = {}
            for number in occupied:
                if not per_run[number]:
                    outcomes[number] = self._decide(roots[number], value, truth)
            start = self.automaton.start
            if all(number in outcomes for number in occupied) and all(
                outcome.idle or (number == start and not outcome.moves) for number, outcome in outcomes.items()
            ):
                continue
            if self._follow(state, timestamp, value, outcomes, truth) and began is None and timestamp > 0:
                began = position
            occupied = set(map(_state_of, state.runs))
            deadline = self._deadline(state)
        return began

    def _decide(self, root: Question | Outcome, value: Any, truth: dict[int, bool]) -> Outcome:
        at: Any = root
        while at.__class__ is Question:
            held = truth.get(at.condition)
            if held is None:
                self.asked = at
                held = truth[at.condition] = bool(at.call(value))
            at = (at.yes if held else at.no) or at.answer(held=held)
        return at  # type: ignore[no-any-return]

    def _follow(
        self, state: NFAState, timestamp: int, value: Any, outcomes: dict[int, Outcome], truth: dict[int, bool]
    ) -> bool:
        """Follow a run, and return whether a run began with the event."""
        event = state.next_number
        runs: list[Run] = []
        found: list[Run] = []
        began = False
        start = self.automaton.start
        for run in state.runs:
            number = run[4]
            outcome = outcomes.get(number)
            if outcome is None:
                outcome = self.decide_for_run(state, self.decisions.roots[number], run[1], timestamp, value, truth)
            for transition, target, completes in outcome.steps:
                if transition == IGNORED:
                    moved = run if target in (number, NOWHERE) else (*run[:4], target)
                else:
                    node = state.next_number
                    state.next_number += 1
                    state.nodes[node] = (run[1], transition, event, timestamp, value)
                    if number == start:
                        began = True
                        moved = (event, node, timestamp, timestamp, target)
                    else:
                        moved = (run[0], node, run[2], timestamp, target)
                if completes:
                    push(found, moved)
                if target != NOWHERE:
                    push(runs, moved)
            if number == start:
                push(runs, run)
        if runs != state.runs or found:
            state.changed = True
        state.runs = runs
        if found or state.completed:  # a run that held back a match may have ended
            self._emit(state, found, timestamp)
        return began

    def _emit(self, state: NFAState, found: Iterable[Run], timestamp: int) -> None:
        """Emit matches that no earlier run holds back. Each drops runs and matches as the strategy requires."""
        runs, completed = state.runs, state.completed
        for match in found:
            push(completed, match)
        strategy, names = self.automaton.skip_strategy, self.decisions.names
        waits = strategy.is_skip_strategy()
        leaving: list[tuple[Path, str]] = []
        while completed and not (waits and completed[0][0] > runs[0][0]):
            state.changed = True
            match = poll(completed)
            path = self.path(state, match[1])
            limit = strategy.prune_before([(names[transition], event) for _, transition, event, _, _ in path])
            if limit is not None:
                discard(runs, lambda run, limit=limit: run[0] < limit)  # type: ignore[misc]
                discard(completed, lambda run, limit=limit: run[0] < limit)  # type: ignore[misc]
            pending = match[4] in self._pending
            leaving.append((path, "match completed by its time limit" if pending else "complete match"))
        for path, outcome in leaving:  # only now: the skip strategy may fail
            self._on_match(path, timestamp, outcome)

    # -- time ---------------------------------------------------------------------------------------------------

    def advance_time(self, state: NFAState, timestamp: int) -> None:
        """Drop runs whose limit has passed, and emit the matches that they held back."""
        if timestamp < self._deadline(state):
            if state.completed:
                self._emit(state, (), timestamp)
            return
        kept: list[Run] = []
        matched: list[Run] = []
        expired: list[tuple[Run, int]] = []
        for run in state.runs:
            at = self._timed_out_at(run, timestamp)
            if at is None:
                push(kept, run)
            elif run[4] in self._pending:
                push(matched, run)
            else:
                expired.append((run, at))
        if len(kept) < len(state.runs):
            state.runs = kept
            state.changed = True
        if matched or state.completed:
            self._emit(state, matched, timestamp)
        if self._on_timeout is not None:
            for run, at in expired:
                where = f"partial match that timed out in state {self.automaton.states[run[4]].name}"
                self._on_timeout(self.path(state, run[1]), at, where)

    def _timed_out_at(self, run: Run, timestamp: int) -> int | None:
        if run[0] == NEVER:
            return None
        limit = self.limits.get(run[4])
        if limit and timestamp - run[3] >= limit:
            return run[3] + limit
        if self.window and timestamp - run[2] >= self.window:
            return run[2] + self.window
        return None

    def _deadline(self, state: NFAState) -> int:
        """Return a time before which no limit passes."""
        earliest = state.runs[0]
        deadline = earliest[2] + self.window if self.window else NEVER
        if self.limits:
            deadline = min([deadline, *(run[3] + limit for run in state.runs if (limit := self.limits.get(run[4])))])
        return deadline

    def earliest_start(self, state: NFAState) -> int | None:
        """Return the first run of the heap, unless it is the start."""
        return state.runs[0][2] if state.runs[0][0] != NEVER else None

    def last_nodes(self, state: NFAState) -> Iterable[int]:
        """Return the last nodes of runs and matches."""
        return (run[1] for runs in (state.runs, state.completed) for run in runs)

    def count_runs(self, state: NFAState) -> int:
        """Return the number of runs without the start."""
        return len(state.runs) - 1
