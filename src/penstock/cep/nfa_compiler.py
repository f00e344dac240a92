"""Compiles a pattern to an automaton.

The compiler walks the chain from its end to its beginning. It turns each pattern into states in front of the next
state, the *sink*. States are numbered and named in the order of their creation. Flink's limits between neighbouring
events depend on those names, so the order is part of the semantics.
"""

from __future__ import annotations

from typing import Any

from penstock.cep.description import describe, links
from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_checks import (
    check_names,
    check_not_patterns,
    check_repeated_groups,
    check_skip_strategy,
    repeats_groups,
)
from penstock.cep.quantifier import ConsumingStrategy, QuantifierProperty, Times, WithinType
from penstock.common.errors import MalformedPatternError
from penstock.common.time import Duration
from penstock.core.cep import BooleanConditions, IterativeCondition, RichAndCondition, RichNotCondition
from penstock.runtime.cep.state import (
    ENDING_STATE_NAME,
    Automaton,
    PatternCondition,
    State,
    StateTransition,
    StateTransitionAction,
    StateType,
)

__all__ = ["NFACompiler"]

Condition = IterativeCondition[Any]

_TAKE, _IGNORE, _PROCEED = StateTransitionAction.TAKE, StateTransitionAction.IGNORE, StateTransitionAction.PROCEED
_ALWAYS = BooleanConditions.true_function()


class NFACompiler:
    """Compiles one pattern; use :meth:`compile`."""

    def __init__(self, pattern: Pattern[Any]) -> None:
        self._last = pattern
        self._states: list[State] = []
        self._names: set[str] = set()
        self._next_number: dict[str, int] = {}
        self._stop_states: dict[str, int] = {}
        self._window_time: int | None = None
        self._window_times: dict[int, int] = {}
        # The current position of the walk.
        self._pattern = pattern
        self._following: Pattern[Any] | None = None
        self._group: GroupPattern[Any] | None = None
        self._first_round: dict[int, bool] = {}
        # States as they were before a greedy loop with until() added its ban to them.
        self._without_ban: dict[int, int] = {}

    @staticmethod
    def compile(pattern: Pattern[Any]) -> Automaton:
        """Compile a pattern. Reject a pattern that contradicts itself."""
        check_names(pattern)
        check_skip_strategy(pattern)
        check_repeated_groups(pattern)
        check_not_patterns(pattern)
        return NFACompiler(pattern).compile_pattern()

    def compile_pattern(self) -> Automaton:
        self._window_time = _millis(self._last.get_window_size())
        sink = self._make_state(ENDING_STATE_NAME, StateType.FINAL)
        sink = self._convert_chain(sink)
        start = self._convert_pattern(sink)
        self._states[start].type = StateType.START
        self._check_limits()
        return Automaton(
            description=describe(self._last),
            states=self._states,
            start=start,
            window_time=self._window_time or 0,
            window_times=self._window_times,
            skip_strategy=self._last.get_after_match_skip_strategy(),
            links=links(self._last),
            repeats_groups=repeats_groups(self._last),
        )

    def _check_limits(self) -> None:
        limit = self._window_time
        longest = max(self._window_times, key=self._window_times.__getitem__, default=None)
        if limit is not None and longest is not None and self._window_times[longest] > limit:
            raise MalformedPatternError(
                f"pattern '{self._states[longest].pattern_name}' allows {self._window_times[longest]} ms since the "
                f"event "
                f"before, but the whole sequence must end within {limit} ms: set a shorter limit on the pattern, or a "
                "longer one on the sequence"
            )
        last = self._last
        if last.get_quantifier().consuming_strategy is ConsumingStrategy.NOT_FOLLOW:
            named = next((n for n, state in enumerate(self._states) if state.name == last.get_name()), None)
            if not (self._window_times.get(named, 0) if named is not None else 0) and not limit:
                raise MalformedPatternError(
                    f"not_followed_by('{last.get_name()}') at the end of a sequence has no time limit, so "
                    "it could never complete. Call within() on it, or add a pattern after it"
                )

    # -- the chain ----------------------------------------------------------------------------------------------

    def _convert_chain(self, sink: int) -> int:
        """Convert all patterns of the current chain except the first."""
        while (previous := self._pattern.get_previous()) is not None:
            strategy = self._pattern.get_quantifier().consuming_strategy
            if strategy is ConsumingStrategy.NOT_FOLLOW:
                sink = self._convert_not_follow(sink)
            elif strategy is ConsumingStrategy.NOT_NEXT:
                sink = self._convert_not_next(sink)
            else:
                sink = self._convert_pattern(sink)
            self._following, self._pattern = self._pattern, previous
            window = _millis(previous.get_window_size())
            if window is not None and (self._window_time is None or window < self._window_time):
                self._window_time = window
        return sink

    def _convert_not_follow(self, sink: int) -> int:
        """Add a waiting state at the end of a limited sequence; elsewhere, an edge to the stop state."""
        limited = self._pattern.get_window_size(WithinType.PREVIOUS_AND_CURRENT) is not None or self._window_time
        if not limited or self._states[sink].type is not StateType.FINAL:
            return sink
        pending = self._make_pattern_state(StateType.PENDING)
        forbidden = self._take_condition(self._pattern)
        self._connect(pending, _PROCEED, self._stop_state(self._pattern), forbidden)
        self._connect(pending, _IGNORE, pending, RichNotCondition(forbidden))
        return pending

    def _convert_not_next(self, sink: int) -> int:
        state = self._make_pattern_state(StateType.NORMAL)
        forbidden = self._take_condition(self._pattern)
        stop = self._stop_state(self._pattern)
        # At the end of the sequence, the event that proves the absence of the forbidden one completes the match.
        action = _IGNORE if self._states[sink].type is StateType.FINAL else _PROCEED
        self._connect(state, action, sink, RichNotCondition(forbidden))
        self._connect(state, _PROCEED, stop, forbidden)
        return state

    def _convert_pattern(self, sink: int) -> int:
        quantifier = self._pattern.get_quantifier()
        times = self._pattern.get_times()
        if quantifier.has_property(QuantifierProperty.LOOPING):
            assert times is not None
            self._set_first_round(value=False)
            loop = self._make_loop(self._copy_without_guards(sink))
            self._set_first_round(value=True)
            head = self._make_times(loop, sink, times)
        elif times is not None:
            head = self._make_times(sink, sink, times)
        else:
            head = self._make_singleton(
                sink,
                sink,
                self._take_condition(self._pattern),
                self._ignore_condition(self._pattern),
                optional=self._is_optional(),
            )
        self._add_guards(head)
        return head

    # -- one pattern --------------------------------------------------------------------------------------------

    def _make_singleton(
        self, sink: int, proceed: int, take: Condition, ignore: Condition | None, *, optional: bool
    ) -> int:
        """Add a state that takes one event. An optional one loses its way out when it skips an event."""
        if isinstance(self._pattern, GroupPattern):
            return self._make_group(self._pattern, sink, proceed, optional=optional)
        state = self._make_pattern_state(StateType.NORMAL)
        behind = self._copy_without_guards(sink)
        self._connect(state, _TAKE, behind, take)
        if optional:
            self._connect_way_out(state, proceed)
        if ignore is not None:
            waiting = state
            if optional or self._heads_optional_group():
                waiting = self._make_state(self._pattern.get_name(), StateType.NORMAL)
                self._connect(waiting, _TAKE, behind, take)
                self._connect(waiting, _IGNORE, waiting, ignore)
                self._add_guards(waiting)
            self._connect(state, _IGNORE, waiting, ignore)
        return state

    def _connect_way_out(self, state: int, proceed: int) -> None:
        until = self._until_condition()
        always = self._unless_group_ends(_ALWAYS, is_take=True) or _ALWAYS
        if until is None or not self._has(QuantifierProperty.GREEDY):
            self._connect(state, _PROCEED, proceed, always)
            return
        self._connect(state, _PROCEED, self._without_ban.get(proceed, proceed), RichAndCondition(always, until))
        self._connect(state, _PROCEED, proceed, RichAndCondition(always, RichNotCondition(until)))

    def _make_times(self, sink: int, proceed: int, times: Times) -> int:
        """Add a chain of states that take one event each. For a range, the last ones are optional."""
        self._set_first_round(value=False)
        until = self._until_condition()
        inner_ignore = _unless(until, self._inner_ignore_condition(self._pattern), is_take=False)
        take = _unless(until, self._take_condition(self._pattern), is_take=True)
        assert take is not None
        if self._has(QuantifierProperty.GREEDY) and times.from_ != times.to:
            if until is not None:
                self._without_ban[sink] = self._copy(sink)
            self._ban(sink, take)
        head = sink
        for _ in range(times.from_, times.to):
            head = self._make_singleton(head, proceed, take, inner_ignore, optional=True)
            self._guard_loop(head)
        for _ in range(times.from_ - 1):
            head = self._make_singleton(head, proceed, take, inner_ignore, optional=False)
            self._guard_loop(head)
        self._set_first_round(value=True)
        return self._make_singleton(
            head, proceed, take, self._ignore_condition(self._pattern), optional=self._is_optional()
        )

    def _make_loop(self, sink: int) -> int:
        """Add a state that takes any number of events, and a copy without a way out, used after it skips an event."""
        if isinstance(self._pattern, GroupPattern):
            return self._make_group_loop(self._pattern, sink)
        until = self._until_condition()
        ignore = _unless(until, self._inner_ignore_condition(self._pattern), is_take=False)
        take = _unless(until, self._take_condition(self._pattern), is_take=True)
        assert take is not None
        always = self._unless_group_ends(_ALWAYS, is_take=True) or _ALWAYS
        loop = self._make_pattern_state(StateType.NORMAL)
        if self._has(QuantifierProperty.GREEDY):
            if until is not None:
                self._without_ban[sink] = self._copy(sink)
                self._connect(loop, _PROCEED, self._without_ban[sink], RichAndCondition(always, until))
                always = RichAndCondition(always, RichNotCondition(until))
            self._connect(loop, _PROCEED, sink, always)
            self._ban(sink, self._take_condition(self._pattern))
        else:
            self._connect(loop, _PROCEED, sink, always)
        self._connect(loop, _TAKE, loop, take)
        self._guard_loop(loop)
        if ignore is not None:
            waiting = self._make_state(self._pattern.get_name(), StateType.NORMAL)
            self._connect(waiting, _TAKE, loop, take)
            self._connect(waiting, _IGNORE, waiting, ignore)
            self._connect(loop, _IGNORE, waiting, ignore)
            self._guard_loop(waiting)
        return loop

    # -- groups -------------------------------------------------------------------------------------------------

    def _make_group(self, group: GroupPattern[Any], sink: int, proceed: int, *, optional: bool) -> int:
        always = self._unless_group_ends(_ALWAYS, is_take=True) or _ALWAYS
        head = self._convert_group(group, sink)
        if optional:
            self._connect(head, _PROCEED, proceed, always)
        return head

    def _make_group_loop(self, group: GroupPattern[Any], sink: int) -> int:
        """Add the group's states, with an edge from their end back to their beginning."""
        always = self._unless_group_ends(_ALWAYS, is_take=True) or _ALWAYS
        end = self._make_pattern_state(StateType.NORMAL)
        head = self._convert_group(group, end)
        self._connect(head, _PROCEED, sink, always)
        self._connect(end, _PROCEED, head, always)
        return head

    def _convert_group(self, group: GroupPattern[Any], sink: int) -> int:
        """Convert the inner chain. The pattern after the group is the successor of the group's last pattern."""
        outside = self._pattern, self._following, self._group
        self._pattern, self._group = group.get_raw_pattern(), group
        head = self._convert_pattern(self._convert_chain(sink))
        self._pattern, self._following, self._group = outside
        return head

    def _set_first_round(self, *, value: bool) -> None:
        if isinstance(self._pattern, GroupPattern):
            self._first_round[id(self._pattern)] = value

    @property
    def _in_first_round(self) -> bool:
        return self._first_round.get(id(self._group), True)

    def _heads_group(self, pattern: Pattern[Any]) -> bool:
        return self._group is not None and pattern.get_previous() is None

    def _heads_optional_group(self) -> bool:
        return (
            self._group is not None
            and self._heads_group(self._pattern)
            and self._in_first_round
            and self._group.get_quantifier().has_property(QuantifierProperty.OPTIONAL)
        )

    # -- not_followed_by ----------------------------------------------------------------------------------------

    def _guards(self) -> list[Pattern[Any]]:
        """Return the NOT patterns that apply to the current one: those before it, and before optional ones."""
        guards = []
        before = self._pattern.get_previous()
        while before is not None:
            if before.get_quantifier().consuming_strategy is ConsumingStrategy.NOT_FOLLOW:
                guards.append(before)
            elif not before.get_quantifier().has_property(QuantifierProperty.OPTIONAL):
                break
            before = before.get_previous()
        return guards

    def _add_guards(self, state: int) -> None:
        for guard in self._guards():
            self._connect(state, _PROCEED, self._stop_state(guard), self._take_condition(guard))

    def _guard_loop(self, state: int) -> None:
        """End a loop before a NOT pattern with the forbidden event, too."""
        following = self._following
        if following is not None and following.get_quantifier().consuming_strategy is ConsumingStrategy.NOT_FOLLOW:
            self._connect(state, _PROCEED, self._stop_state(following), self._take_condition(following))

    def _stop_state(self, pattern: Pattern[Any]) -> int:
        name = pattern.get_name()
        if name not in self._stop_states:
            stop = self._stop_states[name] = self._make_state(name, StateType.STOP)
            self._connect(stop, _TAKE, stop, self._take_condition(pattern))
        return self._stop_states[name]

    def _copy_without_guards(self, sink: int) -> int:
        """Copy the path after an optional pattern that took its event, where earlier NOT patterns no longer apply."""
        guards = {guard.get_name() for guard in self._guards()}
        if not guards or not self._has(QuantifierProperty.OPTIONAL):
            return sink
        original = self._states[sink]
        copy = self._make_state(original.name, original.type)
        for edge in list(original.transitions):
            target = edge.target
            if edge.action is _PROCEED:
                if self._states[target].type is not StateType.STOP:
                    target = self._copy_without_guards(target)
                elif self._states[target].name in guards:
                    continue
            elif target == sink:
                target = copy
            self._connect(copy, edge.action, target, edge.condition)
        return copy

    # -- greedy -------------------------------------------------------------------------------------------------

    def _ban(self, state: int, take: Condition) -> None:
        """Restrict the edges after a greedy loop to events that the loop does not take."""
        for edge in self._states[state].transitions:
            edge.condition = RichAndCondition(edge.condition, RichNotCondition(take))

    def _copy(self, state: int) -> int:
        original = self._states[state]
        copy = self._make_state(original.pattern_name, original.type)
        for edge in original.transitions:
            self._connect(copy, edge.action, copy if edge.target == state else edge.target, edge.condition)
        return copy

    # -- conditions ---------------------------------------------------------------------------------------------

    def _take_condition(self, pattern: Pattern[Any]) -> Condition:
        condition = self._unless_group_ends(_of(pattern), is_take=True)
        assert condition is not None
        return condition

    def _ignore_condition(self, pattern: Pattern[Any]) -> Condition | None:
        """Return the condition for events to skip before the first one of a pattern."""
        strategy = pattern.get_quantifier().consuming_strategy
        if self._group is not None and self._heads_group(pattern):
            quantifier = self._group.get_quantifier()
            first = self._in_first_round
            strategy = quantifier.consuming_strategy if first else quantifier.inner_consuming_strategy
        return self._ignored_by(strategy, pattern)

    def _inner_ignore_condition(self, pattern: Pattern[Any]) -> Condition | None:
        """Return the condition for events to skip between two events of a loop."""
        quantifier = pattern.get_quantifier()
        if self._group is not None and self._heads_group(pattern):
            quantifier = self._group.get_quantifier()
        return self._ignored_by(quantifier.inner_consuming_strategy, pattern)

    def _ignored_by(self, strategy: ConsumingStrategy, pattern: Pattern[Any]) -> Condition | None:
        condition: Condition | None = None
        if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
            condition = RichNotCondition(_of(pattern))
        elif strategy is ConsumingStrategy.SKIP_TILL_ANY:
            condition = _ALWAYS
        return self._unless_group_ends(condition, is_take=False)

    def _until_condition(self) -> Condition | None:
        return _until_of(self._pattern)

    def _unless_group_ends(self, condition: Condition | None, *, is_take: bool) -> Condition | None:
        return _unless(None if self._group is None else _until_of(self._group), condition, is_take=is_take)

    # -- states -------------------------------------------------------------------------------------------------

    def _has(self, quantifier_property: QuantifierProperty) -> bool:
        return self._pattern.get_quantifier().has_property(quantifier_property)

    def _is_optional(self) -> bool:
        return self._has(QuantifierProperty.OPTIONAL)

    def _make_pattern_state(self, state_type: StateType) -> int:
        """Add a state of the current pattern, with its time limit since the previous event.

        As in Flink, the first state of a loop, which has the plain name, has no limit.
        """
        state = self._make_state(self._pattern.get_name(), state_type)
        times = self._pattern.get_times()
        window: Duration | None = None
        if times is None:
            window = self._pattern.get_window_size(WithinType.PREVIOUS_AND_CURRENT)
        elif ":" in self._states[state].name:
            window = times.window
        if window is not None:
            self._window_times[state] = window.to_milliseconds()
        return state

    def _make_state(self, base: str, state_type: StateType) -> int:
        name = base
        while name in self._names:
            number = self._next_number.get(base, 0)
            self._next_number[base] = number + 1
            name = f"{base}:{number}"
        self._names.add(name)
        self._states.append(State(name, state_type))
        return len(self._states) - 1

    def _connect(self, source: int, action: StateTransitionAction, target: int, condition: Condition) -> None:
        self._states[source].transitions.append(StateTransition(action, target, condition))


def _of(pattern: Pattern[Any]) -> Condition:
    condition = pattern.get_condition()
    return condition if condition is _ALWAYS else PatternCondition(pattern.get_name(), condition)


def _until_of(pattern: Pattern[Any]) -> Condition | None:
    condition = pattern.get_until_condition()
    return None if condition is None else PatternCondition(pattern.get_name(), condition)


def _unless(until: Condition | None, condition: Condition | None, *, is_take: bool) -> Condition | None:
    """Return the condition, valid only while `until` does not hold. Without anything to ignore, nothing can stop."""
    if until is None:
        return condition
    if condition is not None:
        return RichAndCondition(RichNotCondition(until), condition)
    return RichNotCondition(until) if is_take else None


def _millis(duration: Duration | None) -> int | None:
    return None if duration is None else duration.to_milliseconds()
