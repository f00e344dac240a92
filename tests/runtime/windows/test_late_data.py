import pytest
from window_helpers import LATE, Contents, Sum, at, windows

from penstock.core.window import (
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

TEN = TumblingEventTimeWindows.of(10)


class SameAsDefault(EventTimeTrigger):
    """Unknown to the builder, so that the general operator is used."""


@pytest.fixture(params=["special", "general"])
def ten(request):
    def make(**definition):
        if request.param == "general":
            definition.setdefault("trigger", SameAsDefault())
        return windows(TEN, **definition)

    return make


def test_a_late_element_is_dropped_and_counted_and_makes_no_window(ten):
    driver = ten().advance(9).send(*at((1, 9)))
    assert driver.dropped == 1
    assert driver.stored_keys == 0


def test_late_elements_can_be_had_as_a_side_output_with_their_timestamps(ten):
    driver = ten(late_tag=LATE).advance(9).send(*at((1, 9), (2, 10)))
    assert driver.side("late") == [(("a", 1), 9)]
    assert driver.dropped == 0


def test_within_the_allowed_lateness_every_element_fires_the_window_again_with_all_elements(ten):
    driver = ten(allowed_lateness_ms=5, late_tag=LATE).send(*at((1, 1))).advance(9)
    assert driver.results() == [("a", 0, 10, [1])]
    assert driver.send(*at((2, 2), (3, 3))).results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [1, 2, 3])]
    assert driver.side("late") == []


def test_a_window_is_kept_until_the_watermark_passes_end_and_lateness(ten):
    driver = ten(allowed_lateness_ms=5, late_tag=LATE).send(*at((1, 1))).advance(13)
    assert driver.send(*at((2, 2))).restart().advance(14).stored_keys == 0
    driver.send(*at((3, 3)))
    assert driver.side("late") == [(("a", 3), 3)]


def test_a_late_element_may_be_the_first_of_its_window(ten):
    driver = ten(allowed_lateness_ms=5).advance(12).send(*at((1, 1)))
    assert driver.take() == [(("a", 0, 10, [1]), 9)]
    assert driver.advance(14).stored_keys == 0


def test_incremental_functions_update_late_results(ten):
    driver = ten(aggregate_function=Sum(), allowed_lateness_ms=5).send(*at((1, 1))).advance(9).send(*at((2, 2)))
    assert driver.take() == [(1, 9), (3, 9)]


def test_purging_windows_fire_late_elements_alone():
    driver = windows(TEN, trigger=PurgingTrigger.of(EventTimeTrigger.create()), allowed_lateness_ms=5)
    driver.send(*at((1, 1))).advance(9).send(*at((2, 2)))
    assert driver.results() == [("a", 0, 10, [1]), ("a", 0, 10, [2])]


def test_a_trigger_decides_what_late_elements_do():
    driver = windows(TEN, trigger=CountTrigger.of(2), allowed_lateness_ms=5).advance(9)
    assert driver.send(*at((1, 1))).results() == []
    assert driver.send(*at((2, 2))).results() == [("a", 0, 10, [1, 2])]


def test_processing_time_windows_know_no_lateness():
    driver = windows(TumblingProcessingTimeWindows.of(10), Contents(), allowed_lateness_ms=100)
    driver.tick(1).send_bare(("a", 1)).tick(10)
    assert driver.results() == [[1]]
    assert driver.stored_keys == 0


def test_a_result_that_is_the_accumulator_is_not_changed_by_later_elements():
    class Gather(Sum):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value[1])
            return accumulator

    driver = windows(TEN, aggregate_function=Gather(), allowed_lateness_ms=5).advance(9)
    driver.send(*at((1, 1), (2, 2)))
    assert driver.results() == [[1], [1, 2]]
