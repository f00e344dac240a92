import pytest
from window_helpers import Contents, Sum, Values, at, windows

from penstock.core.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)

TEN = TumblingEventTimeWindows.of(10)


def test_evicting_before_the_function():
    driver = windows(TEN, evictor=CountEvictor.of(2)).send(*at((1, 1), (2, 2), (3, 3))).advance(9)
    assert driver.results() == [("a", 0, 10, [2, 3])]


def test_evicting_after_the_function():
    driver = windows(TEN, evictor=CountEvictor.of(1, True), trigger=CountTrigger.of(2))
    driver.send(*at((1, 1), (2, 2), (3, 3), (4, 4)))
    assert driver.results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [2, 3, 4])]


def test_what_was_evicted_stays_evicted():
    driver = windows(TEN, evictor=CountEvictor.of(1), allowed_lateness_ms=5).send(*at((1, 1), (2, 2))).advance(9)
    assert driver.results() == [("a", 0, 10, [2])]
    assert driver.restart().send(*at((3, 3))).results() == [("a", 0, 10, [3])]


def test_evicting_by_time_uses_the_timestamps_of_the_elements():
    driver = windows(TEN, evictor=TimeEvictor.of(3)).send(*at((1, 9), (2, 6), (3, 7))).advance(9)
    assert driver.results() == [("a", 0, 10, [1, 3])]


def test_evicting_by_time_without_timestamps_keeps_everything():
    driver = windows(GlobalWindows.create(), Contents(), evictor=TimeEvictor.of(3), trigger=CountTrigger.of(2))
    assert driver.send_bare(("a", 1), ("a", 2)).results() == [[1, 2]]


def test_evicting_by_difference():
    evictor = DeltaEvictor.of(3, lambda element, last: abs(element[1] - last[1]))
    driver = windows(TEN, evictor=evictor).send(*at((9, 1), (4, 2), (5, 3))).advance(9)
    assert driver.results() == [("a", 0, 10, [4, 5])]


def test_reduce_and_aggregate_run_on_what_is_left():
    for functions, result in (
        ({"aggregate_function": Sum()}, 5),
        ({"reduce_function": lambda a, b: ("a", a[1] + b[1])}, ("a", 5)),
    ):
        driver = windows(TEN, evictor=CountEvictor.of(2), **functions).send(*at((1, 1), (2, 2), (3, 3))).advance(9)
        assert driver.results() == [result]


def test_an_aggregate_of_nothing_is_that_of_an_empty_accumulator_and_a_reduce_of_nothing_is_nothing():
    aggregate = windows(TEN, evictor=CountEvictor.of(0), aggregate_function=Sum()).send(*at((1, 1))).advance(9)
    assert aggregate.results() == [0]
    reduce = windows(TEN, evictor=CountEvictor.of(0), reduce_function=max).send(*at((1, 1))).advance(9)
    assert reduce.results() == []


class Spy(Evictor):
    """Drops odd values before and notes what it was told."""

    def __init__(self):
        self.calls = []

    def evict_before(self, elements, size, window, ctx):
        self.calls.append(("before", size, window.start, ctx.get_current_watermark()))
        elements[:] = [element for element in elements if element.get_value()[1] % 2 == 0]

    def evict_after(self, elements, size, window, ctx):
        self.calls.append(("after", size, ctx.get_current_processing_time(), elements[0].get_timestamp()))
        elements.clear()


def test_a_custom_evictor_is_told_the_size_before_each_call():
    evictor = Spy()
    driver = windows(TEN, evictor=evictor, allowed_lateness_ms=5).tick(77).send(*at((1, 1), (2, 2), (3, 3))).advance(9)
    assert driver.results() == [("a", 0, 10, [2])]
    assert evictor.calls == [("before", 3, 0, 9), ("after", 1, 77, 2)]
    assert driver.send(*at((4, 4))).results() == [("a", 0, 10, [4])]
    assert driver.advance(1000).stored_keys == 0


def test_sessions_with_an_evictor_keep_the_elements_of_all_parts():
    driver = windows(EventTimeSessionWindows.with_gap(10), Values(), evictor=CountEvictor.of(3))
    driver.send(*at((1, 0), (2, 1), (3, 16))).restart().send(*at((4, 8))).advance(1000)
    assert driver.results() == [("a", 0, 26, [2, 3, 4])]
    assert driver.stored_keys == 0


TWO_SECONDS = 2_000
K1, K2 = "first key", "second key"
# What fires for the elements (value, time) of one key, at every second one, if Flink runs the same windows.
AS_IN_FLINK = {
    ("count, after", K1): (CountEvictor.of(4, True), [(1, 20), (1, 0), (1, 999), (1, 10_999)], [2, 4]),
    ("count, after", K2): (
        CountEvictor.of(4, True),
        [(1, 3_000), (1, 3_999), (1, 1_998), (1, 1_999), (1, 1_000), (1, 1_000), (1, 1_000), (1, 1_000)],
        [2, 4, 6, 6],
    ),
    ("count, before", K2): (
        CountEvictor.of(4),
        [(1, 3_000), (1, 3_999), (1, 1_998), (1, 1_999), (1, 1_000), (1, 1_000)],
        [2, 4, 4],
    ),
    ("time, after", K1): (TimeEvictor.of(TWO_SECONDS, True), [(1, 20), (1, 0), (1, 999), (1, 10_999)], [2, 4]),
    ("time, after", K2): (
        TimeEvictor.of(TWO_SECONDS, True),
        [(1, 1_000), (1, 4_000), (1, 3_500), (1, 2_001), (1, 1_001), (1, 1_002)],
        [2, 3, 5],
    ),
    ("difference, before", K1): ("before", [(1, 20), (1, 0), (5, 999), (3, 10_999)], [2, 8]),
    ("difference, before", K2): (
        "before",
        [(1, 3_000), (4, 3_999), (5, 1_998), (6, 1_999), (1, 1_000), (10, 1_000)],
        [4, 11, 10],
    ),
    ("difference, after", K1): ("after", [(1, 20), (1, 0), (5, 999), (9, 10_999)], [2, 16]),
    ("difference, after", K2): (
        "after",
        [(1, 3_000), (4, 3_999), (5, 1_998), (6, 1_999), (1, 1_000), (10, 1_000)],
        [5, 15, 22],
    ),
}


@pytest.mark.parametrize("case", AS_IN_FLINK, ids=", ".join)
def test_sums_of_global_windows_are_those_of_flink(case):
    evictor, elements, sums = AS_IN_FLINK[case]
    if isinstance(evictor, str):
        evictor = DeltaEvictor.of(2, lambda element, last: last[1] - element[1], evictor == "after")
    driver = windows(GlobalWindows.create(), Contents(), evictor=evictor, trigger=CountTrigger.of(2))
    driver.send(*at(*elements))
    assert [sum(values) for values in driver.results()] == sums


def test_sums_by_time_of_tumbling_windows_are_those_of_flink():
    four_seconds = TumblingEventTimeWindows.of(4_000)
    for elements, found in (
        ([(1, 20), (1, 0), (1, 999), (1, 5_999), (1, 6_500)], [2, 2]),
        ([(1, 1_000), (1, 3_999), (1, 3_500), (1, 2_001), (1, 1_001), (1, 1_002)], [1, 3, 3]),
    ):
        driver = windows(four_seconds, Contents(), evictor=TimeEvictor.of(TWO_SECONDS), trigger=CountTrigger.of(2))
        driver.send(*at(*elements))
        assert [sum(values) for values in driver.results()] == found
