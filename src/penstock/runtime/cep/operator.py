"""The CEP operator: feeds the events of each key to the automaton, in order, and emits its matches.

It imports the parts of an operator (state, timers, records) and those of the automaton.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import cmp_to_key, partial
from itertools import groupby
from typing import Any

from penstock.common.errors import (
    InvalidProgramError,
    MissingTimestampError,
    PenstockError,
    shorten,
)
from penstock.core.cep import Match, PatternProcessFunction
from penstock.core.cep.match import Step
from penstock.core.functions import Function
from penstock.core.output_tag import OutputTag
from penstock.runtime.cep.handlers import MatchHandler, SelectHandler
from penstock.runtime.cep.nfa import NFA, NFAState, Path
from penstock.runtime.cep.runs_by_state import RunsByStateNFA
from penstock.runtime.cep.runs_in_order import RunsInOrderNFA
from penstock.runtime.cep.runtime_context import CepRuntimeContext
from penstock.runtime.cep.state import Automaton
from penstock.runtime.cep.waiting_events import Arrivals, Waiting, add_waiting, merge_in_order, take_due
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_result, collect_results
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.isolation import copied
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.page_chunks import Path as GrowingPath
from penstock.runtime.state.page_chunks import by_namespace, whole_value
from penstock.runtime.state.pages import EVENT_TIMERS, PROCESSING_TIMERS, Entry
from penstock.runtime.timers.due_index import DueTimerService

__all__ = ["CepOperator"]

RUNS_STATE = "partial-matches"


class MatchContext(PatternProcessFunction.Context):
    """The `ctx` of process_match and process_timed_out_match."""

    __slots__ = ("_clock", "_collector", "_event_time", "timestamp_")

    def __init__(self, collector: Collector, clock: Callable[[], int], *, event_time: bool) -> None:
        self._collector = collector
        self._clock = clock
        self._event_time = event_time
        self.timestamp_ = 0

    def timestamp(self) -> int:
        """The timestamp of the match."""
        return self.timestamp_

    def current_processing_time(self) -> int:
        """The processing time in ms."""
        return self._clock()

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output, with the timestamp of the match."""
        self._collector.side(tag, value, self.timestamp_ if self._event_time else None)


class CepOperator(StreamOperator):
    """Finds the matches of a pattern in the events of each key."""

    keyed = True
    stateful = True

    backend: KeyedStateBackend
    collector: Collector
    timers: DueTimerService
    nfa: NFA

    def __init__(
        self,
        automaton: Automaton,
        handler: MatchHandler,
        key_selector: KeySelect,
        *,
        event_time: bool = True,
        comparator: Callable[[Any, Any], int] | None = None,
        late_tag: OutputTag | None = None,
    ) -> None:
        self.automaton = automaton
        self.handler = handler
        self.key_selector = key_selector
        self.event_time = event_time
        self.comparator = comparator
        self.late_tag = late_tag

    # -- life cycle ---------------------------------------------------------------------------------------------

    def user_functions(self) -> list[Any]:
        """Return pattern functions and conditions."""
        return [*self.handler.functions, *self.automaton.user_conditions()]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create automaton, state and timers."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend = context.keyed_backend
        self.collector = Collector(context, output)
        clock = context.processing_time
        self.ctx = MatchContext(self.collector, clock, event_time=self.event_time)
        self.timers = DueTimerService(self.backend, clock, self._fire, self._on_processing_time)
        context.timer_services.append(self.timers)
        kind = RunsInOrderNFA if self.automaton.keeps_order else RunsByStateNFA
        self.nfa = kind(
            self.automaton,
            clock,
            self._matched,
            self._timed_out if self.handler.handles_timeouts else None,
            advances_before_every_event=not self.event_time and self.comparator is None,
        )
        self._arrivals: dict[Any, Arrivals] = {}
        self._sort_key = None if self.comparator is None else cmp_to_key(self.comparator)
        self._register_state()
        cep_context = replace(context, runtime_context=CepRuntimeContext(context.runtime_context))
        self._functions = [FunctionOperator(one) for one in self.user_functions() if isinstance(one, Function)]
        for part in self._functions:
            part.setup(cep_context, output)
        self._dropped = context.metrics.counter("numLateRecordsDropped")
        self._partial_matches = context.metrics.counter("numPartialMatches")  # since the start of the task

    def _register_state(self) -> None:
        kind = f"partial matches of {self.automaton.description} [{self.automaton.fingerprint}]"
        known = next((stored for name, stored in self.backend.directory.layout if name == RUNS_STATE), kind)
        if known.rpartition("[")[2] != kind.rpartition("[")[2]:
            raise InvalidProgramError(
                f"the pattern of operator '{self.context.operator_name}' has changed: its state has {known}, the "
                f"program has {kind}. Partial matches cannot continue in another automaton. Conditions may change; "
                "names, order, quantifiers and limits may not: restore the pattern, or give the operator a new uid() "
                "and allow state that is not restored (execution.savepoint.ignore-unclaimed-state)"
            )
        ordered = isinstance(self.nfa, RunsInOrderNFA)
        self._runs = self.backend.register(RUNS_STATE, known, growing=_both if ordered else by_namespace)
        self._nodes = self.backend.register("taken-events", "events of partial matches", growing=whole_value)
        self._numbers = self.backend.register("pattern-numbers", "numbers of events and partial matches")
        self._limit_timers = self.backend.register("limit-timers", "timers of time limits", growing=whole_value)
        self._waiting = self.backend.register("waiting-events", "events that wait for the watermark", growing=_both)

    def open(self) -> None:
        """Open each function and condition once."""
        for part in self._functions:
            part.open()

    def close(self) -> None:
        """Close functions and conditions."""
        for part in self._functions:
            part.close()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notify functions that have this method."""
        for part in self._functions:
            part.notify_checkpoint_complete(checkpoint_id)

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Put waiting events into the state of their keys."""
        arrivals, self._arrivals = self._arrivals, {}
        for key, arrived in arrivals.items():
            self.backend.set_current_key(key)
            entry = self.backend.entry
            arrived.sort()
            waiting: Waiting = entry[self._waiting] or ([], [])
            add_waiting(waiting, arrived.timestamps, arrived.values)
            entry[self._waiting] = waiting
            timers = entry[EVENT_TIMERS]
            self._set_event_timer(key, entry, min([waiting[0][0], *(timers or ())]))
            entry[0].dirty = True
        self.backend.clear_current_key()
        for part in self._functions:
            part.snapshot_state(checkpoint_id)

    def flush(self) -> None:
        """Emit the collected results."""
        self.collector.flush()

    # -- input --------------------------------------------------------------------------------------------------

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Process events in arrival order."""
        if self.event_time:
            self._collect(values, [None] * len(values) if timestamps is None else timestamps)
        elif self._sort_key is None:
            self._process_now(values)
        else:
            self._wait_for_next_moment(values)
        self.backend.clear_current_key()
        self.collector.flush()

    def _collect(self, values: Values, timestamps: list[Any]) -> None:
        """Event time: let events wait for the watermark. Events behind it are late."""
        select, watermark = self.key_selector, self.timers.current_watermark
        arrivals, note = self._arrivals, self.timers.index.add
        value: Any = None
        try:
            for value, timestamp in zip(values, timestamps, strict=True):
                if timestamp <= watermark:
                    self._late(value, timestamp)
                    continue
                key = select(value)
                arrived = arrivals.get(key)
                if arrived is None:
                    arrivals[key] = Arrivals(timestamp, value)
                    note(timestamp, key)
                    continue
                stamps = arrived.timestamps
                if timestamp < stamps[-1]:
                    arrived.in_order = False
                    if timestamp < arrived.earliest:
                        arrived.earliest = timestamp
                        note(timestamp, key)
                stamps.append(timestamp)
                arrived.values.append(value)
        except Exception as error:
            if isinstance(error, TypeError) and None in timestamps:
                raise self._no_timestamp(values[timestamps.index(None)]) from None
            raise keyed_error(self.context, error, "key_by", select, value) from None

    def _late(self, value: Any, timestamp: int) -> None:
        if self.late_tag is None:
            self._dropped.inc()
        else:
            self.collector.side(self.late_tag, value, timestamp)

    def _no_timestamp(self, value: Any) -> PenstockError:
        return MissingTimestampError(
            "a pattern in event time needs records with timestamps: call assign_timestamps_and_watermarks() before it, "
            "or in_processing_time() on the pattern stream",
            operator_name=self.context.operator_name,
            record=value,
        )

    def _process_now(self, values: Values) -> None:
        """Processing time: process events as they arrive."""
        now = self.context.clock.now
        for key, some in groupby(values, self._key_of):
            events = list(some)
            self.backend.set_current_key(key)
            entry = self.backend.entry
            self._run(entry, ([now] * len(events), events), now, by_timer=False)

    def _wait_for_next_moment(self, values: Values) -> None:
        """Processing time with a comparator: the events of a millisecond are sorted after it has passed."""
        now = self.context.clock.now
        for key, some in groupby(values, self._key_of):
            events = list(some)
            self.backend.set_current_key(key)
            entry = self.backend.entry
            waiting: Waiting = entry[self._waiting] or ([], [])
            add_waiting(waiting, [now] * len(events), events)
            entry[self._waiting] = waiting
            entry[0].dirty = True
            self._set_processing_timer(entry, min([now + 1, *(entry[PROCESSING_TIMERS] or ())]))

    def _key_of(self, value: Any) -> Any:
        try:
            key = self.key_selector(value)
            hash(key)
        except Exception as error:
            raise keyed_error(self.context, error, "key_by", self.key_selector, value) from None
        return key

    # -- time ---------------------------------------------------------------------------------------------------

    def _fire(self, timestamp: int, keys: list[Any]) -> None:
        """Process keys with an event or a limit at a timestamp that the watermark has passed, unless already done."""
        backend, arrivals, watermark = self.backend, self._arrivals, self.timers.current_watermark
        for key in keys:
            arrived = arrivals.get(key)
            try:
                backend.set_current_key(key)
            except TypeError as error:
                raise keyed_error(self.context, error, "key_by", self.key_selector, key) from None
            entry = backend.entry
            timers = entry[EVENT_TIMERS]
            stored_due = timers is not None and min(timers) <= watermark
            if arrived is not None and arrived.earliest <= watermark:
                due = arrived.take_due(watermark)
                if arrived.timestamps:
                    self.timers.index.add(arrived.earliest, key)
                else:
                    del arrivals[key]
            elif stored_due:
                due = [], []
            else:
                continue
            waiting: Waiting | None = entry[self._waiting]
            if stored_due and waiting is not None:
                due = merge_in_order(take_due(waiting, watermark), due)
                entry[0].dirty = True
                if not waiting[0]:
                    entry[self._waiting] = None
            self._run(entry, self._sorted(due), watermark)

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        entry = self.backend.entry
        waiting: Waiting = entry[self._waiting] or ([], [])
        if waiting[0]:
            entry[self._waiting] = None
            entry[0].dirty = True
        # at the end of a batch job, timers fire early
        self._run(entry, self._sorted((list(waiting[0]), list(waiting[1]))), max(timestamp, self.context.clock.now))

    def _sorted(self, due: Waiting) -> Waiting:
        """Sort events with the same timestamp with the comparator."""
        if self._sort_key is None or not due[0]:
            return due
        values: list[Any] = []
        try:
            for _, some in groupby(zip(due[0], due[1], strict=True), key=lambda pair: pair[0]):
                values += sorted((value for _, value in some), key=self._sort_key)
        except Exception as error:
            raise user_error(self.context, error, "compare", "(events with the same timestamp)") from None
        return due[0], values

    def _run(self, entry: Entry, events: Waiting, now: int, *, by_timer: bool = True) -> None:
        """Feed a key's events to the automaton. After a timer, advance time up to now."""
        nfa = self.nfa
        runs, completed = nfa.restore(entry[self._runs])
        state = NFAState(runs, completed, entry[self._nodes], entry[self._numbers] or (0, 0))
        before = nfa.count_runs(state)
        timestamps, values = events
        began: int | None = None
        try:
            if values:
                began = nfa.process(state, timestamps, values)
            if by_timer:
                nfa.advance_time(state, now)
        except PenstockError:
            raise
        except Exception as error:
            asked = nfa.asked
            where = "a condition" if asked is None else f"a condition of pattern '{asked.pattern_name}'"
            raise user_error(self.context, error, f"filter of {where}") from None
        timer = self._next_limit(entry, state, [] if began is None else timestamps[began:], now)
        if state.changed:
            self._partial_matches.inc(nfa.count_runs(state) - before)
            self._save(entry, state)
        if self.event_time:
            waiting: Waiting | None = entry[self._waiting]
            if waiting is not None and (timer is None or waiting[0][0] < timer):
                timer = waiting[0][0]
            self._set_event_timer(self.backend.key, entry, timer)
        else:
            self._set_processing_timer(entry, None if timer is None else timer + 1)

    def _save(self, entry: Entry, state: NFAState) -> None:
        entry[0].dirty = True
        entry[self._runs] = stored = self.nfa.store(state)
        if stored is None:
            entry[self._nodes] = entry[self._numbers] = None
        else:
            self.nfa.sweep(state)
            entry[self._nodes] = state.nodes
            entry[self._numbers] = (state.next_number, state.swept)

    # -- timers -------------------------------------------------------------------------------------------------

    def _next_limit(self, entry: Entry, state: NFAState, began: list[int], now: int) -> int | None:
        """Return when the key must be processed again even without an event.

        Flink registers a timer for an event that begins a run after time 0, and for each later event of the same call:
        `began`. In event time, a run is detected at the end of its limit, so the earliest run determines the time, and
        nothing is stored. This does not hold for limits since the previous event, for runs that began at time 0 or
        earlier, and in processing time, where a timer fires one millisecond late: timers of other events may detect
        such runs earlier.
        """
        if not self.nfa.window:
            return None
        earliest = self.nfa.earliest_start(state)
        kept: list[int] | None = entry[self._limit_timers]
        if self.event_time and not self.nfa.limits and (earliest is None or earliest > 0):
            if kept is not None:
                entry[self._limit_timers] = None
                entry[0].dirty = True
            return None if earliest is None else earliest + self.nfa.window
        reached = now if self.event_time else now - 1
        added = [timer for timestamp in began if (timer := timestamp + self.nfa.window) > reached]
        passed = 0 if kept is None else bisect_right(kept, reached)
        if added or passed:
            entry[0].dirty = True
            kept = kept or []
            del kept[:passed]
            kept.extend(timer for timer in dict.fromkeys(added) if not kept or timer > kept[-1])
            entry[self._limit_timers] = kept or None
        return kept[0] if kept else None

    def _set_event_timer(self, key: Any, entry: Entry, timestamp: int | None) -> None:
        """Replace the timer of a key."""
        timers = entry[EVENT_TIMERS]
        if timestamp is None:
            if timers is not None:
                entry[EVENT_TIMERS] = None
                entry[0].dirty = True
        elif timers != {timestamp}:
            entry[EVENT_TIMERS] = {timestamp}
            entry[0].dirty = True
            self.timers.index.add(timestamp, key)

    def _set_processing_timer(self, entry: Entry, timestamp: int | None) -> None:
        for other in list(entry[PROCESSING_TIMERS] or ()):
            if other != timestamp:
                self.timers.delete_processing_time_timer(other)
        if timestamp is not None:
            self.timers.register_processing_time_timer(timestamp)

    # -- output -------------------------------------------------------------------------------------------------

    def _matched(self, path: Path, timestamp: int, outcome: str) -> None:
        self.ctx.timestamp_ = timestamp
        handler, stamp = self.handler, timestamp if self.event_time else None
        match = self._assemble(path, outcome)
        try:
            if handler.__class__ is SelectHandler:
                collect_result(self.collector, handler.select, match, stamp)
            else:
                collect_results(self.collector, handler.matched(match, self.ctx), stamp)
        except Exception as error:
            raise user_error(self.context, error, handler.method, _shown(path)) from None

    def _timed_out(self, path: Path, timestamp: int, outcome: str) -> None:
        self.ctx.timestamp_ = timestamp
        match = self._assemble(path, outcome)
        try:
            results = self.handler.timed_out(match, self.ctx)
            collect_results(self.collector, results, timestamp if self.event_time else None)
        except Exception as error:
            raise user_error(self.context, error, self.handler.timeout_method, _shown(path)) from None

    def _assemble(self, path: Path, outcome: str) -> Match[Any]:
        """Return the events by pattern name, as copies, since other runs contain the same events."""
        names = self.nfa.decisions.names
        match: Match[Any] = Match((), partial(self._steps, path), outcome)
        for _, transition, _, _, event in path:
            name = names[transition]
            if name in match:
                match[name].append(copied(event))
            else:
                match[name] = [copied(event)]
        return match

    def _steps(self, path: Path) -> list[Step]:
        """Return the steps with which a match explains itself."""
        transitions = self.nfa.decisions.transitions
        return [(*transitions[taken], timestamp, event) for _, taken, _, timestamp, event in path]


def _both(value: Any) -> list[GrowingPath]:
    """Locate the collections in a pair of them."""
    return [(0,), (1,)]


def _shown(path: Path) -> str:
    return shorten([event for _, _, _, _, event in path])
