import pytest

from penstock.common import Time
from penstock.common.errors import InvalidProgramError
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules")


class Tagged(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class Repeated(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value, value]

    def flat_map2(self, value):
        return None


class Sides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "first", value

    def process_element2(self, value, ctx):
        yield "second", value


class KeyedSides(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element1(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()

    process_element2 = process_element1


class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)
        yield "rule", value


class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)[value] = True


def test_connected_streams_may_have_different_types(running_env, collected):
    numbers, texts = running_env.from_elements(1, 2), running_env.from_elements("a")
    assert sorted(collected(numbers.connect(texts).map(Tagged())), key=str) == [(1, 1), (1, 2), (2, "a")]
    assert sorted(collected(numbers.connect(texts).flat_map(Repeated()))) == [1, 1, 2, 2]
    assert sorted(collected(numbers.connect(texts).process(Sides())), key=str) == [
        ("first", 1),
        ("first", 2),
        ("second", "a"),
    ]


def test_keyed_connected_streams_share_state_of_a_key(running_env, collected):
    one, two = running_env.from_elements(("a", 1), ("b", 1)), running_env.from_elements("a", "a")
    before = one.key_by(0).connect(two.key_by(lambda value: value)).process(KeyedSides())
    after = one.connect(two).key_by(0, lambda value: value).process(KeyedSides())
    for stream in (before, after):
        assert sorted(collected(stream)) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_map_on_keyed_connected_streams_is_keyed(env):
    one, two = env.from_elements("a"), env.from_elements("b")
    connected = one.connect(two).key_by(lambda value: value, lambda value: value)
    assert connected.map(Tagged()).get_transformation().operator.keyed
    assert connected.flat_map(Repeated()).get_transformation().operator.keyed
    assert not one.connect(two).map(Tagged()).get_transformation().operator.keyed


@pytest.mark.parametrize(
    "call",
    [
        lambda one, two: one.connect(two).map(lambda value: value),
        lambda one, two: one.connect(two).flat_map(Tagged()),
        lambda one, two: one.connect(two).process(Tagged()),
        lambda one, two: one.connect(two).process(KeyedSides()),
        lambda one, two: one.key_by(0).connect(two).process(KeyedSides()),
        lambda one, two: one.connect(two.broadcast(RULES)).process(KeyedRules()),
        lambda one, two: one.key_by(0).connect(two.broadcast(RULES)).process(Rules()),
        lambda one, two: one.connect(two.broadcast(RULES)).process(Sides()),
        lambda one, two: one.broadcast(RULES, RULES),
    ],
)
def test_wrong_functions_and_keys_are_refused(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements("a"), env.from_elements("b"))


def test_a_broadcast_stream_reaches_every_subtask(running_env, collected):
    rules = running_env.from_elements("r").broadcast(RULES)
    stream = running_env.from_elements(1, 2).connect(rules).process(Rules())
    assert sorted(collected(stream), key=str) == [("rule", "r"), ("rule", "r"), 1, 2]
    keyed = running_env.from_elements("a", "b").key_by(lambda value: value).connect(rules).process(KeyedRules())
    assert sorted(collected(keyed)) == [("a", "a"), ("b", "b")]


class Doubled(AsyncFunction):
    async def async_invoke(self, value):
        return [value * 2]


def test_async_functions_run_in_a_job(running_env, collected):
    stream = running_env.from_sequence(1, 3)
    assert sorted(collected(AsyncDataStream.ordered_wait(stream, Doubled(), Time.seconds(10)))) == [2, 4, 6]
    assert sorted(collected(AsyncDataStream.unordered_wait(stream, Doubled(), Time.seconds(10)))) == [2, 4, 6]


async def halved(value):
    return value / 2


def test_a_plain_async_function_gives_one_result_for_each_record(running_env, collected):
    stream = running_env.from_sequence(1, 3)
    assert collected(AsyncDataStream.ordered_wait(stream, halved, "10 s")) == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    "arguments",
    [(lambda value: value, Time.seconds(1), 1), (Doubled(), Time.seconds(-1), 1), (Doubled(), Time.seconds(1), 0)],
)
def test_wrong_asynchronous_calls_are_refused(env, arguments):
    with pytest.raises(InvalidProgramError):
        AsyncDataStream.ordered_wait(env.from_elements(1), *arguments)
