"""Windows with many elements: a batch writes the elements that came with it, and no window is lost or changed."""

import pytest
from tests.counting_store import CountingStore
from window_driver import WindowDriver
from window_helpers import Contents, key_of

from penstock.core.functions import CoGroupFunction, ProcessWindowFunction
from penstock.core.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.windows.builder import build_window_join_operator, build_window_operator

HOUR = 3_600_000
BATCHES = 40
EACH = 150


class Types(ProcessWindowFunction):
    """What a function gets is a list, and its elements are its own."""

    def process(self, key, context, elements):
        yield type(elements), [element[1] for element in elements]


class SameAsDefault(EventTimeTrigger):
    """Unknown to the builder, so that the general operator is used."""


class Both(CoGroupFunction):
    def co_group(self, first, second):
        yield [value for _, value in first], [value for _, value in second]


def keyed(assigner, **definition):
    definition.setdefault("window_function", Contents())
    return build_window_operator(assigner, key_selector=key_of, **definition)


def count_windows():
    everything = BATCHES * EACH
    return keyed(GlobalWindows.create(), trigger=PurgingTrigger.of(CountTrigger.of(everything)))


OPERATORS = {
    "tumbling": lambda: keyed(TumblingEventTimeWindows.of(HOUR)),
    "general": lambda: keyed(TumblingEventTimeWindows.of(HOUR), trigger=SameAsDefault()),
    "session": lambda: keyed(EventTimeSessionWindows.with_gap(HOUR)),
    "merging": lambda: keyed(EventTimeSessionWindows.with_gap(HOUR), trigger=SameAsDefault()),
    "evicting": lambda: keyed(TumblingEventTimeWindows.of(HOUR), evictor=CountEvictor.of(10**9)),
    "sliding": lambda: keyed(SlidingEventTimeWindows.of(HOUR, HOUR // 2)),
    "count": count_windows,
}


class CountingDriver(WindowDriver):
    """Notes what is written and what is there."""

    def __init__(self, operator):
        super().__init__(operator, page_bytes=300, store=CountingStore())

    @property
    def written(self):
        return self.store.written

    @property
    def held(self):
        return sum(map(len, self.store.blobs.values()))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("name", list(OPERATORS))
def test_a_batch_writes_what_came_with_it(name, restarts):
    driver = CountingDriver(OPERATORS[name]())
    numbers = iter(range(BATCHES * EACH))
    for _ in range(BATCHES):
        driver.send(*[(("a", next(numbers)), 1_000) for _ in range(EACH)])
        driver.restart() if restarts else driver.commit()
    if name != "count":
        assert driver.held > 20_000
        assert driver.written < 6 * driver.held  # written again and again, it would be twenty times as much
    results = [values for values in driver.advance(2 * HOUR).results() if values]
    assert results[0] == list(range(BATCHES * EACH))
    driver.commit()
    assert driver.held < 1_000


@pytest.mark.parametrize("lateness", [0, HOUR])
def test_a_co_group_of_many_elements_writes_what_came(lateness):
    operator = build_window_join_operator(
        TumblingEventTimeWindows.of(HOUR),
        first_key_selector=key_of,
        second_key_selector=key_of,
        function=Both(),
        co_group=True,
        allowed_lateness_ms=lateness,
    )
    driver = CountingDriver(operator)
    for batch in range(BATCHES):
        driver.send(*[(("a", batch * EACH + number), 1_000) for number in range(EACH)])
        driver.send2(*[(("a", -number), 1_000) for number in range(EACH)])
        driver.restart()
    assert driver.written < 6 * driver.held
    ((first, second),) = driver.advance(HOUR).results()
    assert (first, len(second)) == (list(range(BATCHES * EACH)), BATCHES * EACH)
    if lateness:
        driver.restart().send((("a", "late"), 2_000))
        ((first, second),) = driver.results()
        assert (first[-1], len(second)) == ("late", BATCHES * EACH)
    driver.advance(3 * HOUR).commit()
    assert driver.held < 1_000


@pytest.mark.parametrize("lateness", [0, HOUR])
def test_functions_get_plain_lists(lateness):
    driver = WindowDriver(
        keyed(TumblingEventTimeWindows.of(HOUR), window_function=Types(), allowed_lateness_ms=lateness), page_bytes=100
    )
    driver.send(*[(("a", number), 1_000) for number in range(5_000)]).restart().advance(HOUR)
    assert driver.results() == [(list, list(range(5_000)))]
