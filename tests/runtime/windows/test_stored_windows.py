"""Windows in stored state: pages that leave memory, definitions that change between runs."""

import pytest
from window_driver import WindowDriver
from window_helpers import Contents, Sum, at, key_of, windows

from penstock.common.errors import InvalidProgramError
from penstock.core.functions import CheckpointedFunction, ProcessWindowFunction
from penstock.core.state import ListStateDescriptor
from penstock.core.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.runtime.windows.builder import build_window_operator

TEN = TumblingEventTimeWindows.of(10)
ASSIGNERS = [TEN, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows.with_gap(9)]


def operator(assigner=TEN, **definition):
    if not {"window_function", "reduce_function"} & set(definition):
        definition["aggregate_function"] = Sum()
    return build_window_operator(assigner, key_selector=key_of, **definition)


@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_timers_of_pages_that_left_memory_are_kept_in_the_pages_only(assigner):
    driver = WindowDriver(operator(assigner), page_bytes=1000, memory_budget=1)
    driver.send(*[((f"k{number}", 1), 1) for number in range(5000)])
    driver.commit()
    assert len(driver.backend.entries) < 100
    assert driver.operator.timers.index.size < 100
    assert len(driver.advance(9).results()) >= 5000
    assert driver.advance(1000).stored_keys == 0


def test_only_pages_that_are_due_are_read():
    driver = WindowDriver(operator(), page_bytes=1000, memory_budget=1)
    driver.send(*[((f"k{number}", 1), 1 if number < 3 else 11) for number in range(5000)])
    driver.commit()
    assert len(driver.advance(9).results()) == 3
    assert len(driver.backend.pages) < driver.backend.directory.page_count / 2


@pytest.mark.parametrize(
    "changed",
    [
        operator(TumblingEventTimeWindows.of(20)),
        operator(TumblingEventTimeWindows.of(10, 5)),
        operator(SlidingEventTimeWindows.of(10, 5)),
        operator(EventTimeSessionWindows.with_gap(10)),
        operator(window_function=Contents()),
        operator(reduce_function=max),
    ],
)
def test_windows_that_mean_something_else_now_are_refused(changed):
    driver = WindowDriver(operator()).send(*at((1, 1)))
    with pytest.raises(InvalidProgramError, match="open windows cannot be converted"):
        driver.restart(changed)


@pytest.mark.parametrize("assigner", [TEN, EventTimeSessionWindows.with_gap(9)])
@pytest.mark.parametrize(("before", "after"), [(20, 5), (5, 20), (5, 0)])
def test_the_allowed_lateness_may_change(assigner, before, after):
    driver = WindowDriver(operator(assigner, allowed_lateness_ms=before)).send(*at((1, 1))).advance(9)
    assert driver.results() == [1]
    driver.restart(operator(assigner, allowed_lateness_ms=after)).advance(100)
    assert driver.results() == []
    assert driver.stored_keys == 0


def test_a_gap_may_change():
    driver = WindowDriver(operator(EventTimeSessionWindows.with_gap(5))).send(*at((1, 0)))
    driver.restart(operator(EventTimeSessionWindows.with_gap(50))).send(*at((2, 4), (4, 60))).advance(1000)
    assert driver.results() == [3, 4]


def test_checkpointed_window_functions_get_their_state_back():
    class Total(ProcessWindowFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("total"))
            self.total = sum(self.state.get())

        def snapshot_state(self, context):
            self.state.update([self.total])

        def process(self, key, context, elements):
            self.total += len(elements)
            yield self.total

    driver = windows(TEN, Total()).send(*at((1, 1))).advance(9)
    driver.operator.snapshot_state(1)
    assert driver.results() == [1]
    assert list(driver.operator.definition.function.function.state.get()) == [1]
