"""Unexpected programs and records: None, NaN, strange keys, empty streams, diamonds, a stream with itself."""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import pytest
from support import BY_SECOND_FIELD, Script, by_key

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, KeySelectorError
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

TAG = OutputTag("side")
RULES = MapStateDescriptor("rules")
TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))


class Same(MapFunction):
    def map(self, value):
        return value


class CountKeys(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


# -- records ---------------------------------------------------------------------------------------------------------


def test_none_is_a_record_like_any_other(env, run):
    stream = env.from_collection([None, 1, None])
    results = run(
        mapped=stream.map(lambda value: value).map(Same()),
        made=stream.map(lambda value: None),
        kept=stream.filter(lambda value: value is None),
        keyed=stream.key_by(lambda value: value).process(CountKeys()),
        yielded=stream.flat_map(lambda value: [value, None]),
        joined=stream.union(stream).key_by(lambda value: 0).map(Same()),
    )
    assert results["mapped"] == [None, 1, None]
    assert results["made"] == [None] * 3
    assert results["kept"] == [None, None]
    assert by_key(results["keyed"]) == {None: [(None, 1), (None, 2)], 1: [(1, 1)]}
    assert Counter(results["yielded"]) == {None: 5, 1: 1}
    assert Counter(results["joined"]) == {None: 4, 1: 2}


@dataclass(frozen=True)
class Place:
    name: str
    at: tuple


class Colour(Enum):
    RED = "red"


KEYS = [
    "x" * 100_000,
    2**200,
    -(2**200),
    0.1,
    float("inf"),
    Decimal("1.10"),
    b"\x00\xff",
    "",
    "\ud800 lone",
    (),
    ("a", (1, None)),
    frozenset({1, "a"}),
    Place("here", (1, 2)),
    Colour.RED,
    Row("a", 1),
    None,
    True,
]


def test_keys_of_every_kind_keep_their_state(env, run):
    stream = env.from_collection(list(enumerate(KEYS)) * 3).key_by(lambda record: record[1]).process(CountKeys())
    assert Counter(run(stream)) == {(key, count): 1 for key in KEYS for count in (1, 2, 3)}


@pytest.mark.variants(executors=["warm"])
@pytest.mark.parametrize("key", [float("nan"), ("a", float("nan")), Decimal("NaN")])
def test_a_key_that_is_not_equal_to_itself_is_refused(env, key):
    env.from_collection([1]).key_by(lambda value: key).process(CountKeys()).print()
    with pytest.raises(KeySelectorError, match=r"not equal to itself.*KeyedProcess.*record 1"):
        env.execute()


# -- shapes ----------------------------------------------------------------------------------------------------------


def test_a_stream_in_union_with_itself_gives_every_record_twice(env, run):
    stream = env.from_collection([1, 2]).map(lambda value: value)
    results = run(
        plain=stream.union(stream).map(lambda value: value * 10),
        thrice=stream.union(stream, stream),
        keyed=stream.union(stream).key_by(lambda value: value).process(CountKeys()),
    )
    assert Counter(results["plain"]) == {10: 2, 20: 2}
    assert Counter(results["thrice"]) == {1: 3, 2: 3}
    assert Counter(results["keyed"]) == {(1, 1): 1, (1, 2): 1, (2, 1): 1, (2, 2): 1}


class Sides(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return "second", value


def test_a_stream_connected_with_itself(env, run):
    stream = env.from_collection([1, 2])
    keyed = stream.key_by(lambda value: value)
    results = run(plain=stream.connect(stream).map(Sides()), keyed=keyed.connect(keyed).map(Sides()))
    expected = {(side, value): 1 for side in ("first", "second") for value in (1, 2)}
    assert Counter(results["plain"]) == Counter(results["keyed"]) == expected


def test_a_diamond_of_diamonds_gives_every_record_once_per_path(env, run):
    stream = env.from_collection([1])
    for _ in range(4):
        left, right = stream.map(lambda value: value * 2), stream.rebalance().map(lambda value: value * 2 + 1)
        stream = left.union(right)
    assert sorted(run(stream)) == list(range(16, 32))


def test_partitioning_before_a_union_counts_for_its_own_branch(env, run, variant):
    """As in Flink, where the edges of a union are partitioned one by one."""
    everywhere, once = env.from_collection(["all"]).broadcast(), env.from_collection(["one"])
    union = everywhere.union(once.rebalance())
    results = run(
        mapped=union.map(lambda value: value).set_parallelism(variant.parallelism),
        keyed=union.key_by(lambda value: value).process(CountKeys()),
    )
    assert Counter(results["mapped"]) == {"all": variant.parallelism, "one": 1}
    assert Counter(results["keyed"]) == {("all", 1): 1, ("one", 1): 1}  # the last partitioning is the one that counts


class Everything(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, len(list(elements))


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def test_empty_streams_go_through_everything(env, run):
    empty = env.from_collection([]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    full = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    keyed, other = empty.key_by(lambda r: r[0]), full.key_by(lambda r: r[0])
    results = run(
        mapped=empty.map(lambda value: value),
        reduced=keyed.reduce(lambda left, right: left),
        windows=keyed.window(TEN).process(Everything()),
        all_windows=empty.window_all(TEN).reduce(lambda left, right: left),
        joined=keyed.interval_join(other).between(Time.milliseconds(-1), Time.milliseconds(1)).process(Pairs()),
        connected=keyed.connect(other).map(Sides()),
        union=empty.union(full),
        windows_of_union=empty.union(full).key_by(lambda r: r[0]).window(TEN).process(Everything()),
    )
    assert {name: found for name, found in results.items() if found} == {
        "connected": [("second", ("a", 1))],
        "union": [("a", 1)],
        "windows_of_union": [("a", 1)],
    }


@pytest.mark.variants(executors=["warm"], parallelism=[1], modes=["STREAMING"])
@pytest.mark.parametrize(("parallelism", "max_parallelism"), [(1, 1), (3, 3), (32, 32), (5, 128)])
def test_any_parallelism_up_to_the_number_of_key_groups(env, run, parallelism, max_parallelism):
    env.set_parallelism(parallelism).set_max_parallelism(max_parallelism)
    keyed = env.from_sequence(1, 200).key_by(lambda value: value % 50)
    stream = keyed.process(CountKeys()).key_by(lambda record: record[0]).map(Same())
    assert Counter(run(stream)) == {(key, count): 1 for key in range(50) for count in (1, 2, 3, 4)}


def test_more_subtasks_than_key_groups_are_refused(env):
    env.set_parallelism(4).set_max_parallelism(3)
    env.from_sequence(1, 2).key_by(lambda value: value).process(CountKeys()).print()
    with pytest.raises(InvalidProgramError, match="max parallelism 3"):
        env.execute()


@pytest.mark.variants(executors=["warm"], parallelism=[4], modes=["STREAMING"])
@pytest.mark.parametrize("target", [None, "1", 1.5, 4, -1])
def test_a_partitioner_that_returns_no_channel_is_named(env, target):
    env.from_collection([1]).partition_custom(lambda key, count: target, lambda value: value).map(Same()).print()
    with pytest.raises(InvalidProgramError, match="custom partitioner before 'Map"):
        env.execute()


# -- side outputs ----------------------------------------------------------------------------------------------------


class Aside:
    """Every kind of function sends what it gets to a side output."""

    def _send(self, value, *_):
        yield TAG, value

    flat_map = flat_map1 = flat_map2 = _send
    process_element = process_element1 = process_element2 = process_broadcast_element = _send

    def map(self, value):
        return value


class AsideFlat(Aside, FlatMapFunction):
    pass


class AsideProcess(Aside, ProcessFunction):
    pass


class AsideKeyed(Aside, KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(5)

    def on_timer(self, timestamp, ctx):
        ctx.output(TAG, ctx.get_current_key())
        yield TAG, timestamp


class AsideCoFlat(Aside, CoFlatMapFunction):
    pass


class AsideCo(Aside, CoProcessFunction):
    pass


class AsideKeyedCo(Aside, KeyedCoProcessFunction):
    pass


class AsideBroadcast(Aside, BroadcastProcessFunction):
    pass


class AsideKeyedBroadcast(Aside, KeyedBroadcastProcessFunction):
    pass


class AsideWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.output(TAG, key)
        yield TAG, list(elements)


class AsideJoin(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        ctx.output(TAG, left)
        yield TAG, right


class AsideAsync(AsyncFunction):
    async def async_invoke(self, value):
        return [(TAG, value)]


@pytest.mark.variants(executors=["one"], parallelism=[1], modes=["STREAMING"])
def test_side_outputs_of_every_kind_of_function(env, run):
    records = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    keyed, rules = records.key_by(lambda r: r[0]), records.broadcast(RULES)
    streams = {
        "flat_map": records.flat_map(AsideFlat()),
        "plain flat_map": records.flat_map(lambda value: [(TAG, value)]),
        "keyed flat_map": keyed.flat_map(AsideFlat()),
        "process": records.process(AsideProcess()),
        "keyed process": keyed.process(AsideKeyed()),
        "co flat_map": records.connect(records).flat_map(AsideCoFlat()),
        "keyed co flat_map": keyed.connect(keyed).flat_map(AsideCoFlat()),
        "half keyed co flat_map": keyed.connect(records.broadcast()).flat_map(AsideCoFlat()),
        "co process": records.connect(records).process(AsideCo()),
        "keyed co process": keyed.connect(keyed).process(AsideKeyedCo()),
        "broadcast": records.connect(rules).process(AsideBroadcast()),
        "keyed broadcast": keyed.connect(rules).process(AsideKeyedBroadcast()),
        "window": keyed.window(TEN).process(AsideWindow()),
        "join": keyed.interval_join(keyed).between(Time.milliseconds(0), Time.milliseconds(1)).process(AsideJoin()),
        "async": AsyncDataStream.unordered_wait(records, AsideAsync(), Time.seconds(5), 2),
    }
    results = run(
        **{f"{name} main": stream for name, stream in streams.items()},
        **{name: stream.get_side_output(TAG) for name, stream in streams.items()},
    )
    one = ("a", 1)
    expected = {
        "flat_map": [one],
        "plain flat_map": [one],
        "keyed flat_map": [one],
        "process": [one],
        "keyed process": ["a", 5],
        "window": ["a", [one]],
        "async": [one],
    }
    for name in streams:
        assert results[f"{name} main"] == [], name
        assert results[name] == expected.get(name, [one, one]), name


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_the_type_declared_behind_two_inputs_is_checked(env):
    numbers = env.from_collection([1])
    numbers.connect(numbers).map(Sides()).returns(Types.INT()).print()
    with pytest.raises(TypeError, match="declared output type"):
        env.execute()


def test_a_script_with_no_splits_at_all_ends(env, run):
    assert run(env.from_source(Script(), WatermarkStrategy.no_watermarks(), "nothing").map(Same())) == []
