import pytest
from window_helpers import Sum, at, windows

from penstock.common.errors import InvalidProgramError
from penstock.core.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
)
from penstock.runtime.windows.merging import MergingWindowOperator
from penstock.runtime.windows.session import SessionWindowOperator

GAP = EventTimeSessionWindows.with_gap(10)


class Mergeable(EventTimeTrigger):
    """Does the same as the default trigger, but is not known to the builder: the general operator must be used."""


@pytest.fixture(params=["special", "general"])
def sessions(request):
    def make(assigner=GAP, **definition):
        if request.param == "general" and assigner.is_event_time():
            definition["trigger"] = Mergeable()
        driver = windows(assigner, **definition)
        if assigner.is_event_time():
            expected = SessionWindowOperator if request.param == "special" else MergingWindowOperator
            assert isinstance(driver.operator, expected)
        return driver

    return make


def test_a_distance_of_exactly_the_gap_is_the_same_session(sessions):
    assert sessions().send(*at((1, 0), (2, 10))).advance(1000).results() == [("a", 0, 20, [1, 2])]


def test_one_millisecond_more_is_another_session(sessions):
    assert sessions().send(*at((1, 0), (2, 11))).advance(1000).results() == [("a", 0, 10, [1]), ("a", 11, 21, [2])]


def test_a_late_arrival_bridges_two_sessions(sessions):
    driver = sessions().send(*at((1, 0), (2, 16), (3, 8))).advance(1000)
    assert driver.results() == [("a", 0, 26, [1, 2, 3])]


def test_a_bridge_keeps_elements_in_order_of_time_of_their_sessions(sessions):
    driver = sessions().send(*at((2, 16), (1, 0), (4, 17), (3, 8))).advance(1000)
    assert driver.results() == [("a", 0, 27, [1, 2, 4, 3])]


def test_an_element_may_extend_a_session_backwards(sessions):
    assert sessions().send(*at((1, 10), (2, 3))).advance(1000).results() == [("a", 3, 20, [1, 2])]


def test_a_session_fires_when_the_gap_has_passed_and_not_before(sessions):
    driver = sessions().send(*at((1, 0), (2, 9))).advance(17)
    assert driver.results() == []
    assert driver.advance(18).take() == [(("a", 0, 19, [1, 2]), 18)]
    assert driver.stored_keys == 0


def test_sessions_of_different_keys_do_not_meet(sessions):
    driver = sessions().send((("a", 1), 0), (("b", 2), 5)).advance(1000)
    assert driver.results() == [("a", 0, 10, [1]), ("b", 5, 15, [2])]


def test_accumulators_of_bridged_sessions_are_merged(sessions):
    driver = sessions(aggregate_function=Sum()).send(*at((1, 0), (2, 16))).restart().send(*at((4, 8))).advance(1000)
    assert driver.take() == [(7, 25)]


def test_reduced_values_of_bridged_sessions_are_reduced(sessions):
    driver = sessions(reduce_function=lambda a, b: ("a", a[1] + b[1]))
    assert driver.send(*at((1, 0), (2, 16), (4, 8))).advance(1000).take() == [(("a", 7), 25)]


def test_lateness_is_tested_on_the_merged_window(sessions):
    driver = sessions().send(*at((1, 12))).advance(15)
    driver.send(*at((2, 3)))  # [3, 13) alone is over, but it touches [12, 22), which is not
    assert driver.dropped == 0
    assert driver.advance(1000).results() == [("a", 3, 22, [1, 2])]


def test_an_element_whose_own_session_is_over_is_late(sessions):
    driver = sessions().send(*at((1, 30))).advance(15).send(*at((2, 5)), *at((3, 7)))
    assert driver.dropped == 1
    assert driver.advance(1000).results() == [("a", 7, 17, [3]), ("a", 30, 40, [1])]


def test_a_late_element_fires_a_complete_session_again(sessions):
    driver = sessions(allowed_lateness_ms=20).send(*at((1, 0))).advance(9)
    assert driver.results() == [("a", 0, 10, [1])]
    assert driver.send(*at((2, 0))).results() == [("a", 0, 10, [1, 2])]
    assert driver.restart().send(*at((3, 5))).results() == []  # [0, 15): not complete any more
    assert driver.advance(14).results() == [("a", 0, 15, [1, 2, 3])]
    assert driver.advance(34).stored_keys == 0
    assert driver.results() == []


def test_a_bridge_between_complete_sessions_fires_the_whole(sessions):
    driver = sessions(allowed_lateness_ms=50).send(*at((1, 0), (2, 16))).advance(25)
    assert driver.results() == [("a", 0, 10, [1]), ("a", 16, 26, [2])]
    assert driver.send(*at((3, 8))).results() == [("a", 0, 26, [1, 2, 3])]
    assert driver.advance(1000).results() == []
    assert driver.stored_keys == 0


def test_a_dynamic_gap_belongs_to_the_element(sessions):
    driver = sessions(EventTimeSessionWindows.with_dynamic_gap(lambda record: record[1]))
    assert driver.send(*at((100, 0), (5, 50), (7, 60))).advance(1000).results() == [("a", 0, 100, [100, 5, 7])]
    assert driver.send(*at((5, 2000), (3, 2006))).advance(3000).results() == [
        ("a", 2000, 2005, [5]),
        ("a", 2006, 2009, [3]),
    ]


def test_processing_time_sessions_end_when_nothing_came_for_the_gap():
    driver = windows(ProcessingTimeSessionWindows.with_gap(10)).tick(0).send_bare(("a", 1)).tick(8).send_bare(("a", 2))
    assert driver.results() == []
    assert driver.restart().tick(18).results() == [("a", 0, 18, [1, 2])]
    assert driver.stored_keys == 0


def test_a_function_without_merge_fails_when_sessions_are_bridged(sessions):
    class NoMerge(Sum):
        def merge(self, acc_a, acc_b):
            pass

    driver = sessions(aggregate_function=NoMerge()).send(*at((1, 0), (2, 8)))
    assert driver.advance(20).take() == [(3, 17)]
    with pytest.raises(InvalidProgramError, match=r"NoMerge\.merge\(\) is not implemented"):
        driver.send(*at((1, 100), (2, 116), (4, 108)))


def test_the_count_of_a_count_trigger_is_merged_with_the_sessions():
    driver = windows(GAP, trigger=CountTrigger.of(4)).send(*at((1, 0), (2, 1), (3, 16)))
    assert driver.results() == []
    assert driver.restart().send(*at((4, 8))).results() == [("a", 0, 26, [1, 2, 3, 4])]
    assert driver.advance(1000).results() == []  # the trigger replaced the default one
    assert driver.stored_keys == 0


def test_a_purged_session_still_merges():
    driver = windows(GAP, trigger=PurgingTrigger.of(CountTrigger.of(2)))
    assert driver.send(*at((1, 0), (2, 1))).results() == [("a", 0, 11, [1, 2])]
    assert driver.send(*at((3, 10), (4, 12))).results() == [("a", 0, 22, [3, 4])]
    assert driver.advance(1000).stored_keys == 0


def test_records_without_timestamps_are_at_the_beginning_of_time():
    driver = windows(GAP).send_bare(("a", 1))
    assert driver.advance(0).results() == [("a", -(2**63), -(2**63) + 10, [1])]
    assert driver.send_bare(("a", 2)).dropped == 1
