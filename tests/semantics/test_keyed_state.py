"""Keyed state: five kinds, one instance per key, clear (rules 3.7, 5.3)."""

import pytest
from support import by_key

from penstock.common import Time, Types
from penstock.common.errors import UserFunctionError
from penstock.datastream import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

pytestmark = pytest.mark.variants(modes=["STREAMING"])


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class AllKinds(KeyedProcessFunction):
    """A record is (key, command, argument...); what the state then holds is emitted."""

    def open(self, runtime_context: RuntimeContext):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.INT()))
        self.default = runtime_context.get_state(ValueStateDescriptor("default", Types.INT(), 7))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.INT()))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("max", max, Types.INT()))
        self.aggregating = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.INT(), Types.INT()]))
        )

    def process_element(self, value, ctx):
        key, command, *arguments = value
        state, _, method = command.partition(".")
        getattr(getattr(self, state), method)(*arguments)
        yield (
            key,
            self.value.value(),
            self.default.value(),
            list(self.list.get()),
            dict(self.map.items()),
            self.reducing.get(),
            self.aggregating.get(),
        )


EMPTY = ("a", None, 7, [], {}, None, None)


def states(commands):
    """What `AllKinds` emits for commands to one key."""
    return [("a", *command) for command in commands]


@pytest.mark.on_spark((4, "STREAMING"))
def test_every_kind_of_state(env, run):
    commands = {
        "value": [
            ("value.update", 1),
            ("default.update", 0),
            ("value.update", 2),
            ("value.clear",),
            ("default.clear",),
        ],
        "list": [("list.add", 1), ("list.add_all", [2, 3]), ("list.update", [9]), ("list.clear",), ("list.add", 4)],
        "map": [
            ("map.put", "x", 1),
            ("map.put_all", {"y": 2, "x": 3}),
            ("map.remove", "x"),
            ("map.remove", "z"),
            ("map.clear",),
        ],
        "reducing": [
            ("reducing.add", 3),
            ("reducing.add", 1),
            ("reducing.add", 5),
            ("reducing.clear",),
            ("reducing.add", 2),
        ],
        "aggregating": [("aggregating.add", 1), ("aggregating.add", 2), ("aggregating.clear",), ("aggregating.add", 9)],
    }
    records = [(name, *command) for name, steps in commands.items() for command in steps]
    found = by_key(run(env.from_collection(records).key_by(0).process(AllKinds())))
    columns = {name: [record[position] for record in found[name]] for name, position in POSITIONS.items()}
    assert columns["value"] == [1, 1, 2, None, None]
    assert [record[2] for record in found["value"]] == [7, 0, 0, 0, 7]
    assert columns["list"] == [[1], [1, 2, 3], [9], [], [4]]
    assert columns["map"] == [{"x": 1}, {"x": 3, "y": 2}, {"y": 2}, {"y": 2}, {}]
    assert columns["reducing"] == [3, 3, 5, None, 2]
    assert columns["aggregating"] == [1.0, 1.5, None, 9.0]
    # No key sees the state of another.
    for name in commands:
        others = [position for other, position in POSITIONS.items() if other != name]
        for record in found[name]:
            assert [record[position] for position in others] == [EMPTY[position] for position in others]


POSITIONS = {"value": 1, "list": 3, "map": 4, "reducing": 5, "aggregating": 6}


class Deduplicate(FilterFunction):
    """The first event of each key passes (training: keyed state)."""

    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_state(ValueStateDescriptor("keyHasBeenSeen", Types.BOOLEAN()))

    def filter(self, value):
        if self.seen.value() is None:
            self.seen.update(True)
            return True
        return False


class RunningAverage(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.TUPLE([Types.INT(), Types.INT()])))

    def map(self, value):
        total, count = self.total.value() or (0, 0)
        self.total.update((total + value[1], count + 1))
        return value[0], (total + value[1]) / (count + 1)


class EverySecond(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.pending = runtime_context.get_list_state(ListStateDescriptor("pending", Types.INT()))

    def flat_map(self, value):
        self.pending.add(value[1])
        values = list(self.pending)
        if len(values) == 2:
            yield value[0], tuple(values)
            self.pending.clear()


def test_map_flat_map_and_filter_have_keyed_state(env, run):
    stream = env.from_collection([("a", 1), ("b", 10), ("a", 3), ("a", 5), ("b", 20), ("a", 7)]).key_by(0)
    results = run(
        first=stream.filter(Deduplicate()), average=stream.map(RunningAverage()), pairs=stream.flat_map(EverySecond())
    )
    assert sorted(results["first"]) == [("a", 1), ("b", 10)]
    assert by_key(results["average"]) == {
        "a": [("a", n) for n in (1.0, 2.0, 3.0, 4.0)],
        "b": [("b", 10.0), ("b", 15.0)],
    }
    assert by_key(results["pairs"]) == {"a": [("a", (1, 3)), ("a", (5, 7))], "b": [("b", (10, 20))]}


def test_two_descriptors_of_the_same_name_are_one_state(env, run):
    class Twice(MapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.one = runtime_context.get_state(ValueStateDescriptor("n", Types.INT(), 0))
            self.other = runtime_context.get_state(ValueStateDescriptor("n", Types.INT(), 0))

        def map(self, value):
            self.one.update(self.one.value() + 1)
            return self.other.value()

    assert sorted(run(env.from_collection(["k"] * 4).key_by(lambda v: v).map(Twice()))) == [1, 2, 3, 4]


def test_states_of_different_operators_do_not_meet_though_their_names_do(env, run):
    first = env.from_collection([("a", 1), ("a", 1), ("a", 1)]).key_by(0).map(RunningAverage())
    second = first.key_by(0).map(RunningAverage())
    assert run(second) == [("a", 1.0)] * 3


class Views(KeyedProcessFunction):
    """Iterates over state while it changes it."""

    def open(self, runtime_context: RuntimeContext):
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))

    def process_element(self, value, ctx):
        self.map.put(value, value)
        self.list.add(value)
        for key in self.map.keys():  # noqa: SIM118 - a state is not a dict
            self.map.put(key + 100, 0)
            self.map.remove(key)
        for element in self.list:
            self.list.add(element)
        yield (
            sorted(self.map.keys()),
            sorted(self.map.values()),
            self.map.is_empty(),
            self.map.contains(value),
            list(self.list),
        )


def test_iterators_over_state_are_stable_views(env, run):
    assert run(env.from_collection([1, 2]).key_by(lambda v: 0).process(Views())) == [
        ([101], [0], False, False, [1, 1]),
        ([102, 201], [0, 0], False, False, [1, 1, 2, 1, 1, 2]),
    ]


@pytest.mark.variants(executors=["warm"], parallelism=[1])
@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(
    ("method", "argument"),
    [("add", None), ("add_all", [1, None]), ("update", [None]), ("add_all", None), ("update", None)],
)
def test_a_list_cannot_hold_none(env, ttl, method, argument):
    class Adds(MapFunction):
        def open(self, runtime_context: RuntimeContext):
            descriptor = ListStateDescriptor("list", Types.INT())
            if ttl:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
            self.list = runtime_context.get_list_state(descriptor)

        def map(self, value):
            self.list.add(value)
            return getattr(self.list, method)(argument)

    env.from_collection([1]).key_by(lambda v: 0).map(Adds()).print()
    with pytest.raises(UserFunctionError, match=r"TypeError: list state .* None"):
        env.execute()


def test_a_map_may_hold_none(env, run):
    class Nones(MapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.entries = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))

        def map(self, value):
            self.entries.put(value, None)
            return self.entries.contains(value), self.entries.get(value), self.entries.contains(99)

    assert run(env.from_collection([1, 2]).key_by(lambda v: 0).map(Nones())) == [(True, None, False)] * 2


def test_a_key_whose_state_was_cleared_starts_again(env, run):
    class CountToTwo(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT(), 0))

        def process_element(self, value, ctx):
            self.count.update(self.count.value() + 1)
            yield value, self.count.value()
            if self.count.value() == 2:
                self.count.clear()

    assert [n for _, n in run(env.from_collection(["k"] * 5).key_by(lambda v: v).process(CountToTwo()))] == [
        1,
        2,
        1,
        2,
        1,
    ]


def test_state_can_be_asked_for_in_the_first_call(env, run):
    """Not only in open()."""

    class Lazy(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.context = runtime_context

        def process_element(self, value, ctx):
            count = self.context.get_state(ValueStateDescriptor(f"count of {value[1]}", Types.INT(), 0))
            count.update(count.value() + 1)
            yield *value, count.value()

    records = [("a", "x"), ("b", "y"), ("a", "x"), ("a", "y"), ("b", "y"), ("a", "x")]
    assert sorted(run(env.from_collection(records).key_by(0).process(Lazy()))) == [
        ("a", "x", 1),
        ("a", "x", 2),
        ("a", "x", 3),
        ("a", "y", 1),
        ("b", "y", 1),
        ("b", "y", 2),
    ]


class ChangesInPlace(KeyedProcessFunction):
    """Never calls update() or put() after the first time."""

    def open(self, runtime_context: RuntimeContext):
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.nested = runtime_context.get_state(ValueStateDescriptor("nested"))

    def process_element(self, value, ctx):
        if self.value.value() is None:
            self.value.update([])
            self.map.put("seen", [])
            self.list.add([])
            self.nested.update(("seen", []))
        self.value.value().append(value[1])
        self.map.get("seen").append(value[1])
        next(iter(self.list.get())).append(value[1])
        self.nested.value()[1].append(value[1])
        (inner,) = self.list.get()
        yield value[0], (*self.value.value(),), (*self.map.get("seen"),), (*inner,), (*self.nested.value()[1],)


@pytest.mark.on_spark((4, "STREAMING"))
def test_state_that_is_changed_in_place_is_kept_without_update(env, run):
    records = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("a", 5), ("a", 6), ("b", 7), ("a", 8)]
    results = run(env.from_collection(records).key_by(lambda record: record[0]).process(ChangesInPlace()))
    last = {result[0]: result[1:] for result in results}
    assert last == {"a": ((1, 3, 4, 5, 6, 8),) * 4, "b": ((2, 7),) * 4}


class Vector:
    """As arrays of numpy are: not equal to anything, neither true nor false."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __eq__(self, other):
        raise ValueError("ambiguous")

    __bool__ = __len__ = lambda self: self.__eq__(None)
    __hash__ = None


def added(one, other):
    return Vector([a + b for a, b in zip(one.numbers, other.numbers, strict=True)])


class Sums(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.unused = runtime_context.get_state(ValueStateDescriptor("unused"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", added))

    def process_element(self, value, ctx):
        key, vector = value
        before = self.value.value()
        self.value.update(vector if before is None else added(before, vector))
        self.list.add(vector)
        self.map.put("last", vector)
        self.sum.add(vector)
        listed = [held.numbers for held in self.list.get()]
        yield key, self.value.value().numbers, listed, self.map.get("last").numbers, self.sum.get().numbers


@pytest.mark.on_spark((4, "STREAMING"))
def test_values_that_cannot_be_compared_can_be_state(env, run):
    records = [("a", Vector([1, 2])), ("b", Vector([5, 5])), ("a", Vector([10, 10])), ("a", Vector([0, 1]))]
    results = run(env.from_collection(records).key_by(lambda record: record[0]).process(Sums()))
    last = {result[0]: result[1:] for result in results}
    assert last == {
        "a": ([11, 13], [[1, 2], [10, 10], [0, 1]], [0, 1], [11, 13]),
        "b": ([5, 5], [[5, 5]], [5, 5], [5, 5]),
    }
