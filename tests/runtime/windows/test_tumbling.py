from window_helpers import Sum, at, windows

from penstock.core.window import (
    EventTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.runtime.windows.tumbling import TumblingWindowOperator

TEN = TumblingEventTimeWindows.of(10)


def test_a_window_fires_when_the_watermark_reaches_its_last_millisecond():
    driver = windows(TEN).send(*at((1, 0), (2, 9))).advance(8)
    assert driver.results() == []
    assert driver.advance(9).results() == [("a", 0, 10, [1, 2])]


def test_the_end_belongs_to_the_next_window():
    driver = windows(TEN).send(*at((1, 9), (2, 10))).advance(19)
    assert driver.results() == [("a", 0, 10, [1]), ("a", 10, 20, [2])]


def test_results_are_stamped_with_the_last_millisecond_so_that_windows_chain():
    driver = windows(TEN, aggregate_function=Sum()).send(*at((1, 3), (2, 15))).advance(100)
    assert driver.take() == [(1, 9), (2, 19)]


def test_results_go_out_before_the_watermark_that_caused_them():
    driver = windows(TEN).send(*at((1, 3))).advance(100)
    assert driver.output.watermarks == [(1, 100)]


def test_empty_windows_are_never_evaluated():
    driver = windows(TEN).send(*at((1, 0), (2, 55))).advance(1000)
    assert driver.results() == [("a", 0, 10, [1]), ("a", 50, 60, [2])]


def test_windows_fire_in_order_of_time_whatever_the_order_of_arrival():
    driver = windows(TEN).send(*at((3, 25), (1, 5), (2, 15))).advance(1000)
    assert [result[1] for result in driver.results()] == [0, 10, 20]


def test_order_of_time_holds_between_stored_and_new_windows():
    driver = windows(TEN).send(*at((1, 5), (3, 25))).restart().send(*at((2, 15), (4, 35))).advance(1000)
    assert [result[1] for result in driver.results()] == [0, 10, 20, 30]


def test_every_key_has_windows_of_its_own():
    driver = windows(TEN).send((("a", 1), 1), (("b", 2), 2), (("a", 3), 3)).advance(9)
    assert sorted(driver.results()) == [("a", 0, 10, [1, 3]), ("b", 0, 10, [2])]


def test_elements_behind_the_watermark_are_in_time_while_their_window_is_open():
    driver = windows(TEN).send(*at((1, 1))).advance(8).send(*at((2, 2))).advance(9)
    assert driver.results() == [("a", 0, 10, [1, 2])]
    assert driver.dropped == 0


def test_the_offset_shifts_windows():
    driver = windows(TumblingEventTimeWindows.of(10, 3)).send(*at((1, 2), (2, 3))).advance(1000)
    assert driver.results() == [("a", -7, 3, [1]), ("a", 3, 13, [2])]


def test_windows_survive_a_restart():
    driver = windows(TEN, aggregate_function=Sum()).send(*at((1, 1), (2, 12)))
    driver.restart().send(*at((4, 2))).restart().advance(9)
    assert driver.take() == [(5, 9)]
    assert driver.restart().advance(19).take() == [(2, 19)]
    assert driver.stored_keys == 0


def test_processing_time_windows_fire_when_the_clock_passes_their_end():
    driver = windows(TumblingProcessingTimeWindows.of(10)).tick(3).send_bare(("a", 1)).tick(8).send_bare(("a", 2))
    assert driver.results() == []
    assert driver.tick(10).take() == [(("a", 0, 10, [1, 2]), 9)]


def test_a_processing_time_window_that_ends_with_this_millisecond_gets_the_whole_batch():
    driver = windows(TumblingProcessingTimeWindows.of(10)).tick(3).send_bare(("a", 0)).tick(9)
    assert driver.send_bare(("a", 1)).send_bare(("a", 2)).results() == []
    assert driver.end_batch().results() == [("a", 0, 10, [0, 1, 2])]


def test_processing_time_windows_wake_the_operator_up_after_a_restart():
    driver = windows(TumblingProcessingTimeWindows.of(10)).tick(3).send_bare(("a", 1)).restart()
    assert driver.operator.next_wakeup() == 9
    assert driver.tick(500).results() == [("a", 0, 10, [1])]
    assert driver.operator.next_wakeup() is None


def test_processing_time_ignores_watermarks_and_timestamps():
    driver = windows(TumblingProcessingTimeWindows.of(10)).advance(1_000_000).tick(3).send(*at((1, 5)))
    assert driver.dropped == 0
    assert driver.tick(10).results() == [("a", 0, 10, [1])]


def test_purging_a_window_that_is_gone_anyway_needs_no_general_operator():
    driver = windows(TEN, trigger=PurgingTrigger.of(EventTimeTrigger.create()))
    assert isinstance(driver.operator, TumblingWindowOperator)


def test_reduce_takes_the_first_element_as_it_is():
    calls = []

    def reduce(current, new):
        calls.append((current, new))
        return ("a", current[1] + new[1])

    driver = windows(TEN, reduce_function=reduce).send(*at((1, 1), (2, 2), (4, 3))).advance(9)
    assert driver.results() == [("a", 7)]
    assert calls == [(("a", 1), ("a", 2)), (("a", 3), ("a", 4))]
