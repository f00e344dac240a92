"""Keys that Python cannot hash: PyFlink serializes keys, so anything can be one."""

import copy
import pickle
from collections import Counter

import pytest

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.datastream import CoMapFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.runtime.records.key_groups import stable_code
from penstock.runtime.records.unhashable_keys import hashable
from penstock.testing import KeyedOneInputOperatorHarness

KEYS = [[1], [2], ["a", [1]], {"a": 1}, {"b": [1]}, {1, 2}, bytearray(b"x"), (1, [2]), Row(k=[1])]


class Counting(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value, ctx):
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        assert ctx.get_current_key() == value
        yield repr(value), self.seen.value()

    def on_timer(self, timestamp, ctx):
        yield "timer", repr(ctx.get_current_key()), self.seen.value()


@pytest.mark.on_spark
def test_every_value_of_pythons_collections_is_a_key(env, run):
    keyed = env.from_collection(KEYS + copy.deepcopy(KEYS)).key_by(lambda key: key)
    results = Counter(run(keyed.process(Counting())))
    names = list(map(repr, KEYS))
    expected = [(name, count) for name in names for count in (1, 2)] + [("timer", name, 2) for name in names]
    assert results == Counter(expected)


class Join(CoMapFunction):
    def map1(self, value):
        return "left", value

    def map2(self, value):
        return "right", value


class Same(MapFunction):
    def map(self, value):
        return value


STAMPED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value[1])


BOTH = [([1], 1), ([1], 2)]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (lambda keyed: keyed.map(Same()), BOTH),
        (lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).sum(1), [([1], 3)]),
        (lambda keyed: keyed.count_window(2).sum(1), [([1], 3)]),
        (lambda keyed: keyed.connect(keyed).map(Join()), [(side, one) for side in ("left", "right") for one in BOTH]),
    ],
    ids=["map", "event-time window", "count window", "connected"],
)
def test_every_keyed_operator_takes_them(env, run, operator, expected):
    stamped = env.from_collection(BOTH).assign_timestamps_and_watermarks(STAMPED)
    results = run(operator(stamped.key_by(lambda value: value[0])))
    assert sorted(map(repr, results)) == sorted(map(repr, expected))


def test_rolling_aggregates_take_them(env, run):
    results = run(env.from_collection(BOTH).key_by(lambda value: value[0]).sum(1))
    assert results[-1] == ([1], 3)


def test_a_harness_takes_them():
    harness = KeyedOneInputOperatorHarness(KeyedProcessOperator(Counting(), lambda value: value))
    harness.process_element([1])
    harness.process_element([1])
    assert harness.output.take() == [(("[1]", 1), None), (("[1]", 2), None)]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_that_gets_a_hash_is_equal_to_what_it_was_and_survives_pickling(key):
    replaced = hashable(key)
    again = pickle.loads(pickle.dumps(replaced))
    assert (replaced, again, repr(replaced)) == (key, key, repr(key))
    assert hash(again) == hash(replaced)
    assert stable_code(again) == stable_code(hashable(copy.deepcopy(key)))


def test_the_order_of_a_dict_or_a_set_says_nothing():
    assert stable_code(hashable({"a": 1, "b": 2})) == stable_code(hashable({"b": 2, "a": 1}))
    assert stable_code(hashable({1, 2})) == stable_code(frozenset({2, 1}))


def test_none_after_the_key_is_pyflinks_default_key_type(env, run):
    keyed = env.from_collection([("a", 1)]).key_by(lambda value: value[0], None)
    assert keyed.get_key_type() is None
    assert run(keyed.sum(1)) == [("a", 1)]
