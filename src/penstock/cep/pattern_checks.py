"""Checks of a whole pattern when it is applied to a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.quantifier import QuantifierProperty
from penstock.common.errors import MalformedPatternError, UnsupportedFeatureError
from penstock.runtime.cep.state import ENDING_STATE_NAME

__all__ = [
    "chain_of",
    "check_names",
    "check_not_patterns",
    "check_repeated_groups",
    "check_skip_strategy",
    "repeats_groups",
]


def chain_of(pattern: Pattern[Any]) -> list[Pattern[Any]]:
    """Return the patterns of a sequence in order, given its last one. A group is one pattern."""
    chain = [pattern]
    while (previous := chain[-1].get_previous()) is not None:
        chain.append(previous)
    return chain[::-1]


def _all_patterns(pattern: Pattern[Any]) -> Iterator[Pattern[Any]]:
    for one in chain_of(pattern):
        if isinstance(one, GroupPattern):
            yield from _all_patterns(one.get_raw_pattern())
        else:
            yield one


def check_names(pattern: Pattern[Any]) -> None:
    """Check that each pattern of a sequence, including groups, has a unique name."""
    seen = {ENDING_STATE_NAME}
    for one in _all_patterns(pattern):
        name = one.get_name()
        if name in seen:
            reason = "is reserved" if name == ENDING_STATE_NAME else "is used twice in the sequence"
            raise MalformedPatternError(f"the pattern name '{name}' {reason}: give each pattern a unique name")
        seen.add(name)


def check_skip_strategy(pattern: Pattern[Any]) -> None:
    """Check that the pattern to skip to is on the outermost chain."""
    strategy = pattern.get_after_match_skip_strategy()
    wanted = strategy.get_pattern_name()
    names = [one.get_name() for one in chain_of(pattern)]
    if wanted is not None and wanted not in names:
        known = ", ".join(f"'{name}'" for name in names)
        raise MalformedPatternError(
            f"cannot {strategy!r}: the sequence has no such pattern. Skip to one of {known}. Patterns inside "
            "groups are not possible"
        )


def check_not_patterns(pattern: Pattern[Any]) -> None:
    """Check that a NOT pattern follows a pattern that takes an event."""
    for one in chain_of(pattern):
        if one.get_quantifier().consuming_strategy.negated:
            raise UnsupportedFeatureError(
                f"everything before pattern '{one.get_name()}' is optional, and a NOT pattern cannot follow an "
                "optional one: write two patterns, one with and one without the optional part"
            )
        if not _skippable(one):
            return


def check_repeated_groups(pattern: Pattern[Any]) -> None:
    """Check that a group that repeats without limit takes at least one event in each round."""
    for one in chain_of(pattern):
        if not isinstance(one, GroupPattern):
            continue
        inner = one.get_raw_pattern()
        if one.get_quantifier().has_property(QuantifierProperty.LOOPING) and all(map(_skippable, chain_of(inner))):
            raise MalformedPatternError(
                f"the group that ends with pattern '{inner.get_name()}' repeats without limit, and everything in it is "
                "optional: make one of its patterns mandatory, or limit it with times()"
            )
        check_repeated_groups(inner)


def repeats_groups(pattern: Pattern[Any]) -> bool:
    """Whether some group of the sequence repeats or is optional."""
    groups = [one for one in chain_of(pattern) if isinstance(one, GroupPattern)]
    return any(
        group.get_times() is not None
        or group.has_property(QuantifierProperty.OPTIONAL)
        or repeats_groups(group.get_raw_pattern())
        for group in groups
    )


def _skippable(pattern: Pattern[Any]) -> bool:
    quantifier = pattern.get_quantifier()
    if quantifier.has_property(QuantifierProperty.OPTIONAL) or quantifier.consuming_strategy.negated:
        return True
    return isinstance(pattern, GroupPattern) and all(map(_skippable, chain_of(pattern.get_raw_pattern())))
