"""Describes a pattern on one line, for plans and error messages."""

from __future__ import annotations

from typing import Any

from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_checks import chain_of
from penstock.cep.quantifier import ConsumingStrategy, QuantifierProperty, WithinType
from penstock.common.time import Duration

__all__ = ["describe", "links"]

_LINKS = {
    ConsumingStrategy.STRICT: "next",
    ConsumingStrategy.SKIP_TILL_NEXT: "->",
    ConsumingStrategy.SKIP_TILL_ANY: "-any->",
    ConsumingStrategy.NOT_FOLLOW: "-not->",
    ConsumingStrategy.NOT_NEXT: "not next",
}
_INNER = {
    ConsumingStrategy.STRICT: " consecutive",
    ConsumingStrategy.SKIP_TILL_NEXT: "",
    ConsumingStrategy.SKIP_TILL_ANY: " combinations",
}
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


def describe(pattern: Pattern[Any]) -> str:
    """Describe the sequence that ends with a pattern.

    >>> sequence = Pattern.begin("a").followed_by("b").one_or_more().next("c").optional().within(10_000)
    >>> describe(sequence)
    'a -> b+ next c? within 10 s'
    """
    text = _chain(pattern)
    skip = pattern.get_after_match_skip_strategy()
    return f"{text}, {skip!r}" if skip.is_skip_strategy() else text


def links(pattern: Pattern[Any]) -> dict[str, str]:
    """Return the link before each pattern by name, in order. The first pattern of a group has the link of the group."""
    found: dict[str, str] = {}
    for one in chain_of(pattern):
        link = one.get_quantifier().consuming_strategy.value
        if isinstance(one, GroupPattern):
            inner = one.get_raw_pattern()
            found.update(links(inner))
            first = chain_of(inner)[0]
            while isinstance(first, GroupPattern):
                first = chain_of(first.get_raw_pattern())[0]
            found[first.get_name()] = link
        else:
            found[one.get_name()] = link
    return found


def _chain(pattern: Pattern[Any]) -> str:
    chain = chain_of(pattern)
    parts: list[str] = []
    limits = [window for one in chain if (window := one.get_window_size()) is not None]
    for number, one in enumerate(chain):
        if number:
            parts.append(_LINKS[one.get_quantifier().consuming_strategy])
        parts.append(_element(one))
    if limits:
        parts.append(f"within {_length(min(limits))}")
    return " ".join(parts)


def _element(pattern: Pattern[Any]) -> str:
    quantifier, times = pattern.get_quantifier(), pattern.get_times()
    text = f"({_chain(pattern.get_raw_pattern())})" if isinstance(pattern, GroupPattern) else pattern.get_name()
    optional = quantifier.has_property(QuantifierProperty.OPTIONAL)
    if times is None:
        text += "?" if optional else ""
    else:
        if quantifier.has_property(QuantifierProperty.LOOPING):
            text += "+" if times.from_ == 1 else f"{{{times.from_},}}"
        else:
            text += f"{{{times.from_}}}" if times.from_ == times.to else f"{{{times.from_},{times.to}}}"
        text += "?" if optional else ""
        text += _INNER[quantifier.inner_consuming_strategy]
        text += " greedy" if quantifier.has_property(QuantifierProperty.GREEDY) else ""
        text += " until" if pattern.get_until_condition() is not None else ""
        text += "" if times.window is None else f" [{_length(times.window)} apart]"
    previous = pattern.get_window_size(WithinType.PREVIOUS_AND_CURRENT)
    return text if previous is None else f"{text} [{_length(previous)} after]"


def _length(duration: Duration) -> str:
    milliseconds = duration.to_milliseconds()
    for unit, size in _UNITS:
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
