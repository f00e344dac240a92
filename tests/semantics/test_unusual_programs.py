"""Programs that are legal but rare: odd values, shapes, functions, timers and failures."""

import enum
import functools
import sys
import uuid
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from support import BY_SECOND_FIELD

from penstock.common import Row, Time
from penstock.common.errors import (
    InvalidProgramError,
    JobExecutionError,
    KeySelectorError,
    SerializationError,
    UserFunctionError,
)
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

ONE_WAY = pytest.mark.variants(executors=["warm"], parallelism=[1], modes=["STREAMING"])
TAG = OutputTag("side")


class CountKeys(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


# -- values ----------------------------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")  # noqa: PYI024 - a plain one is what is to be tested


class Named(NamedTuple):
    a: int
    b: str = "b"


@dataclass
class Reading:
    sensor: int
    values: list = field(default_factory=list)


class Switch(enum.Flag):
    LEFT = 1
    RIGHT = 2


class Number(enum.IntEnum):
    ONE = 1


class Alike:
    """All of them have one hash, but they are not equal."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return isinstance(other, Alike) and self.number == other.number


KEYS = [
    *(date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), timedelta(1)),
    *(uuid.UUID(int=1), Fraction(1, 3), complex(1, 2), range(3), b"bytes", dict, "ü", "日本", "\0"),
    *(Point(1, 2), Named(5), Switch.LEFT | Switch.RIGHT, Alike(1), Alike(2), Decimal("0.1")),
]


@pytest.mark.on_spark
def test_every_hashable_value_is_a_key(env, run):
    stream = env.from_collection(list(enumerate(KEYS)) * 2).key_by(lambda record: record[1]).process(CountKeys())
    assert Counter(run(stream)) == {(key, count): 1 for key in KEYS for count in (1, 2)}


def test_equal_keys_of_different_types_are_one_key(env, run):
    stream = env.from_collection([1, 1.0, True, Number.ONE, Decimal(1), Fraction(1)]).key_by(lambda value: value)
    assert [count for _, count in run(stream.process(CountKeys()))] == [1, 2, 3, 4, 5, 6]


def test_fields_of_every_kind_of_record_can_be_summed_and_the_rest_stays_from_the_first(env, run, variant):
    results = run(
        tuples=env.from_collection([("a", 1, "x"), ("a", 2, "y")]).key_by(0).sum(1),
        lists=env.from_collection([["a", 1], ["a", 2]]).key_by(0).sum(1),
        dicts=env.from_collection([{"k": 1, "v": 2}, {"k": 1, "v": 3}]).key_by("k").sum("v"),
        rows=env.from_collection([Row(k=1, v=2), Row(k=1, v=3)]).key_by("k").sum("v"),
        named=env.from_collection([Point(1, 2), Point(1, 3)]).key_by("x").sum("y"),
        objects=env.from_collection([Reading(1, [0]), Reading(2, [1])]).key_by(lambda r: 0).sum("sensor"),
        decimals=env.from_collection([("a", Decimal("1.1")), ("a", 2)]).key_by(0).sum(1),
        texts=env.from_collection([("a", "x"), ("a", "y")]).key_by(0).sum(1),
    )
    firsts = {} if variant.is_batch else {"tuples": [("a", 1, "x")]}
    assert results["tuples"] == [*firsts.get("tuples", []), ("a", 3, "x")]
    last = {name: records[-1] for name, records in results.items()}
    assert (last["lists"], last["dicts"], last["rows"]) == (["a", 3], {"k": 1, "v": 5}, Row(k=1, v=5))
    assert (last["named"], last["objects"]) == (Point(1, 5), Reading(3, [0]))
    assert (last["decimals"], last["texts"]) == (("a", Decimal("3.1")), ("a", "xy"))


@pytest.mark.variants(executors=["warm", "cold"])
def test_records_may_be_large_cyclic_or_functions(env, run):
    circle = [1]
    circle.append(circle)
    results = run(
        large=env.from_collection(["x" * 3_000_000]).rebalance().map(lambda text: text + "y"),
        cyclic=env.from_collection([circle]).rebalance().map(lambda one: one[1][1][0]),
        functions=env.from_collection([lambda n: n + 1]).rebalance().map(lambda function: function(2)),
        lazily=env.from_collection(n for n in range(3)).filter(lambda n: n),
    )
    assert len(results["large"][0]) == 3_000_001
    assert (results["cyclic"], results["functions"], sorted(results["lazily"])) == ([1], [3], [1, 2])


# -- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.variants(executors=["warm"], parallelism=[1], modes=["STREAMING"])
def test_six_hundred_operators_one_behind_the_other(env, run):
    stream = env.from_collection([0])
    for _ in range(600):
        stream = stream.map(lambda n: n + 1)
    assert run(stream) == [600]


@pytest.mark.variants(executors=["one"], parallelism=[4])
def test_thirty_exchanges_one_behind_the_other(env, run):
    stream = env.from_collection([0, 0])
    for _ in range(30):
        stream = stream.rebalance().map(lambda n: n + 1)
    assert run(stream) == [30, 30]


def test_unions_of_unions_and_a_wide_fan_out(env, run):
    stream = nested = env.from_collection([0])
    for number in range(1, 20):
        nested = nested.union(env.from_collection([number]))
    fans = [stream.map(lambda n, add=add: n + add) for add in range(50)]
    results = run(nested=nested, fans=fans[0].union(*fans[1:]))
    assert sorted(results["nested"]) == list(range(20))
    assert sorted(results["fans"]) == list(range(50))


# -- functions -------------------------------------------------------------------------------------------------------


class WithSlots(MapFunction):
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def map(self, value):
        return value + self.number


class Called:
    def __init__(self):
        self.calls = 0

    def __call__(self, value):
        return value * 2

    def method(self, value):
        self.calls += 1
        return value + 1


def test_anything_that_can_be_called_is_a_function(env, run):
    numbers, seen, called, slots = env.from_collection([1, 2]), [], Called(), WithSlots(3)
    results = run(
        partial=numbers.map(functools.partial(pow, 2)),
        builtin=numbers.map(str).map(int).map(abs),
        object=numbers.map(called),
        method=numbers.map(called.method),
        closure=numbers.map(lambda n: seen.append(n) or n),
        slots=numbers.map(slots).map(slots),  # one object twice is two functions
        text=numbers.map(str).flat_map(lambda text: text * 2),
        keys=numbers.flat_map(lambda n: {n: "value"}),
    )
    assert {name: sorted(records) for name, records in results.items()} == {
        "partial": [2, 4],
        "builtin": [1, 2],
        "object": [2, 4],
        "method": [2, 3],
        "closure": [1, 2],
        "slots": [7, 8],
        "text": ["1", "1", "2", "2"],
        "keys": [1, 2],
    }
    assert (seen, called.calls) == ([], 0)  # what runs is a copy of what was written


class ReturnsList(ProcessFunction):
    def process_element(self, value, ctx):
        return [value, ("not a tag", value), (TAG, value), (TAG,), (OutputTag("unused"), value)]


def test_only_a_pair_of_tag_and_value_goes_to_a_side_output(env, run):
    processed = env.from_collection([1]).process(ReturnsList())
    results = run(main=processed, side=processed.get_side_output(OutputTag("side")))
    assert results == {"main": [1, ("not a tag", 1), (TAG,)], "side": [1]}


class Window(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.output(TAG, key)
        yield TAG, len(list(elements))
        yield key, context.window().start


def test_windows_before_the_epoch_with_side_outputs(env, run):
    records = [("a", -11), ("a", -10), ("a", -1), ("b", 0)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    windows = stream.key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Window())
    results = run(main=windows, side=windows.get_side_output(TAG))
    assert sorted(results["main"]) == [("a", -20), ("a", -10), ("b", 0)]
    assert Counter(results["side"]) == Counter(["a", 1, "a", 2, "b", 1])


# -- state and timers ------------------------------------------------------------------------------------------------


class WithMutableDefault(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", default_value=[]))

    def map(self, value):
        seen = self.seen.value()
        seen.append(value[1])
        self.seen.update(seen)
        return value[0], tuple(seen)


def test_keys_do_not_share_a_default_value(env, run):
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)]).key_by(0).map(WithMutableDefault())
    assert sorted(run(stream)) == [("a", (1,)), ("a", (1, 3)), ("b", (2,)), ("b", (2, 4))]


class ChangesWhatItIterates(KeyedProcessFunction):
    def open(self, runtime_context):
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))

    def process_element(self, value, ctx):
        for number in range(3):
            self.map.put(number, number)
            self.list.add(number)
        for key in self.map.keys():  # noqa: SIM118 - MapState is not a dict
            self.map.remove(key)
        for number in self.list.get():
            self.list.add(number + 10)
        yield tuple(self.list.get()), self.map.is_empty()
        for _ in self.list.get():
            self.list.clear()
        yield tuple(self.list.get())


def test_state_may_be_changed_while_it_is_iterated(env, run):
    stream = env.from_collection([1]).key_by(lambda value: value).process(ChangesWhatItIterates())
    assert run(stream) == [((0, 1, 2, 10, 11, 12), True), ()]


class Timers(KeyedProcessFunction):
    def __init__(self, *times):
        self.times = times

    def process_element(self, value, ctx):
        for time in self.times:
            ctx.timer_service().register_event_time_timer(time)

    def on_timer(self, timestamp, ctx):
        yield timestamp


class Whole:
    """An integer class of another library, as numpy has them."""

    def __index__(self):
        return 5


def test_timers_at_the_ends_of_time_fire_in_order(env, run):
    keyed = env.from_collection([1]).key_by(lambda value: value)
    stream = keyed.process(Timers(2**63 - 1, 0, -1, -(2**63), 5, Whole(), 7.0, True))
    assert run(stream) == [-(2**63), -1, 0, 1, 5, 7, 2**63 - 1]


@ONE_WAY
@pytest.mark.parametrize(
    ("time", "message"),
    [
        (2**63, "ValueError: a timer needs a timestamp that fits into 64 bits"),
        (1.5, "TypeError: a timer needs a timestamp in milliseconds .an int., got 1.5"),
        (None, "TypeError: a timer needs a timestamp in milliseconds .an int., got None"),
    ],
)
def test_a_timer_at_no_time_is_refused_with_the_record(env, time, message):
    env.from_collection(["record"]).key_by(lambda value: value).process(Timers(time)).print()
    with pytest.raises(UserFunctionError, match=rf"(?s)'KeyedProcess'.*record: 'record'.*{message}"):
        env.execute()


class WrongDescriptor(CountKeys):
    def open(self, runtime_context):
        runtime_context.get_state(ListStateDescriptor("list"))


@ONE_WAY
def test_state_of_one_kind_with_a_descriptor_of_another_is_refused(env):
    env.from_collection([1]).key_by(lambda value: value).process(WrongDescriptor()).print()
    with pytest.raises(
        InvalidProgramError, match=r"'KeyedProcess' requested state with .*which is not a ValueStateDescriptor"
    ):
        env.execute()


class OnlyItself:
    def __init__(self, number):
        self.number = number


@ONE_WAY
def test_a_key_that_is_equal_only_to_itself_is_refused(env):
    env.from_collection([1]).key_by(OnlyItself).process(CountKeys()).print()
    with pytest.raises(KeySelectorError, match="its class OnlyItself needs __eq__ and __hash__"):
        env.execute()


class Rules(KeyedBroadcastProcessFunction):
    descriptor = MapStateDescriptor("rules")

    def process_element(self, value, ctx):
        yield value, dict(ctx.get_broadcast_state(self.descriptor).items())

    def process_broadcast_element(self, value, ctx):
        raise AssertionError("there is none")


def test_a_broadcast_stream_may_be_empty(env, run):
    rules = env.from_collection([]).broadcast(Rules.descriptor)
    assert run(env.from_collection([1]).key_by(lambda value: value).connect(rules).process(Rules())) == [(1, {})]


# -- failures --------------------------------------------------------------------------------------------------------


class NoRepr:
    def __repr__(self):
        raise ValueError("no repr")


def deeper(value):
    return deeper(value)


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda value: next(iter([])), "(?s)'Map'.*record: 'record'.*StopIteration"),
        (deeper, "(?s)'Map'.*record: 'record'.*RecursionError"),
        (WithSlots(1), "(?s)'Map'.*record: 'record'.*TypeError"),
    ],
)
def test_the_record_is_named_whatever_is_raised(env, function, message):
    env.from_collection(["record"]).map(function).print()
    with pytest.raises(UserFunctionError, match=message):
        env.execute()


class ForgotToYield(ProcessFunction):
    def process_element(self, value, ctx):
        return 5


@ONE_WAY
@pytest.mark.parametrize("method", ["process_element", "flat_map"])
def test_who_forgot_to_yield_is_told(env, method):
    stream = env.from_collection(["record"])
    (stream.flat_map(lambda value: 5) if method == "flat_map" else stream.process(ForgotToYield())).print()
    with pytest.raises(UserFunctionError, match=rf"(?s)record: 'record'.*not iterable\n{method} emits what it yields"):
        env.execute()


class FillsListWithNothing(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value, ctx):
        self.seen.update(5)
        yield value


@ONE_WAY
def test_who_yields_is_not_told_to_though_something_else_is_not_iterable(env):
    env.from_collection(["record"]).key_by(lambda value: value).process(FillsListWithNothing()).print()
    with pytest.raises(UserFunctionError, match=r"not iterable") as failure:
        env.execute()
    assert "emits what it yields" not in str(failure.value)


@pytest.mark.on_spark((4, "STREAMING"), (1, "BATCH"))
@pytest.mark.variants(executors=["warm"])
def test_sys_exit_in_a_function_fails_the_job_and_ends_no_process(env):
    env.from_collection([1]).map(lambda value: sys.exit(3)).print()
    with pytest.raises(JobExecutionError, match=r"(?s)Map.* called sys.exit\(3\): raise an exception.*in <lambda>"):
        env.execute()


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_a_record_without_a_repr_is_named_as_well_as_can_be(env):
    env.from_collection([NoRepr()]).map(lambda value: 1 / 0).print()
    with pytest.raises(UserFunctionError, match="record: <NoRepr instance at"):
        env.execute()


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_a_map_that_returns_a_generator_is_told_of_flat_map(env):
    stream = env.from_collection([1]).map(lambda value: (n for n in range(value)))
    with pytest.raises(SerializationError, match=r"what '.*Collect' sends to the driver.*use flat_map\(\)"):
        list(stream.execute_and_collect())
    stream.rebalance().map(lambda value: value).print()
    with pytest.raises(SerializationError, match=r"a record on its way to 'Map'.*use flat_map\(\)"):
        env.execute()


async def asynchronously(value):
    return value


@ONE_WAY
@pytest.mark.parametrize("method", ["map", "flat_map", "filter"])
def test_an_asynchronous_function_is_refused_where_it_is_given(env, method):
    with pytest.raises(InvalidProgramError, match=rf"{method}\(\).*asynchronously.*AsyncDataStream"):
        getattr(env.from_collection([1]), method)(asynchronously)
