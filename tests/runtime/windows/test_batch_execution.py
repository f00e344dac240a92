"""Batch jobs hand over key after key, each with time from its beginning to its end."""

import pytest
from window_driver import WindowDriver
from window_helpers import Sum, key_of
from window_programs import EveryIntervalTrigger

from penstock.core.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.runtime.task.sorted_input import SortedKeyedInput
from penstock.runtime.windows.builder import build_window_operator

RECORDS = [(("b", 1), 15), (("a", 2), 25), (("b", 4), 3), (("a", 8), 1)]


@pytest.mark.parametrize(
    ("assigner", "trigger", "results"),
    [
        (TumblingEventTimeWindows.of(10), None, [(4, 9), (1, 19), (8, 9), (2, 29)]),
        (SlidingEventTimeWindows.of(20, 10), None, [(4, 9), (5, 19), (1, 29), (8, 9), (8, 19), (2, 29), (2, 39)]),
        (EventTimeSessionWindows.with_gap(15), None, [(5, 29), (8, 15), (2, 39)]),
        (TumblingEventTimeWindows.of(100), EveryIntervalTrigger(10), [(5, 99), (5, 99), (10, 99), (10, 99)]),
        (TumblingProcessingTimeWindows.of(10), None, [(5, 9), (10, 9)]),
    ],
)
def test_every_key_gets_all_its_windows(assigner, trigger, results):
    operator = build_window_operator(assigner, key_selector=key_of, aggregate_function=Sum(), trigger=trigger)
    driver = WindowDriver(operator)
    batch = SortedKeyedInput(driver.operator)
    batch.add(0, [value for value, _ in RECORDS], [stamp for _, stamp in RECORDS])
    batch.run()
    driver.advance(2**63 - 1)
    assert driver.take() == results
    assert driver.dropped == 0
    assert driver.stored_keys == 0


def test_interval_joins():
    driver = WindowDriver(IntervalJoinOperator(lambda a, b, ctx: [(a[1], b[1])], key_of, key_of, -5, 5))
    batch = SortedKeyedInput(driver.operator)
    batch.add(0, [("a", 1), ("b", 2)], [10, 10])
    batch.add(1, [("a", 3), ("b", 4), ("a", 5)], [15, 4, 5])
    batch.run()
    assert sorted(driver.results()) == [(1, 3), (1, 5)]
    assert driver.stored_keys == 0
