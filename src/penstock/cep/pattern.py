"""The pattern API: a chain of patterns, each with a condition, a quantifier and a link to the previous one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, NoReturn, Self, TypeVar, cast

from penstock.cep.quantifier import ConsumingStrategy, Quantifier, QuantifierProperty, Times, WithinType
from penstock.common.checks import is_int, require_name
from penstock.common.errors import (
    InvalidProgramError,
    MalformedPatternError,
    UnsupportedFeatureError,
    shorten,
)
from penstock.common.time import Duration, Time, to_millis
from penstock.core.cep import (
    AfterMatchSkipStrategy,
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichOrCondition,
    SubtypeCondition,
)
from penstock.core.cep.conditions import as_condition

__all__ = ["GroupPattern", "Pattern"]

T = TypeVar("T")
S = TypeVar("S")

Condition = IterativeCondition[Any] | Callable[[Any], Any] | Callable[[Any, IterativeCondition.Context], Any]
Length = Duration | Time | timedelta | int

_DURATIONS = (Duration, Time, timedelta)


class Pattern(Generic[T]):
    """One pattern of a sequence, linked to the previous one.

    Quantifiers, conditions and limits change the pattern and return it. ``next``, ``followed_by`` and similar methods
    return a new pattern after this one.

    >>> pattern = Pattern.begin("small").where(lambda e: e < 1).followed_by("large").where(lambda e: e > 500)
    >>> print(pattern.within(Duration.of_minutes(1)))
    small -> large within 1 min
    """

    def __init__(
        self,
        name: str,
        previous: Pattern[Any] | None,
        consuming_strategy: ConsumingStrategy,
        after_match_skip_strategy: AfterMatchSkipStrategy,
    ) -> None:
        self._name = name
        self._previous = previous
        self._quantifier = Quantifier(QuantifierProperty.SINGLE, consuming_strategy)
        self._after_match_skip_strategy = after_match_skip_strategy
        self._times: Times | None = None
        self._condition: IterativeCondition[Any] | None = None
        self._until_condition: IterativeCondition[Any] | None = None
        self._windows: dict[WithinType, Duration] = {}

    # -- sequence -----------------------------------------------------------------------------------------------

    @staticmethod
    def begin(
        name_or_group: str | Pattern[Any], after_match_skip_strategy: AfterMatchSkipStrategy | None = None
    ) -> Pattern[Any]:
        """Start a sequence with a pattern, or with a whole sequence as a group."""
        strategy = after_match_skip_strategy or AfterMatchSkipStrategy.no_skip()
        if not isinstance(strategy, AfterMatchSkipStrategy):
            raise InvalidProgramError(f"begin() takes an AfterMatchSkipStrategy, got {shorten(strategy)}")
        return _link("begin", name_or_group, None, ConsumingStrategy.STRICT, strategy)

    def next(self, name_or_group: str | Pattern[Any]) -> Pattern[Any]:
        """Add a pattern that the very next event must satisfy."""
        return self._follow("next", name_or_group, ConsumingStrategy.STRICT)

    def followed_by(self, name_or_group: str | Pattern[Any]) -> Pattern[Any]:
        """Add a pattern that takes the next event that satisfies it. Events before that are skipped."""
        return self._follow("followed_by", name_or_group, ConsumingStrategy.SKIP_TILL_NEXT)

    def followed_by_any(self, name_or_group: str | Pattern[Any]) -> Pattern[Any]:
        """Add a pattern that takes each later event that satisfies it, in separate matches."""
        return self._follow("followed_by_any", name_or_group, ConsumingStrategy.SKIP_TILL_ANY)

    def not_next(self, name: str) -> Pattern[Any]:
        """Add a pattern that the very next event must not satisfy."""
        self._refuse_optional_before_not("not_next", name)
        return self._follow("not_next", require_name(name, "the name of a pattern"), ConsumingStrategy.NOT_NEXT)

    def not_followed_by(self, name: str) -> Pattern[Any]:
        """Add a pattern that no event may satisfy before the following one is found, or before the time limit."""
        self._refuse_optional_before_not("not_followed_by", name)
        return self._follow(
            "not_followed_by", require_name(name, "the name of a pattern"), ConsumingStrategy.NOT_FOLLOW
        )

    def _follow(self, method: str, name_or_group: str | Pattern[Any], strategy: ConsumingStrategy) -> Pattern[Any]:
        return _link(method, name_or_group, self, strategy, self._after_match_skip_strategy)

    # -- conditions ---------------------------------------------------------------------------------------------

    def where(self, condition: Condition) -> Self:
        """Accept only events that satisfy the condition. With several calls, all conditions must hold."""
        added = as_condition(condition, f"where() of pattern '{self._name}'")
        self._condition = added if self._condition is None else RichAndCondition(self._condition, added)
        return self

    def or_(self, condition: Condition) -> Self:
        """Also accept events that satisfy this condition."""
        added = as_condition(condition, f"or_() of pattern '{self._name}'")
        self._condition = added if self._condition is None else RichOrCondition(self._condition, added)
        return self

    def subtype(self, subtype_class: type[S]) -> Pattern[S]:
        """Accept only events of a class."""
        if not isinstance(subtype_class, type):
            raise InvalidProgramError(
                f"subtype() of pattern '{self._name}' takes a class, got {shorten(subtype_class)}"
            )
        return cast("Pattern[S]", self.where(SubtypeCondition(subtype_class)))

    def until(self, until_condition: Condition) -> Self:
        """Stop a loop at the first event that satisfies the condition. The loop does not take that event."""
        condition = as_condition(until_condition, f"until() of pattern '{self._name}'")
        if self._until_condition is not None:
            raise self._malformed("already has an until() condition", "combine the two into one")
        if not self.has_property(QuantifierProperty.LOOPING):
            raise self._malformed(
                "has an until() condition but no loop without end", "call one_or_more() or times_or_more() before it"
            )
        self._until_condition = condition
        return self

    # -- quantifiers --------------------------------------------------------------------------------------------

    def one_or_more(self, window: Length | None = None) -> Self:
        """Take one or more events."""
        return self._repeat("one_or_more", QuantifierProperty.LOOPING, 1, 1, window)

    def times_or_more(self, times: int, window: Length | None = None) -> Self:
        """Take at least this number of events."""
        return self._repeat("times_or_more", QuantifierProperty.LOOPING, times, times, window)

    def times(self, from_: int, to: int | Length | None = None, window: Length | None = None) -> Self:
        """Take exactly this number of events, or from ``from_`` to ``to`` events."""
        if isinstance(to, _DURATIONS):
            if window is not None:
                raise InvalidProgramError(f"times() of pattern '{self._name}' got two windows: {to!r} and {window!r}")
            to, window = None, to
        upper = from_ if to is None else to
        optional = from_ == 0 and to is not None
        self._repeat("times", QuantifierProperty.TIMES, 1 if optional else from_, upper, window)
        if optional:
            self._quantifier.properties.add(QuantifierProperty.OPTIONAL)
        return self

    def _repeat(self, method: str, kind: QuantifierProperty, from_: Any, to: Any, window: Length | None) -> Self:
        self._refuse_on_not_pattern(method)
        if not self.has_property(QuantifierProperty.SINGLE):
            raise self._malformed("already has a quantifier", f"remove it, or {method}()")
        if not (is_int(from_) and is_int(to)) or from_ < 1 or to < from_:
            given = f"{from_!r}" if from_ == to else f"{from_!r}, {to!r}"
            raise InvalidProgramError(
                f"{method}({given}) of pattern '{self._name}' is not valid: numbers start at 1, and the upper one must "
                "not be below the lower one. To make the pattern optional, call optional()"
            )
        times = Times(from_, to, None if window is None else self._duration(window, method))
        self._quantifier = Quantifier(kind, self._strategy)
        self._times = times
        return self

    def optional(self) -> Self:
        """Make the pattern optional."""
        if self._previous is not None and self._previous.has_property(QuantifierProperty.GREEDY):
            raise self._malformed(
                f"is optional after the greedy pattern '{self._previous.get_name()}'", "remove greedy() or optional()"
            )
        if self.has_property(QuantifierProperty.OPTIONAL):
            raise self._malformed("is already optional", "call optional() once")
        if self._strategy.negated:
            raise self._malformed("is a NOT pattern and cannot be optional", "remove optional()")
        self._quantifier.properties.add(QuantifierProperty.OPTIONAL)
        return self

    def greedy(self) -> Self:
        """Let a loop take as many events as it can before the next pattern."""
        self._refuse_on_not_pattern("greedy")
        if isinstance(self, GroupPattern):
            raise self._malformed("is a group and cannot be greedy", "remove greedy()")
        if self._quantifier.inner_consuming_strategy is ConsumingStrategy.SKIP_TILL_ANY:
            raise self._malformed("allows combinations and cannot be greedy", "remove one of the two")
        if self.has_property(QuantifierProperty.SINGLE):
            raise self._malformed("is not a loop and cannot be greedy", "call one_or_more() or times() before greedy()")
        self._quantifier.properties.add(QuantifierProperty.GREEDY)
        return self

    def consecutive(self) -> Self:
        """Require that the events of the loop follow each other directly."""
        return self._set_inner("consecutive", ConsumingStrategy.STRICT)

    def allow_combinations(self) -> Self:
        """Let the loop skip events that it could take."""
        return self._set_inner("allow_combinations", ConsumingStrategy.SKIP_TILL_ANY)

    def _set_inner(self, method: str, strategy: ConsumingStrategy) -> Self:
        if self.has_property(QuantifierProperty.SINGLE):
            raise self._malformed(
                f"is not a loop, so {method}() has no meaning", f"call one_or_more() or times() before {method}()"
            )
        if self._quantifier.inner_consuming_strategy is not ConsumingStrategy.SKIP_TILL_NEXT:
            raise self._malformed("is already consecutive or allows combinations", "call one of the two, once")
        self._quantifier.inner_consuming_strategy = strategy
        return self

    def within(self, duration: Length | None, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Self:
        """Limit the time between the first and last event of a match, or between this event and the previous one."""
        if not isinstance(within_type, WithinType):
            raise InvalidProgramError(f"within() of pattern '{self._name}' takes a WithinType, got {within_type!r}")
        if duration is not None:
            self._windows[within_type] = self._duration(duration, "within")
        return self

    def _duration(self, length: Length, method: str) -> Duration:
        milliseconds = to_millis(length)
        if milliseconds < 0:
            raise InvalidProgramError(f"{method}() of pattern '{self._name}' must not be negative, got {length!r}")
        return length if isinstance(length, Duration) else Duration.of_millis(milliseconds)

    # -- getters -----------------------------------------------------------------------------------------------

    def get_name(self) -> str:
        return self._name

    def get_previous(self) -> Pattern[Any] | None:
        return self._previous

    def get_times(self) -> Times | None:
        return self._times

    def get_quantifier(self) -> Quantifier:
        return self._quantifier

    def get_condition(self) -> IterativeCondition[Any]:
        return self._condition or BooleanConditions.true_function()

    def get_until_condition(self) -> IterativeCondition[Any] | None:
        return self._until_condition

    def get_window_size(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Duration | None:
        return self._windows.get(within_type)

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        return self._after_match_skip_strategy

    def to_svg(self) -> str:
        """Draw the states that the sequence up to here compiles to."""
        from penstock.cep.nfa_compiler import NFACompiler
        from penstock.graph.pattern_picture import draw

        return draw(NFACompiler.compile(self)).svg()

    def __str__(self) -> str:
        from penstock.cep.description import describe

        return describe(self)

    def __repr__(self) -> str:
        return f"Pattern({self})"

    # -- checks -------------------------------------------------------------------------------------------------

    @property
    def _strategy(self) -> ConsumingStrategy:
        return self._quantifier.consuming_strategy

    def has_property(self, quantifier_property: QuantifierProperty) -> bool:
        return self._quantifier.has_property(quantifier_property)

    def _malformed(self, label: str, remedy: str) -> MalformedPatternError:
        return MalformedPatternError(f"pattern '{self._name}' {label}: {remedy}")

    def _refuse_on_not_pattern(self, method: str) -> None:
        if self._strategy.negated:
            raise self._malformed(f"is a NOT pattern, which does not support {method}()", f"remove {method}()")

    def _refuse_optional_before_not(self, method: str, name: str) -> None:
        if self.has_property(QuantifierProperty.OPTIONAL):
            raise UnsupportedFeatureError(
                f"pattern '{self._name}' is optional, and {method}({name!r}) cannot follow an optional pattern: "
                "write two patterns, one with and one without the optional part"
            )


class GroupPattern(Pattern[T]):
    """A sequence in place of a single pattern, which may repeat as a whole."""

    def __init__(
        self,
        previous: Pattern[Any] | None,
        group: Pattern[Any],
        consuming_strategy: ConsumingStrategy,
        after_match_skip_strategy: AfterMatchSkipStrategy,
    ) -> None:
        super().__init__("GroupPattern", previous, consuming_strategy, after_match_skip_strategy)
        self._group = group

    def get_raw_pattern(self) -> Pattern[Any]:
        """Return the last pattern of the group's own sequence."""
        return self._group

    def where(self, condition: Condition) -> NoReturn:
        """Not supported: set conditions on the patterns in the group."""
        self._refuse("where")

    def or_(self, condition: Condition) -> NoReturn:
        """Not supported: set conditions on the patterns in the group."""
        self._refuse("or_")

    def subtype(self, subtype_class: type[Any]) -> NoReturn:
        """Not supported: set the class on the patterns in the group."""
        self._refuse("subtype")

    def _refuse(self, method: str) -> NoReturn:
        raise UnsupportedFeatureError(
            f"the group that ends with pattern '{self._group.get_name()}' does not support {method}(): set conditions "
            "on the patterns in the group"
        )


def _link(
    method: str,
    name_or_group: Any,
    previous: Pattern[Any] | None,
    strategy: ConsumingStrategy,
    skip: AfterMatchSkipStrategy,
) -> Pattern[Any]:
    if isinstance(name_or_group, Pattern):
        return GroupPattern(previous, name_or_group, strategy, skip)
    if not isinstance(name_or_group, str) or not name_or_group:
        raise InvalidProgramError(f"{method}() takes the name of a pattern or a pattern, got {shorten(name_or_group)}")
    if ":" in name_or_group:
        raise InvalidProgramError(
            f"the name of a pattern must not contain a colon, got {name_or_group!r}: colons number the states of loops"
        )
    return Pattern(name_or_group, previous, strategy, skip)
