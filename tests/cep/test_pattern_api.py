"""The names of the library, and what its calls return."""

from datetime import timedelta

import pytest

import penstock.cep
from penstock.cep import (
    AfterMatchSkipStrategy,
    GroupPattern,
    Pattern,
    QuantifierProperty,
    Times,
    WithinType,
)
from penstock.common import Duration, Time

NAMES = """
    CEP PatternStream Pattern GroupPattern WithinType AfterMatchSkipStrategy SimpleCondition IterativeCondition
    RichIterativeCondition PatternProcessFunction TimedOutPartialMatchHandler PatternSelectFunction
    PatternFlatSelectFunction PatternTimeoutFunction PatternFlatTimeoutFunction RichPatternSelectFunction
    RichPatternFlatSelectFunction MalformedPatternError
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_the_names_of_flinks_library_are_importable(name):
    assert name in penstock.cep.__all__
    assert hasattr(penstock.cep, name)


def test_every_name_in_the_list_of_names_exists():
    assert [name for name in penstock.cep.__all__ if not hasattr(penstock.cep, name)] == []


@pytest.mark.parametrize("length", [Duration.of_millis(500), Time.milliseconds(500), timedelta(milliseconds=500), 500])
def test_a_length_of_time_is_a_duration_a_time_a_timedelta_or_milliseconds(length):
    assert Pattern.begin("a").within(length).get_window_size() == Duration.of_millis(500)
    assert str(Pattern.begin("a").one_or_more(length)) == "a+ [500 ms apart]"
    assert str(Pattern.begin("a").times_or_more(2, length)) == "a{2,} [500 ms apart]"


def test_the_second_argument_of_times_is_a_number_or_a_duration():
    assert str(Pattern.begin("a").times(3, 5)) == "a{3,5}"
    assert str(Pattern.begin("a").times(3, Duration.of_seconds(2))) == "a{3} [2 s apart]"
    assert str(Pattern.begin("a").times(3, 5, 2_000)) == "a{3,5} [2 s apart]"


def test_quantifiers_conditions_and_limits_change_the_pattern_and_return_it():
    pattern = Pattern.begin("a")
    calls = (
        pattern.where(bool),
        pattern.or_(bool),
        pattern.subtype(int),
        pattern.one_or_more(),
        pattern.greedy(),
        pattern.optional(),
        pattern.consecutive(),
        pattern.until(bool),
        pattern.within(9),
    )
    assert all(returned is pattern for returned in calls)
    assert str(pattern) == "a+? consecutive greedy until within 9 ms"


@pytest.mark.parametrize("link", ["next", "followed_by", "followed_by_any", "not_next", "not_followed_by"])
def test_links_return_a_new_pattern_behind_this_one(link):
    first = Pattern.begin("a")
    second = getattr(first, link)("b")
    assert (second.get_name(), second.get_previous()) == ("b", first)
    assert first.get_previous() is None


def test_a_sequence_in_the_place_of_a_name_is_a_group():
    inner = Pattern.begin("x").next("y")
    group = Pattern.begin("a").next(inner)
    assert isinstance(group, GroupPattern)
    assert (group.get_raw_pattern(), group.get_name()) == (inner, "GroupPattern")


def test_a_pattern_tells_what_it_was_given():
    strategy = AfterMatchSkipStrategy.skip_to_next()
    pattern = Pattern.begin("a", strategy).times(2, 3)
    pattern.within(5, WithinType.PREVIOUS_AND_CURRENT)
    assert pattern.get_times() == Times(2, 3, None)
    assert pattern.get_quantifier().has_property(QuantifierProperty.TIMES)
    assert pattern.get_window_size() is None
    assert pattern.get_window_size(WithinType.PREVIOUS_AND_CURRENT) == Duration.of_millis(5)
    assert pattern.next("b").get_after_match_skip_strategy() is strategy
    assert pattern.get_until_condition() is None
