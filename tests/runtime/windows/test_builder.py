import pickle

import cloudpickle
import pytest
from window_helpers import LATE, Contents, Sum, Values, key_of
from window_programs import EveryIntervalTrigger

from penstock.common.errors import InvalidProgramError
from penstock.core.functions import KeySelector, KeySelectorFunctionWrapper, MapFunction, ProcessAllWindowFunction
from penstock.core.window import (
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.windows.builder import build_window_operator
from penstock.runtime.windows.contents import can_return_something
from penstock.runtime.windows.evicting import EvictingMergingWindowOperator, EvictingWindowOperator
from penstock.runtime.windows.merging import MergingWindowOperator
from penstock.runtime.windows.session import SessionWindowOperator
from penstock.runtime.windows.sliding import SlidingWindowOperator
from penstock.runtime.windows.tumbling import TumblingWindowOperator
from penstock.runtime.windows.window_operator import WindowOperator

TEN = TumblingEventTimeWindows.of(10)
SESSION = EventTimeSessionWindows.with_gap(10)
SLIDING = SlidingEventTimeWindows.of(10, 5)


def build(assigner=TEN, **definition):
    definition.setdefault("aggregate_function", Sum())
    if not definition.get("all_window"):
        definition.setdefault("key_selector", key_of)
    return build_window_operator(assigner, **definition)


class AllFunction(ProcessAllWindowFunction):
    def process(self, context, elements):
        return []


class Mapper(MapFunction):
    def map(self, value):
        return value


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"assigner": "every minute"}, "needs a WindowAssigner"),
        ({"assigner": SESSION, "trigger": DeltaTrigger.of(1, max)}, "does not support merging"),
        ({"assigner": SESSION, "trigger": NeverTrigger()}, "does not support merging"),
        ({"assigner": SESSION, "trigger": PurgingTrigger.of(EveryIntervalTrigger(1))}, "does not support merging"),
        ({"trigger": "count"}, "needs a Trigger"),
        ({"evictor": 5}, "needs an Evictor"),
        ({"allowed_lateness_ms": -1}, "allowed lateness"),
        ({"allowed_lateness_ms": 0.5}, "allowed lateness"),
        ({"late_tag": "late"}, "needs an OutputTag"),
        ({"reduce_function": max}, "not both"),
        ({"aggregate_function": sum}, "needs an AggregateFunction"),
        ({"aggregate_function": None}, "needs a function"),
        ({"aggregate_function": None, "reduce_function": Mapper()}, "needs a ReduceFunction"),
        ({"aggregate_function": None, "reduce_function": 7}, "needs a ReduceFunction"),
        ({"window_function": AllFunction()}, "ProcessWindowFunction or WindowFunction"),
        ({"window_function": len}, "ProcessWindowFunction or WindowFunction"),
        ({"window_function": Values(), "all_window": True}, "ProcessAllWindowFunction or AllWindowFunction"),
        ({"key_selector": 3}, "key selector"),
        ({"key_selector": None}, "key selector"),
    ],
)
def test_wrong_definitions_are_refused_when_they_are_made(definition, message):
    with pytest.raises(InvalidProgramError, match=message):
        build(**definition)


@pytest.mark.parametrize(
    ("definition", "operator"),
    [
        ({"assigner": TEN}, TumblingWindowOperator),
        ({"assigner": TEN, "trigger": EventTimeTrigger.create()}, TumblingWindowOperator),
        ({"assigner": TEN, "trigger": CountTrigger.of(2)}, WindowOperator),
        ({"assigner": TEN, "evictor": CountEvictor.of(2)}, EvictingWindowOperator),
        ({"assigner": SlidingEventTimeWindows.of(10, 10)}, TumblingWindowOperator),
        ({"assigner": SLIDING}, SlidingWindowOperator),
        ({"assigner": SlidingEventTimeWindows.of(10, 15)}, WindowOperator),
        ({"assigner": SESSION}, SessionWindowOperator),
        ({"assigner": SESSION, "trigger": CountTrigger.of(2)}, MergingWindowOperator),
        ({"assigner": SESSION, "evictor": CountEvictor.of(2)}, EvictingMergingWindowOperator),
        ({"assigner": GlobalWindows.create()}, WindowOperator),
        ({"assigner": TEN, "all_window": True}, TumblingWindowOperator),
    ],
)
def test_the_quickest_operator_that_fits_is_chosen(definition, operator):
    assert type(build(**definition)) is operator


def test_a_subclass_of_an_assigner_may_do_anything_and_gets_the_general_operator():
    class Odd(TumblingEventTimeWindows):
        pass

    assert type(build(Odd(10))) is WindowOperator


def test_key_selectors_of_all_kinds():
    class First(KeySelector):
        def get_key(self, value):
            return value[0]

    for selector in (key_of, First(), KeySelectorFunctionWrapper(key_of)):
        assert build(key_selector=selector).key_selector(("a", 1)) == "a"
    assert build(all_window=True).key_selector("anything") == build(all_window=True).key_selector(7)


@pytest.mark.parametrize("assigner", [TEN, SLIDING, SESSION, GlobalWindows.create()])
def test_operators_can_be_sent_to_workers(assigner):
    operator = build(assigner, late_tag=LATE, window_function=Contents())
    again = pickle.loads(cloudpickle.dumps(operator))
    assert type(again) is type(operator)


def test_what_counts_as_an_implemented_merge():
    def passes(a, b):
        pass

    def documented(a, b):
        """Not needed here."""

    def raises(a, b):
        raise NotImplementedError("merge")

    def picks(a, b):
        if a:
            return a
        return b

    assert not any(map(can_return_something, (passes, documented, raises)))
    assert all(map(can_return_something, (picks, max, lambda a, b: a | b)))
