import pytest
from window_helpers import at, windows

from penstock.common.errors import StateAccessError, UserFunctionError
from penstock.core.functions import ProcessAllWindowFunction, ProcessWindowFunction
from penstock.core.state import ListStateDescriptor, ValueStateDescriptor
from penstock.core.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

FIRINGS = ValueStateDescriptor("firings", default_value=0)
WINDOWS = ListStateDescriptor("windows")
ASSIGNERS = [TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(10, 10), SlidingEventTimeWindows.of(10, 5)]


class SameAsDefault(EventTimeTrigger):
    """Unknown to the builder, so that the general operator is used."""


class Counting(ProcessWindowFunction):
    """First result or update? Which windows did the key have before?"""

    cleared = ()

    def process(self, key, context, elements):
        firings = context.window_state().get_state(FIRINGS)
        firings.update(firings.value() + 1)
        known = context.global_state().get_list_state(WINDOWS)
        if firings.value() == 1:
            known.add(context.window().start)
        yield context.window().start, firings.value(), list(known)

    def clear(self, context):
        context.window_state().get_state(FIRINGS).clear()
        self.cleared = (*self.cleared, (context.window(), context.current_watermark()))


@pytest.fixture(params=[None, SameAsDefault()], ids=["special", "general"])
def trigger(request):
    return request.param


def test_window_state_is_kept_between_firings_of_a_window_and_global_state_between_windows(trigger):
    driver = windows(TumblingEventTimeWindows.of(10), Counting(), allowed_lateness_ms=5, trigger=trigger)
    driver.send(*at((1, 1))).advance(9).restart().send(*at((2, 2))).send(*at((3, 12))).advance(19)
    assert driver.results() == [(0, 1, [0]), (0, 2, [0]), (10, 1, [0, 10])]


def test_window_state_is_per_key(trigger):
    driver = windows(TumblingEventTimeWindows.of(10), Counting(), trigger=trigger)
    driver.send((("a", 1), 1), (("b", 1), 1)).advance(9)
    assert driver.results() == [(0, 1, [0]), (0, 1, [0])]


@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_clear_is_called_once_for_every_window_when_its_lateness_is_over(assigner, trigger):
    function = Counting()
    driver = windows(assigner, function, allowed_lateness_ms=3, trigger=trigger).send(*at((1, 1), (2, 14)))
    driver.advance(9).advance(11)
    assert [window.start for window, _ in function.cleared if window.start == 0] == []
    driver.advance(12)
    assert (0, 12) in [(window.start, watermark) for window, watermark in function.cleared]
    driver.advance(1000)
    cleared = [window.start for window, _ in function.cleared]
    assert sorted(cleared) == sorted(set(cleared))
    assert set(cleared) == {start for start, _, _ in driver.results()}


def test_what_is_cleared_leaves_no_window_state(trigger):
    class Flag(Counting):
        def process(self, key, context, elements):
            context.window_state().get_state(FIRINGS).update(1)
            return []

    driver = windows(TumblingEventTimeWindows.of(10), Flag(), trigger=trigger).send(*at((1, 1)))
    assert driver.stored_keys == 1
    assert driver.advance(9).stored_keys == 0


def test_clear_of_sessions_is_called_for_the_merged_window_only(trigger):
    class Sessions(ProcessWindowFunction):
        cleared = ()

        def process(self, key, context, elements):
            return []

        def clear(self, context):
            self.cleared = (*self.cleared, context.window())

    function = Sessions()
    windows(EventTimeSessionWindows.with_gap(10), function, trigger=trigger).send(*at((1, 0), (2, 16), (3, 8))).advance(
        100
    )
    assert [(window.start, window.end) for window in function.cleared] == [(0, 26)]


def test_window_state_is_refused_where_windows_merge(trigger):
    driver = windows(EventTimeSessionWindows.with_gap(10), Counting(), trigger=trigger).send(*at((1, 1)))
    with pytest.raises(StateAccessError, match=r"use global_state\(\)"):
        driver.advance(100)


def test_global_state_works_where_windows_merge(trigger):
    class Count(ProcessWindowFunction):
        def process(self, key, context, elements):
            count = context.global_state().get_state(FIRINGS)
            count.update(count.value() + 1)
            yield count.value()

    driver = windows(EventTimeSessionWindows.with_gap(5), Count(), trigger=trigger).send(*at((1, 1), (2, 20)))
    assert driver.advance(100).results() == [1, 2]


def test_process_all_has_state_too():
    class All(ProcessAllWindowFunction):
        def process(self, context, elements):
            count = context.global_state().get_state(FIRINGS)
            count.update(count.value() + 1)
            yield context.window().start, count.value(), len(list(elements))

    driver = windows(TumblingEventTimeWindows.of(10), All(), all_window=True)
    driver.send((("a", 1), 1), (("b", 1), 2), (("c", 1), 12)).advance(100)
    assert driver.results() == [(0, 1, 2), (10, 2, 1)]


def test_an_error_in_the_function_names_operator_and_method(trigger):
    class Broken(ProcessWindowFunction):
        def process(self, key, context, elements):
            raise ValueError("no luck")

    driver = windows(TumblingEventTimeWindows.of(10), Broken(), trigger=trigger).send(*at((1, 1)))
    with pytest.raises(UserFunctionError, match=r"(?s)operator 'windows'.*method process.*no luck"):
        driver.advance(100)
