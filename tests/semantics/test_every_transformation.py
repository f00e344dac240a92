"""Every transformation of the API, on every executor, in both modes, at parallelism 1 and 4.

The programs of all transformations are one job, whose results carry the name of the transformation: a Spark job costs
seconds, however much it does. The rules of each transformation in detail have files of their own; this one sees to it
that none is left out anywhere.
"""

from collections import Counter, defaultdict
from inspect import isfunction

import pytest

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.connectors.datagen import DataGeneratorSource
from penstock.connectors.number_seq import NumberSequenceSource
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from penstock.datastream.aggregates import Count, Sum
from penstock.datastream.broadcast import BroadcastConnectedStream
from penstock.datastream.named_aggregates import AggregatesByKey
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.datastream.stream_settings import StreamSettings
from penstock.datastream.window import TumblingEventTimeWindows

RECORDS = [("a", 1), ("b", 2), ("a", 5), ("b", 3)]  # (key, number that is also the time)
SIDE = OutputTag("side")
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10)).with_timestamp_assigner(
    lambda value: value[1]
)
TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))


def add(left, right):
    return left[0], left[1] + right[1]


class Counting:
    """A member of every function with keyed state: how many records of its key it has seen."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT(), 0))

    def count(self):
        self.seen.update(self.seen.value() + 1)
        return self.seen.value()


class CountingMap(Counting, MapFunction):
    def map(self, value):
        return value[0], self.count()


class CountingFlatMap(Counting, FlatMapFunction):
    def flat_map(self, value):
        yield from [value[0]] * self.count()


class FirstOfKey(Counting, FilterFunction):
    def filter(self, value):
        return self.count() == 1


class CountingCoMap(Counting, CoMapFunction):
    def map1(self, value):
        return value[0], self.count()

    map2 = map1


class CountingCoFlatMap(Counting, CoFlatMapFunction):
    def flat_map1(self, value):
        yield value[0], self.count()

    flat_map2 = flat_map1


class CountingCoProcess(Counting, KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield ctx.get_current_key(), self.count()

    process_element2 = process_element1


class Sides(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class FlatSides(CoFlatMapFunction):
    def flat_map1(self, value):
        return [(1, value)]

    def flat_map2(self, value):
        yield 2, value


class SidesWithContext(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value

    def process_element2(self, value, ctx):
        yield 2, value


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()
        ctx.output(SIDE, value)
        yield SIDE, value


class Timers(KeyedProcessFunction):
    """One timer for each record, of which one is deleted again; the last of a key is at the largest time."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        for time in (value[1] * 10, value[1] * 10, 7, 70):
            timers.register_event_time_timer(time)
        timers.delete_event_time_timer(7)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator * 10

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class TotalOfField(Total):
    def add(self, value, accumulator):
        return accumulator + value[1]


class EveryState(KeyedProcessFunction):
    """What all kinds of state hold when the event time of the end has come."""

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.INT()))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", int.__add__, Types.INT()))
        self.total = runtime_context.get_aggregating_state(AggregatingStateDescriptor("total", Total(), Types.INT()))

    def process_element(self, value, ctx):
        self.value.update(value[1])
        self.list.add(value[1])
        self.map.put(value[1], -value[1])
        self.sum.add(value[1])
        self.total.add(value[1])
        ctx.timer_service().register_event_time_timer(100)

    def on_timer(self, timestamp, ctx):
        yield (
            *(ctx.get_current_key(), self.value.value(), tuple(self.list.get())),
            *(tuple(sorted(self.map.items())), self.sum.get(), self.total.get()),
        )
        for state in (self.value, self.list, self.map, self.sum, self.total):
            state.clear()
        yield self.value.value(), tuple(self.list.get() or ()), self.map.is_empty(), self.sum.get(), self.total.get()


class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        return [("element", value)]

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value


class KeyedRules(Counting, KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], self.count()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


class WindowOf(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, sum(element[1] for element in elements)


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield len(list(first)), len(list(second))


class Echo(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


class Declared(KeyedProcessFunction):
    n = ValueState(int, default=0)
    total = ReducingState(int, lambda a, b: a + b)

    def process_element(self, value, ctx):
        self.n.update(self.n.value() + 1)
        self.total.add(value[1])
        yield value[0], self.n.value(), self.total.get()


def numbered(record, counts, timers):
    counts[record[0]] += 1
    timers.set(1_000)
    yield record[0], counts[record[0]]


def at_the_end(counts, timers):
    yield timers.key, "end", counts[timers.key]
    timers.forget()


class Streams:
    """The inputs that programs begin with."""

    def __init__(self, env, lines):
        self.env = env
        self.lines = lines
        self.numbers = env.from_collection([1, 2, 3, 4])
        self.records = env.from_collection(RECORDS).assign_timestamps_and_watermarks(IN_TIME)
        self.keyed = self.records.key_by(lambda record: record[0])
        self.rules = env.from_collection([("rule", 1)])


def same(value):
    return value


FOUR = [1, 2, 3, 4]
BY_NUMBER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value * 10)
SIDES = [(1, n) for n in FOUR] + [(2, n) for n in FOUR]
COUNTS = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
BOTH_COUNTS = [(key, n) for key in "ab" for n in FOUR]

# Transformation -> program, and what comes out of it.
PROGRAMS = {
    "from_collection": (lambda s: s.numbers, FOUR),
    "from_elements": (lambda s: s.env.from_elements(1, 2), [1, 2]),
    "from_sequence": (lambda s: s.env.from_sequence(1, 4), FOUR),
    "from_source": (lambda s: s.env.from_source(NumberSequenceSource(1, 4), BY_NUMBER, "numbers"), FOUR),
    "from_source generated": (
        lambda s: s.env.from_source(DataGeneratorSource(lambda n: n + 1, 4), BY_NUMBER, "generated"),
        FOUR,
    ),
    "read_text_file": (lambda s: s.env.read_text_file(s.lines), ["one", "two"]),
    "map": (lambda s: s.numbers.map(lambda n: n * 2), [2, 4, 6, 8]),
    "flat_map": (lambda s: s.numbers.flat_map(lambda n: range(n - 2)), [0, 0, 1]),
    "filter": (lambda s: s.numbers.filter(lambda n: n > 2), [3, 4]),
    "process": (lambda s: s.records.process(Timestamps()), [(record, record[1]) for record in RECORDS]),
    "get_side_output": (lambda s: s.records.process(Timestamps()).get_side_output(SIDE), RECORDS * 2),
    "project": (lambda s: s.records.project(1), [(number,) for _, number in RECORDS]),
    "assign_timestamps_and_watermarks": (
        lambda s: s.numbers.assign_timestamps_and_watermarks(BY_NUMBER).process(Timestamps()),
        [(n, n * 10) for n in FOUR],
    ),
    "with_event_time": (
        lambda s: s.numbers.with_event_time(lambda n: n * 10, max_delay="1 s").process(Timestamps()),
        [(n, n * 10) for n in FOUR],
    ),
    "union": (lambda s: s.numbers.union(s.env.from_collection([5]), s.numbers), [*FOUR, *FOUR, 5]),
    "shuffle": (lambda s: s.numbers.shuffle().map(same), FOUR),
    "rebalance": (lambda s: s.numbers.rebalance().map(same), FOUR),
    "rescale": (lambda s: s.numbers.rescale().map(same), FOUR),
    "forward": (lambda s: s.numbers.map(same).forward().map(same), FOUR),
    "global_ global": (lambda s: s.numbers.global_().map(same), FOUR),
    "broadcast": (lambda s: s.numbers.broadcast().map(same), lambda v: FOUR * v.parallelism),
    "partition_custom": (lambda s: s.numbers.partition_custom(lambda k, n: k % n, same).map(same), FOUR),
    "returns": (lambda s: s.numbers.map(str).returns(Types.STRING()), ["1", "2", "3", "4"]),
    "window_all": (lambda s: s.records.window_all(TEN).reduce(add), [("a", 11)]),
    "count_window_all": (lambda s: s.numbers.count_window_all(2).aggregate(Total()), lambda v: None),
    "join": (
        lambda s: s.records.join(s.records).where(0).equal_to(0).window(TEN).apply(lambda a, b: (a[1], b[1])),
        [(a, b) for pair in ((1, 5), (2, 3)) for a in pair for b in pair],
    ),
    "co_group": (
        lambda s: s.records.co_group(s.records).where(0).equal_to(0).window(TEN).apply(Groups()),
        [(2, 2), (2, 2)],
    ),
    "async": (lambda s: AsyncDataStream.ordered_wait(s.numbers, Echo(), Time.seconds(60), 2), FOUR),
    # keyed
    "key_by": (lambda s: s.records.key_by(0).key_by(lambda r: r[0], Types.STRING()).map(CountingMap()), COUNTS),
    "keyed map": (lambda s: s.keyed.map(CountingMap()), COUNTS),
    "keyed flat_map": (lambda s: s.keyed.flat_map(CountingFlatMap()), ["a"] * 3 + ["b"] * 3),
    "keyed filter": (lambda s: s.keyed.filter(FirstOfKey()), [("a", 1), ("b", 2)]),
    "keyed process": (
        lambda s: s.keyed.process(Timers()),
        [(key, time, "EVENT_TIME") for key, times in (("a", (10, 50, 70)), ("b", (20, 30, 70))) for time in times],
    ),
    "keyed state": (
        lambda s: s.keyed.process(EveryState()),
        [("a", 5, (1, 5), ((1, -1), (5, -5)), 6, 60), ("b", 3, (2, 3), ((2, -2), (3, -3)), 5, 50)]
        + [(None, (), True, None, None)] * 2,
    ),
    "declared state": (lambda s: s.keyed.process(Declared()), [("a", 1, 1), ("a", 2, 6), ("b", 1, 2), ("b", 2, 5)]),
    "plain function": (
        lambda s: s.keyed.process(numbered, state=Counter, on_timer=at_the_end),
        [*COUNTS, ("a", "end", 2), ("b", "end", 2)],
    ),
    "count": (lambda s: s.keyed.count(), COUNTS),
    "mean": (lambda s: s.keyed.mean(1), [("a", 1.0), ("a", 3.0), ("b", 2.0), ("b", 2.5)]),
    "quantile": (lambda s: s.keyed.quantile(1, 1, accuracy=0), [("a", 1), ("a", 5), ("b", 2), ("b", 3)]),
    "top": (
        lambda s: s.keyed.window(TEN).top(1, by=1).map(lambda r: (r[0], *r[1])),
        [("a", ("a", 5)), ("b", ("b", 3))],
    ),
    "agg": (
        lambda s: s.keyed.window(TEN).agg(n=Count(), total=Sum(1)).map(lambda r: (r.key, r.window_end, r.n, r.total)),
        [("a", 10, 2, 6), ("b", 10, 2, 5)],
    ),
    "agg of all": (lambda s: s.records.window_all(TEN).agg(n=Count()).map(lambda r: (r.window_end, r.n)), [(10, 4)]),
    "reduce": (lambda s: s.keyed.reduce(add), [("a", 1), ("a", 6), ("b", 2), ("b", 5)]),
    "sum": (lambda s: s.keyed.sum(1), [("a", 1), ("a", 6), ("b", 2), ("b", 5)]),
    "min": (lambda s: s.keyed.min(1), [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
    "max": (lambda s: s.keyed.max(1), [("a", 1), ("a", 5), ("b", 2), ("b", 3)]),
    "min_by": (lambda s: s.keyed.min_by(1), [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
    "max_by": (lambda s: s.keyed.max_by(1), [("a", 1), ("a", 5), ("b", 2), ("b", 3)]),
    "window": (lambda s: s.keyed.window(TEN).process(WindowOf()), [("a", 0, 6), ("b", 0, 5)]),
    "count_window": (lambda s: s.keyed.count_window(2).aggregate(TotalOfField()), [60, 50]),
    "interval_join": (
        lambda s: s.keyed.interval_join(s.keyed).between(Time.milliseconds(1), Time.milliseconds(9)).process(Pairs()),
        [(("a", 1), ("a", 5)), (("b", 2), ("b", 3))],
    ),
    # two inputs
    "connect map": (lambda s: s.numbers.connect(s.numbers).map(Sides()), SIDES),
    "connect flat_map": (lambda s: s.numbers.connect(s.numbers).flat_map(FlatSides()), SIDES),
    "connect process": (lambda s: s.numbers.connect(s.numbers).process(SidesWithContext()), SIDES),
    "connect key_by": (lambda s: s.records.connect(s.records).key_by(0, 0).map(CountingCoMap()), BOTH_COUNTS),
    "keyed connect map": (lambda s: s.keyed.connect(s.keyed).map(CountingCoMap()), BOTH_COUNTS),
    "keyed connect flat_map": (lambda s: s.keyed.connect(s.keyed).flat_map(CountingCoFlatMap()), BOTH_COUNTS),
    "keyed connect process": (lambda s: s.keyed.connect(s.keyed).process(CountingCoProcess()), BOTH_COUNTS),
    "broadcast process": (
        lambda s: s.numbers.connect(s.rules.broadcast(RULES)).process(Rules()),
        lambda v: [("element", n) for n in FOUR] + [("rule", ("rule", 1))] * v.parallelism,
    ),
    "keyed broadcast process": (lambda s: s.keyed.connect(s.rules.broadcast(RULES)).process(KeyedRules()), COUNTS),
    # settings
    "name uid set_uid_hash set_description set_buffer_timeout": (
        lambda s: (
            s.numbers.map(same).name("name").uid("uid").set_description("text").set_buffer_timeout(5).map(same)
        ).set_uid_hash("0123456789abcdef0123456789abcdef"),
        FOUR,
    ),
    "set_parallelism set_max_parallelism force_non_parallel": (
        lambda s: (
            s.numbers.map(same).set_parallelism(2).map(same).set_max_parallelism(64).map(same).force_non_parallel()
        ),
        FOUR,
    ),
    "start_new_chain disable_chaining slot_sharing_group": (
        lambda s: s.numbers.map(same).start_new_chain().map(same).disable_chaining().map(same).slot_sharing_group("x"),
        FOUR,
    ),
}

# Of a key, a batch job emits the last value only (Flink's rule); order within equal times is not defined.
LAST_IN_BATCH = {
    "reduce": [("a", 6), ("b", 5)],
    "sum": [("a", 6), ("b", 5)],
    "min": [("a", 1), ("b", 2)],
    "max": [("a", 5), ("b", 3)],
    "min_by": [("a", 1), ("b", 2)],
    "max_by": [("a", 5), ("b", 3)],
}


def expected_of(name, variant):
    expected = PROGRAMS[name][1]
    if variant.is_batch and name in LAST_IN_BATCH:
        return LAST_IN_BATCH[name]
    return expected(variant) if callable(expected) else expected


@pytest.mark.on_spark((1, "STREAMING"), (4, "STREAMING"), (1, "BATCH"), (4, "BATCH"))
def test_every_transformation(env, run, variant, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    streams = Streams(env, str(lines))
    named = [
        program(streams).map(lambda value, name=name: (name, value)).name(f"result of {name}")
        for name, (program, _) in PROGRAMS.items()
    ]
    found = defaultdict(Counter)
    for name, value in run(named[0].union(*named[1:])):
        found[name][value] += 1
    wrong = {
        name: (dict(found[name]), expected)
        for name in PROGRAMS
        if (expected := expected_of(name, variant)) is not None and found[name] != Counter(expected)
    }
    assert wrong == {}
    assert found["count_window_all"].total() == 2
    assert sum(found["count_window_all"].elements()) == 100  # in pairs, whichever way they came


# What leaves the program instead of going on as a stream; tests of their own.
ELSEWHERE = {
    *("print", "print_to_err", "sink_to", "add_sink", "execute_and_collect", "collect_async", "to_dataframe", "cache"),
    "as_queryable_state",
    *("transform", "apply_operator", "attach_sink"),  # what the others are made of
}


def test_no_transformation_is_missing_here():
    classes = (DataStream, KeyedStream, AggregatesByKey, ConnectedStreams, BroadcastConnectedStream, StreamSettings)
    methods = {
        name
        for cls in classes
        for name, member in vars(cls).items()
        if isfunction(member) and not name.startswith(("_", "get_"))
    }
    mentioned = {word for name in PROGRAMS for word in name.split()} | {"connect", "get_side_output"}
    assert methods - mentioned - ELSEWHERE == set()
