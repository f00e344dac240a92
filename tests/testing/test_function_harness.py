"""FunctionHarness: a single function with state, timers and clocks."""

from dataclasses import dataclass

import pytest

from penstock.core.state import ValueState
from penstock.datastream import FilterFunction, FlatMapFunction, KeyedProcessFunction, MapFunction, OutputTag
from penstock.testing import FunctionHarness

LARGE = OutputTag("large")


class Count(KeyedProcessFunction):
    n = ValueState(int, default=0)

    def process_element(self, value, ctx):
        self.n.update(self.n.value() + 1)
        if value[1] > 10:
            yield LARGE, value
        ctx.timer_service().register_processing_time_timer(5_000)
        yield value[0], self.n.value()

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()}: {self.n.value()}"
        self.n.clear()


@dataclass
class Seen:
    last: int = 0


def watch(record, seen: Seen, timers):
    seen.last = timers.set(after="10 s")


def silent(seen: Seen, timers):
    yield timers.key, seen.last


class Double(MapFunction):
    def map(self, value):
        return 2 * value


class Twice(FlatMapFunction):
    def flat_map(self, value):
        return [value, value]


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2


@pytest.fixture
def harness():
    made = []
    yield lambda *arguments, **options: made.append(FunctionHarness(*arguments, **options)) or made[-1]
    for each in made:
        each.close()


def test_a_keyed_function_has_state_timers_and_side_outputs(harness):
    count = harness(Count(), key_by=0).receive(("ann", 1), ("ann", 20), ("bob", 1))
    assert count.results() == [("ann", 1), ("ann", 2), ("bob", 1)]
    assert count.side_output(LARGE) == [("ann", 20)]
    assert (count.timers, count.keys_with_state) == (2, 2)
    assert count.wait("4 s").results() == []
    assert sorted(count.wait("1 s").results()) == ["ann: 2", "bob: 1"]
    assert count.timers == 0


def test_a_plain_function_with_state_and_timers(harness):
    watched = harness(watch, key_by=lambda record: record, on_timer=silent).receive("ann", at="5 s")
    assert watched.at("14 s").results() == []
    assert watched.at("15 s").results() == [("ann", 15_000)]


@pytest.mark.parametrize(
    ("function", "results"), [(Double(), [2, 4, 6]), (Twice(), [1, 1, 2, 2, 3, 3]), (Odd(), [1, 3])]
)
@pytest.mark.parametrize("key_by", [None, lambda number: number])
def test_functions_of_other_kinds(harness, function, results, key_by):
    assert harness(function, key_by=key_by).receive(1, 2, 3).results() == results


def test_a_restarted_function_has_its_state(harness):
    class Louder(Count):
        def process_element(self, value, ctx):
            for result in super().process_element(value, ctx):
                yield "again", *result

    count = FunctionHarness(Count(), key_by=0).receive(("ann", 1))
    again = count.restarted().receive(("ann", 1))
    assert again.results() == [("ann", 2)]
    assert again.restarted(Louder()).receive(("ann", 1)).results() == [("again", "ann", 3)]
