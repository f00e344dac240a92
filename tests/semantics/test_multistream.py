"""union and connect (rule 5.4), and graphs that branch and meet again."""

from collections import Counter

import pytest
from support import by_key

from penstock.common.errors import StateAccessError
from penstock.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor


class TellApart(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return "second", value


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value):
        yield "number", value
        yield "number", -value

    def flat_map2(self, value):
        return [("word", value)] if value else None


class TellApartWithContext(CoProcessFunction):
    tag = OutputTag("seen")

    def process_element1(self, value, ctx):
        ctx.output(self.tag, value)
        yield "first", value

    def process_element2(self, value, ctx):
        yield self.tag, value
        yield "second", value


class Blocked(CoFlatMapFunction):
    """Words that are not blocked; both sides share the state of a key."""

    def open(self, runtime_context: RuntimeContext):
        self.blocked = runtime_context.get_state(ValueStateDescriptor("blocked"))

    def flat_map1(self, value):
        self.blocked.update(True)

    def flat_map2(self, value):
        if not self.blocked.value():
            yield value


class Pair(KeyedCoProcessFunction):
    """Joins each ride with its fare, whichever comes first."""

    def open(self, runtime_context: RuntimeContext):
        self.ride = runtime_context.get_state(ValueStateDescriptor("ride"))
        self.fares = runtime_context.get_list_state(ListStateDescriptor("fares"))

    def process_element1(self, value, ctx):
        self.ride.update(value)
        for fare in self.fares.get():
            yield ctx.get_current_key(), value[1], fare
        self.fares.clear()

    def process_element2(self, value, ctx):
        if self.ride.value() is None:
            self.fares.add(value[1])
        else:
            yield ctx.get_current_key(), self.ride.value()[1], value[1]


class SharedCount(CoMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def map1(self, value):
        return self._next(value)

    def map2(self, value):
        return self._next(value)

    def _next(self, value):
        self.count.update(self.count.value() + 1)
        return value[0], self.count.value()


@pytest.mark.on_spark((4, "STREAMING"), (4, "BATCH"))
def test_union_connect_and_diamonds(env, run):
    numbers = env.from_collection([1, 2, 3])
    words = env.from_collection(["a", "", "b"])
    cities = [env.from_collection([(city, n) for n in range(3)]) for city in ("Paris", "Tokyo", "Rio")]
    twice = numbers.union(numbers)
    evens = numbers.filter(lambda n: n % 2 == 0).map(lambda n: ("even", n))
    odds = numbers.filter(lambda n: n % 2 == 1).map(lambda n: ("odd", n))
    processed = numbers.connect(words).process(TellApartWithContext())
    rides = env.from_collection([(n, f"ride {n}") for n in (1, 4, 3, 2)]).key_by(0)
    fares = env.from_collection([(n, f"fare {n}") for n in (2, 4, 1, 3)]).key_by(0)
    results = run(
        union=cities[0].union(*cities[1:]),
        union_of_mapped=numbers.map(str).union(words.map(str), numbers.map(lambda n: str(-n))),
        twice=twice.map(lambda n: n),
        diamond=evens.union(odds).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1])),
        co_map=numbers.connect(words).map(TellApart()),
        co_flat_map=numbers.connect(words).flat_map(Repeat()),
        co_process=processed,
        side=processed.get_side_output(TellApartWithContext.tag),
        joined=rides.connect(fares).process(Pair()),
        connect_then_key=numbers.map(lambda n: (n, "x")).connect(fares.map(lambda f: f)).key_by(0, 0).process(Pair()),
        self_connected=rides.connect(rides).map(SharedCount()),
    )
    assert sorted(results["union"]) == sorted((city, n) for city in ("Paris", "Tokyo", "Rio") for n in range(3))
    assert Counter(results["union_of_mapped"]) == Counter(["1", "2", "3", "a", "", "b", "-1", "-2", "-3"])
    assert Counter(results["twice"]) == {1: 2, 2: 2, 3: 2}  # no deduplication
    assert {key: max(records) for key, records in by_key(results["diamond"]).items()} == {
        "even": ("even", 2),
        "odd": ("odd", 4),
    }
    told_apart = Counter([("first", 1), ("first", 2), ("first", 3), ("second", "a"), ("second", ""), ("second", "b")])
    assert Counter(results["co_map"]) == Counter(results["co_process"]) == told_apart
    assert Counter(results["side"]) == Counter([1, 2, 3, "a", "", "b"])
    expected = [("number", n) for n in (-3, -2, -1, 1, 2, 3)] + [("word", "a"), ("word", "b")]
    assert Counter(results["co_flat_map"]) == Counter(expected)
    assert sorted(results["joined"]) == [(n, f"ride {n}", f"fare {n}") for n in (1, 2, 3, 4)]
    assert sorted(results["connect_then_key"]) == [(n, "x", f"fare {n}") for n in (1, 2, 3)]
    assert sorted(results["self_connected"]) == [(n, count) for n in (1, 2, 3, 4) for count in (1, 2)]


def test_both_inputs_of_connected_keyed_streams_share_state(env, run):
    control = env.from_collection(["DROP", "IGNORE"])
    words = env.from_collection(["Apache", "DROP", "Flink", "IGNORE"])
    both = control.connect(words).key_by(lambda w: w, lambda w: w).flat_map(Blocked())
    assert {"Apache", "Flink"} <= set(run(both)) <= {"Apache", "Flink", "DROP", "IGNORE"}  # a race by definition


@pytest.mark.variants(modes=["STREAMING"])
def test_control_elements_that_came_first_count(env, run):
    control = env.from_collection(["DROP", "IGNORE"]).map(lambda w: (0, w))
    words = env.from_collection(["Apache", "DROP", "Flink", "IGNORE"]).map(lambda w: (1, w))
    merged = control.union(words).key_by(lambda pair: pair[1])
    # With one stream the order of a key is defined: blocked first.
    blocked = merged.reduce(lambda a, b: (a[0] * b[0], b[1]))
    final = {word: flag for flag, word in run(blocked)}
    assert final == {"Apache": 1, "Flink": 1, "DROP": 0, "IGNORE": 0}


def test_one_stream_feeds_several_operators_and_sinks(env, run, capsys):
    source = env.from_sequence(1, 6)
    doubled = source.map(lambda n: n * 2)
    doubled.filter(lambda n: n > 10).print().set_parallelism(1)
    results = run(source=source, doubled=doubled, tripled=source.map(lambda n: n * 3), both=doubled.union(source))
    assert sorted(results["source"]) == [1, 2, 3, 4, 5, 6]
    assert sorted(results["doubled"]) == [2, 4, 6, 8, 10, 12]
    assert sorted(results["tripled"]) == [3, 6, 9, 12, 15, 18]
    assert sorted(results["both"]) == sorted([*range(1, 7), *range(2, 13, 2)])
    assert capsys.readouterr().out == "12\n"


def test_a_diamond_with_paths_of_different_length(env, run):
    source = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
    short = source.map(lambda pair: ("short", pair[0], pair[1]))
    long = (
        source.key_by(0).map(lambda pair: pair).rebalance().map(lambda pair: ("long", *pair)).key_by(1).map(lambda t: t)
    )
    counted = short.union(long).key_by(0, 1).sum(2)
    final = {record[:2]: record[2] for record in run(counted)}
    assert final == {("short", "a"): 4, ("short", "b"): 2, ("long", "a"): 4, ("long", "b"): 2}


class SeenAfterRule(CoMapFunction):
    """Counts a key's records in keyed state; what was broadcast is a member of the function."""

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def map1(self, value):
        self.count.update(self.count.value() + 1)
        return value, self.count.value()

    def map2(self, value):
        return "broadcast", value


class Swapped(SeenAfterRule):
    map1, map2 = SeenAfterRule.map2, SeenAfterRule.map1


class FlatSeen(CoFlatMapFunction):
    open = SeenAfterRule.open

    def flat_map1(self, value):
        self.count.update(self.count.value() + 1)
        yield value, self.count.value()

    def flat_map2(self, value):
        yield "broadcast", value


class SwappedFlatSeen(FlatSeen):
    flat_map1, flat_map2 = FlatSeen.flat_map2, FlatSeen.flat_map1


@pytest.mark.parametrize(
    ("method", "function", "swapped"), [("map", SeenAfterRule, Swapped), ("flat_map", FlatSeen, SwappedFlatSeen)]
)
@pytest.mark.parametrize("keyed_first", [True, False])
def test_keyed_stream_connects_to_a_broadcast_one_and_keeps_its_keyed_state(
    env, run, variant, method, function, swapped, keyed_first
):
    keyed = env.from_collection(["a", "b", "a", "a"]).key_by(lambda word: word)
    rules = env.from_collection([7]).broadcast()
    if keyed_first:
        result = getattr(keyed.connect(rules), method)(function())
    else:
        result = getattr(rules.connect(keyed), method)(swapped())

    found = by_key(run(result))

    assert found.pop("broadcast") == [("broadcast", 7)] * variant.parallelism
    assert found == {"a": [("a", 1), ("a", 2), ("a", 3)], "b": [("b", 1)]}


class CountsOnTheWrongSide(SeenAfterRule):
    def map2(self, value):
        return self.count.value()


def test_keyed_state_is_refused_on_the_side_without_keys(env):
    keyed, rules = env.from_collection(["a"]).key_by(lambda word: word), env.from_collection([7]).broadcast()
    keyed.connect(rules).map(CountsOnTheWrongSide()).print()

    with pytest.raises(StateAccessError, match=r"Co-Map.*without a current key"):
        env.execute()


def test_process_of_a_keyed_and_a_broadcast_stream_takes_a_function_without_keys(env, run, variant):
    keyed, rules = env.from_collection([1, 2]).key_by(lambda number: number), env.from_collection([7]).broadcast()

    found = by_key(run(keyed.connect(rules).process(TellApartWithContext())))

    assert sorted(found["first"]) == [("first", 1), ("first", 2)]
    assert found["second"] == [("second", 7)] * variant.parallelism
