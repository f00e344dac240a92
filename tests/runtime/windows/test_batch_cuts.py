"""Results do not depend on how the input is cut into batches, nor on restarts between them."""

import random

import pytest
from window_driver import WindowDriver
from window_helpers import Sum, Values, key_of
from window_programs import EveryIntervalTrigger

from penstock.core.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.runtime.windows.builder import build_window_join_operator, build_window_operator, count_window_parts


def stream(seed=7, length=600):
    """Records out of order, with a watermark behind each tenth."""
    rng = random.Random(seed)
    items = []
    for position in range(length):
        timestamp = position + rng.randrange(-30, 30)
        items.append(((f"k{rng.randrange(5)}", rng.random()), timestamp))
        if position % 10 == 9:
            items.append(position - 20)
    return [*items, 2**63 - 1]


def count_window(size, slide=0):
    assigner, trigger, evictor = count_window_parts(size, slide)
    return {"assigner": assigner, "trigger": trigger, "evictor": evictor}


class Raw(Values):
    def process(self, key, context, elements):
        yield key, [value for _, value in elements]


PROGRAMS = {
    "tumbling": {"assigner": TumblingEventTimeWindows.of(20), "aggregate_function": Sum(), "allowed_lateness_ms": 10},
    "tumbling lists": {"assigner": TumblingEventTimeWindows.of(20), "window_function": Values()},
    "sliding": {"assigner": SlidingEventTimeWindows.of(50, 5), "aggregate_function": Sum()},
    "sliding late": {
        "assigner": SlidingEventTimeWindows.of(50, 7),
        "aggregate_function": Sum(),
        "allowed_lateness_ms": 9,
    },
    "sliding lists": {"assigner": SlidingEventTimeWindows.of(50, 15), "window_function": Values()},
    "sessions": {
        "assigner": EventTimeSessionWindows.with_gap(4),
        "window_function": Values(),
        "allowed_lateness_ms": 5,
    },
    "sessions with trigger": {
        "assigner": EventTimeSessionWindows.with_gap(4),
        "window_function": Values(),
        "trigger": ContinuousEventTimeTrigger.of(7),
    },
    "counted": {"window_function": Raw(), **count_window(7)},
    "counted sliding": {"window_function": Raw(), **count_window(7, 3)},
    "early": {
        "assigner": TumblingEventTimeWindows.of(40),
        "window_function": Values(),
        "trigger": EveryIntervalTrigger(9),
    },
    "evicted": {
        "assigner": TumblingEventTimeWindows.of(40),
        "window_function": Values(),
        "trigger": CountTrigger.of(3),
        "evictor": CountEvictor.of(4),
    },
}


def run(operator, batches, *, two_inputs=False, restart=True):
    driver = WindowDriver(operator, page_bytes=500)
    items = stream()
    size = -(-len(items) // batches)
    for start in range(0, len(items), size):
        run_batch(driver, items[start : start + size], two_inputs=two_inputs)
        driver.end_batch()
        if restart:
            driver.restart()
    assert driver.output.records
    return sorted(driver.take(), key=repr), driver.dropped


def run_batch(driver, items, *, two_inputs):
    pending = []

    def flush():
        if two_inputs:  # which input a record is for depends on the record alone
            for record in pending:
                (driver.send if record[1] % 2 else driver.send2)(record)
        elif pending:
            driver.send(*pending)
        pending.clear()

    for item in items:
        if isinstance(item, int):
            flush()
            driver.advance(item)
        else:
            pending.append(item)
    flush()


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_cut_into_one_seven_and_a_hundred_batches(name):
    program = dict(PROGRAMS[name])
    operator = build_window_operator(program.pop("assigner"), key_selector=key_of, **program)
    whole = run(operator, 1, restart=False)
    assert run(operator, 7) == whole
    assert run(operator, 100) == whole


def pairs(left, right, context):
    yield left[0], left[1], right[1], context.get_timestamp()


@pytest.mark.parametrize(
    "operator",
    [
        build_window_join_operator(
            TumblingEventTimeWindows.of(20), first_key_selector=key_of, second_key_selector=key_of, function=max
        ),
        build_window_join_operator(
            SlidingEventTimeWindows.of(20, 5), first_key_selector=key_of, second_key_selector=key_of, function=max
        ),
        IntervalJoinOperator(pairs, key_of, key_of, -10, 5),
    ],
    ids=["window join", "sliding join", "interval join"],
)
def test_joins_cut_into_one_seven_and_a_hundred_batches(operator):
    whole = run(operator, 1, two_inputs=True, restart=False)
    assert run(operator, 7, two_inputs=True) == whole
    assert run(operator, 100, two_inputs=True) == whole
