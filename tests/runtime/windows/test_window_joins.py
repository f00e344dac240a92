import pytest
from window_driver import WindowDriver
from window_helpers import LATE, key_of

from penstock.common.errors import InvalidProgramError, KeySelectorError, MissingTimestampError, UserFunctionError
from penstock.core.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, MapFunction
from penstock.core.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.runtime.windows.builder import build_window_join_operator
from penstock.runtime.windows.tumbling_join import TumblingJoinOperator

TEN = TumblingEventTimeWindows.of(10)


class SameAsDefault(EventTimeTrigger):
    """Unknown to the builder, so that the general operator is used."""


def pair(left, right):
    return left[0], left[1], right[1]


def both(first, second):
    yield sorted(value for _, value in first), sorted(value for _, value in second)


def join(assigner=TEN, function=pair, **definition):
    operator = build_window_join_operator(
        assigner, first_key_selector=key_of, second_key_selector=key_of, function=function, **definition
    )
    return WindowDriver(operator, tags=[LATE.tag_id])


@pytest.fixture(params=[None, SameAsDefault()], ids=["special", "general"])
def trigger(request):
    return request.param


def test_all_pairs_of_a_key_and_window(trigger):
    driver = join(trigger=trigger).send((("a", 1), 1), (("a", 2), 2)).send2((("a", 3), 3), (("a", 4), 9))
    assert driver.results() == []
    assert driver.advance(9).take() == [
        (("a", 1, 3), 9),
        (("a", 1, 4), 9),
        (("a", 2, 3), 9),
        (("a", 2, 4), 9),
    ]
    assert driver.stored_keys == 0


def test_the_join_is_inner(trigger):
    driver = join(trigger=trigger).send((("a", 1), 1), (("b", 2), 2)).send2((("b", 3), 3), (("c", 4), 4)).advance(9)
    assert driver.results() == [("b", 2, 3)]


def test_elements_in_different_windows_do_not_join(trigger):
    driver = join(trigger=trigger).send((("a", 1), 9)).send2((("a", 2), 10)).advance(1000)
    assert driver.results() == []


def test_co_group_is_called_once_with_both_sides_and_either_may_be_empty(trigger):
    driver = join(function=both, co_group=True, trigger=trigger)
    driver.send((("a", 1), 1), (("b", 2), 2)).send2((("b", 3), 3), (("b", 4), 4), (("c", 5), 5)).advance(9)
    assert sorted(driver.results()) == [([], [5]), ([1], []), ([2], [3, 4])]


def test_a_co_group_can_be_an_outer_join():
    class LeftOuter(CoGroupFunction):
        def co_group(self, first, second):
            for left in first:
                for right in second or [(None, None)]:
                    yield left[1], right[1]

    driver = join(function=LeftOuter(), co_group=True).send((("a", 1), 1), (("b", 2), 2)).send2((("b", 3), 3))
    assert sorted(driver.advance(9).results(), key=str) == [(1, None), (2, 3)]


def test_function_objects(trigger):
    class Pair(JoinFunction):
        def join(self, first, second):
            return first[1] + second[1]

    class Pairs(FlatJoinFunction):
        def join(self, first, second):
            if first[1] != second[1]:
                yield first[1]
                yield second[1]

    for function, results in ((Pair(), [5, 2]), (Pairs(), [1, 4])):
        driver = join(function=function, trigger=trigger).send((("a", 1), 1)).send2((("a", 4), 1), (("a", 1), 1))
        assert driver.advance(9).results() == results


def test_keys_of_the_two_streams_come_from_their_own_selectors(trigger):
    operator = build_window_join_operator(
        TEN, first_key_selector=key_of, second_key_selector=lambda r: r["id"], function=lambda a, b: (a[1], b["n"])
    )
    assert len(operator.key_selectors()) == 2
    driver = WindowDriver(operator).send((("a", 1), 1)).send2(({"id": "a", "n": 2}, 1)).advance(9)
    assert driver.results() == [(1, 2)]


def test_late_elements_of_either_side_are_counted(trigger):
    driver = join(trigger=trigger).advance(9).send((("a", 1), 1)).send2((("a", 2), 9), (("a", 3), 10))
    assert driver.dropped == 2


def test_late_elements_come_as_they_were(trigger):
    driver = join(trigger=trigger, late_tag=LATE).advance(9).send((("a", 1), 1)).send2((("a", 2), 2))
    assert driver.side("late") == [(("a", 1), 1), (("a", 2), 2)]


def test_allowed_lateness_joins_again(trigger):
    driver = join(trigger=trigger, allowed_lateness_ms=5).send((("a", 1), 1)).advance(9)
    assert driver.send2((("a", 2), 2)).restart().send((("a", 3), 3)).results() == [
        ("a", 1, 2),
        ("a", 1, 2),
        ("a", 3, 2),
    ]
    assert driver.advance(14).stored_keys == 0


def test_joins_survive_a_restart(trigger):
    driver = join(trigger=trigger).send((("a", 1), 1)).restart().send2((("a", 2), 2)).restart().advance(9)
    assert driver.results() == [("a", 1, 2)]


def test_sliding_windows_join_pairs_once_for_every_common_window():
    driver = join(SlidingEventTimeWindows.of(10, 5)).send((("a", 1), 6)).send2((("a", 2), 8), (("a", 3), 12))
    assert driver.advance(1000).take() == [(("a", 1, 2), 9), (("a", 1, 2), 14), (("a", 1, 3), 14)]


def test_session_windows_hold_both_streams():
    driver = join(EventTimeSessionWindows.with_gap(5)).send((("a", 1), 0)).send2((("a", 2), 4)).send((("a", 3), 8))
    assert driver.advance(1000).take() == [(("a", 1, 2), 12), (("a", 3, 2), 12)]


def test_processing_time_windows_join():
    driver = join(TumblingProcessingTimeWindows.of(10)).tick(5)
    driver.operator.process_batch([("a", 1)], None)
    driver.operator.process_batch2([("a", 2)], None)
    assert driver.tick(10).results() == [("a", 1, 2)]


def test_triggers_and_evictors_see_the_elements_of_both_sides():
    seen = []

    class Watch(CountTrigger):
        def on_element(self, element, timestamp, window, ctx):
            seen.append((element.is_one(), element.get_one(), element.get_two()))
            return super().on_element(element, timestamp, window, ctx)

    driver = join(trigger=Watch(3), evictor=CountEvictor.of(2)).send((("a", 1), 1)).send2((("a", 2), 1), (("a", 3), 1))
    assert driver.results() == []  # the first element was evicted: nothing to join
    assert seen[0] == (True, ("a", 1), None)
    assert seen[1] == (False, None, ("a", 2))


def test_the_tumbling_join_has_an_operator_of_its_own():
    assert isinstance(join().operator, TumblingJoinOperator)


@pytest.mark.parametrize("side", ["send", "send2"])
def test_errors_name_what_is_wrong(side, trigger):
    driver = join(function=lambda a, b: 1 / 0, trigger=trigger).send((("a", 1), 1)).send2((("a", 1), 1))
    with pytest.raises(UserFunctionError, match=r"(?s)method join.*ZeroDivisionError"):
        driver.advance(9)
    with pytest.raises(MissingTimestampError):
        getattr(join(trigger=trigger), side)((("a", 1), None))
    with pytest.raises(KeySelectorError):
        getattr(join(trigger=trigger), side)((5, 1))


class Wrong(MapFunction):
    def map(self, value):
        return value


@pytest.mark.parametrize(
    "define",
    [
        lambda: join(function=None),
        lambda: join(function=Wrong()),
        lambda: join(function=Wrong(), co_group=True),
        lambda: join(allowed_lateness_ms=-1),
    ],
)
def test_wrong_definitions_are_refused(define):
    with pytest.raises(InvalidProgramError):
        define()
