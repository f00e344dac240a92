import pytest
from window_helpers import Sum, at, windows

from penstock.core.functions import AggregateFunction
from penstock.core.window import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from penstock.runtime.windows.sliding import SlidingWindowOperator
from penstock.runtime.windows.window_operator import WindowOperator


def test_an_element_is_in_all_windows_around_it():
    driver = windows(SlidingEventTimeWindows.of(10, 5)).send(*at((1, 7))).advance(1000)
    assert driver.results() == [("a", 0, 10, [1]), ("a", 5, 15, [1])]


def test_elements_keep_their_order_of_arrival_though_they_lie_in_different_slices():
    driver = windows(SlidingEventTimeWindows.of(10, 2)).send(*at((1, 7), (2, 1), (3, 5), (4, 0))).advance(9)
    assert driver.results()[-1] == ("a", 0, 10, [1, 2, 3, 4])


def test_the_order_of_arrival_survives_a_restart():
    driver = windows(SlidingEventTimeWindows.of(10, 2)).send(*at((1, 7))).restart().send(*at((2, 1)))
    assert driver.advance(9).results()[-1] == ("a", 0, 10, [1, 2])


def test_a_slide_that_does_not_divide_the_size():
    driver = windows(SlidingEventTimeWindows.of(10, 4), aggregate_function=Sum()).send(*at((1, 1), (2, 5), (4, 9)))
    assert driver.advance(1000).take() == [(1, 1), (3, 5), (7, 9), (6, 13), (4, 17)]


def test_gaps_between_windows_swallow_elements_that_are_not_late():
    driver = windows(SlidingEventTimeWindows.of(10, 15)).send(*at((1, 12), (2, 15), (3, 24), (4, 25))).advance(1000)
    assert driver.results() == [("a", 15, 25, [2, 3])]
    assert driver.dropped == 0


def test_an_element_in_a_gap_behind_the_watermark_is_late():
    driver = windows(SlidingEventTimeWindows.of(10, 15)).advance(12).send(*at((1, 12), (2, 13)))
    assert driver.dropped == 1


def test_an_element_may_be_late_for_some_windows_only():
    driver = windows(SlidingEventTimeWindows.of(10, 5)).advance(9).send(*at((1, 7))).advance(1000)
    assert driver.results() == [("a", 5, 15, [1])]
    assert driver.dropped == 0


def test_an_element_that_is_late_for_all_windows_is_dropped():
    driver = windows(SlidingEventTimeWindows.of(10, 5)).advance(14).send(*at((1, 9)))
    assert driver.dropped == 1
    assert driver.stored_keys == 0


def test_late_elements_fire_each_complete_window_that_is_kept_the_latest_first():
    driver = windows(SlidingEventTimeWindows.of(10, 5), allowed_lateness_ms=4).advance(14)
    driver.send(*at((1, 12), (2, 7)))
    assert driver.results() == [("a", 5, 15, [1]), ("a", 5, 15, [1, 2])]
    assert driver.advance(1000).results() == [("a", 10, 20, [1])]
    assert driver.stored_keys == 0


class Merging(AggregateFunction):
    """Counts how often it is asked to add and to merge."""

    adds = merges = 0

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        type(self).adds += 1
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        type(self).merges += 1
        return acc_a + acc_b


@pytest.mark.parametrize("overlap", [4, 60, 600])
def test_work_does_not_grow_with_size_over_slide(overlap):
    Merging.adds = Merging.merges = 0
    driver = windows(SlidingEventTimeWindows.of(10 * overlap, 10), aggregate_function=Merging())
    steps = 3 * overlap
    for step in range(steps):
        driver.send(*at((1, 10 * step), (1, 10 * step + 5))).advance(10 * step + 9)
    results = driver.results()
    assert results[-1] == 2 * overlap
    assert Merging.adds == 2 * steps
    assert Merging.merges <= 3 * steps


def test_floats_come_out_the_same_whenever_state_is_written_and_read_back():
    def run(*, restarts):
        driver = windows(SlidingEventTimeWindows.of(50, 10), aggregate_function=Sum())
        for step in range(40):
            driver.send(*at((0.1 * step, 10 * step), (1e10 / (step + 1), 10 * step + 3))).advance(10 * step + 4)
            if restarts:
                driver.restart()
        return driver.advance(10_000).take()

    assert run(restarts=True) == run(restarts=False)


class NoMerge(Sum):
    def merge(self, acc_a, acc_b):
        pass


def test_a_function_without_merge_works_the_plain_way():
    driver = windows(SlidingEventTimeWindows.of(10, 5), aggregate_function=NoMerge()).send(*at((1, 7), (2, 8)))
    assert isinstance(driver.operator, WindowOperator)
    assert driver.advance(1000).take() == [(3, 9), (3, 14)]


@pytest.mark.parametrize("kind", [{"aggregate_function": Sum()}, {"reduce_function": max}, {}])
def test_incremental_and_full_functions_share_slices(kind):
    assert isinstance(windows(SlidingEventTimeWindows.of(10, 5), **kind).operator, SlidingWindowOperator)


def test_a_reduce_function_that_changes_what_it_is_given_does_no_harm():
    def reduce(current, new):
        current[1] += new[1]
        return current

    driver = windows(SlidingEventTimeWindows.of(10, 5), reduce_function=reduce)
    driver.send((["a", 1], 1), (["a", 2], 6), (["a", 4], 11)).advance(1000)
    assert driver.take() == [(["a", 1], 4), (["a", 3], 9), (["a", 6], 14), (["a", 4], 19)]


def test_processing_time_windows_slide_with_the_clock():
    driver = windows(SlidingProcessingTimeWindows.of(10, 5)).tick(3).send_bare(("a", 1)).tick(7).send_bare(("a", 2))
    assert driver.results() == [("a", -5, 5, [1])]
    assert driver.tick(10).results() == [("a", 0, 10, [1, 2])]
    assert driver.restart().tick(20).results() == [("a", 5, 15, [2])]
    assert driver.stored_keys == 0


def test_elements_of_the_millisecond_in_which_a_window_fired_get_one_of_their_own():
    driver = windows(SlidingProcessingTimeWindows.of(10, 5)).tick(8).send_bare(("a", 1)).tick(9).send_bare(("a", 2))
    assert driver.end_batch().results() == [("a", 0, 10, [1, 2])]
    assert driver.send_bare(("a", 3)).results() == [("a", 0, 10, [3])]
    assert driver.tick(15).results() == [("a", 5, 15, [1, 2, 3])]
