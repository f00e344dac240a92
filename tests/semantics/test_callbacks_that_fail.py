"""Whatever callback of the user's raises, the error names it, its operator and the user's own line."""

import pytest
from support import BY_SECOND_FIELD

from penstock.common import Time
from penstock.common.errors import PenstockError
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    EventTimeSessionWindows,
    Evictor,
    SessionWindowTimeGapExtractor,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

RULES = MapStateDescriptor("rules")
TEN = Time.milliseconds(10)
pytestmark = pytest.mark.variants(executors=["warm"], parallelism=[1])


def boom(*_args):
    raise ValueError("boom of the user")


def generates_then_fails(*_args):
    yield "something"
    boom()


def failing(kind, *methods, generator=False):
    """An object of a function class of which some methods fail, and the others do nothing."""
    body = dict.fromkeys(methods, lambda self, *_: generates_then_fails() if generator else boom())
    for name in getattr(kind, "__abstractmethods__", ()):
        body.setdefault(name, lambda self, *_: None)
    return type("Failing", (kind,), body)()


def numbers(env):
    return env.from_collection([("a", 1), ("b", 2), ("a", 13)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)


def keyed(env):
    return numbers(env).key_by(lambda record: record[0])


def windowed(env):
    return keyed(env).window(TumblingEventTimeWindows.of(TEN))


class SetsTimers(KeyedProcessFunction):
    def __init__(self, domain):
        self.domain = domain

    def process_element(self, value, ctx):
        getattr(ctx.timer_service(), f"register_{self.domain}_time_timer")(0)

    def on_timer(self, timestamp, ctx):
        yield timestamp
        boom()


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def aggregate(method):
    return type("FailingTotal", (Total,), {method: lambda self, *_: boom()})()


class UsesState(KeyedProcessFunction):
    """Keyed state whose function fails."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def open(self, runtime_context):
        if isinstance(self.descriptor, ReducingStateDescriptor):
            self.state = runtime_context.get_reducing_state(self.descriptor)
        else:
            self.state = runtime_context.get_aggregating_state(self.descriptor)

    def process_element(self, value, ctx):
        self.state.add(value)
        self.state.add(value)
        self.state.get()


class FailingTrigger(Trigger):
    def __init__(self, method):
        self.method = method

    def _call(self, method):
        if method == self.method:
            boom()
        return TriggerResult.CONTINUE

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.register_processing_time_timer(0)
        return self._call("on_element")

    def on_event_time(self, time, window, ctx):
        return self._call("on_event_time")

    def on_processing_time(self, time, window, ctx):
        return self._call("on_processing_time")

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        self._call("on_merge")

    def clear(self, window, ctx):
        self._call("clear")


class FailingEvictor(Evictor):
    def __init__(self, method):
        self.method = method

    def evict_before(self, elements, size, window, ctx):
        if self.method == "evict_before":
            boom()

    def evict_after(self, elements, size, window, ctx):
        if self.method == "evict_after":
            boom()


class FailingAssigner(TumblingEventTimeWindows):
    def assign_windows(self, element, timestamp, context):
        boom()


class FailingGap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        boom()


class FailingClear(ProcessWindowFunction):
    def process(self, key, context, elements):
        return []

    def clear(self, context):
        boom()


class FailingAsync(AsyncFunction):
    def __init__(self, result):
        self.result = result

    async def async_invoke(self, value):
        return boom() if self.result is None else self.result


class Listing(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [len(list(elements))]


def both(env):
    return keyed(env).connect(keyed(env))


def beside_rules(env):
    return numbers(env).connect(numbers(env).broadcast(RULES))


def keyed_beside_rules(env):
    return keyed(env).connect(numbers(env).broadcast(RULES))


class AppliesToState(KeyedBroadcastProcessFunction):
    DESCRIPTOR = ValueStateDescriptor("seen")

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(self.DESCRIPTOR)

    def process_element(self, value, ctx):
        self.seen.update(True)

    def process_broadcast_element(self, value, ctx):
        ctx.apply_to_keyed_state(self.DESCRIPTOR, boom)


def joined(env):
    return numbers(env).join(numbers(env)).where(lambda r: r[0]).equal_to(lambda r: r[0])


class Checkpointed(MapFunction, CheckpointedFunction):
    def __init__(self, method):
        self.method = method

    def map(self, value):
        return value

    def initialize_state(self, context):
        if self.method == "initialize_state":
            boom()

    def snapshot_state(self, context):
        if self.method == "snapshot_state":
            boom()


CASES = {
    "map": lambda env: numbers(env).map(failing(MapFunction, "map")),
    "map lambda": lambda env: numbers(env).map(boom),
    "filter": lambda env: numbers(env).filter(failing(FilterFunction, "filter")),
    "flat_map": lambda env: numbers(env).flat_map(failing(FlatMapFunction, "flat_map")),
    "flat_map generator": lambda env: numbers(env).flat_map(failing(FlatMapFunction, "flat_map", generator=True)),
    "flat_map plain generator": lambda env: numbers(env).flat_map(generates_then_fails),
    "flat_map no iterable": lambda env: numbers(env).flat_map(lambda value: 5),
    "process": lambda env: numbers(env).process(failing(ProcessFunction, "process_element")),
    "process generator": lambda env: numbers(env).process(failing(ProcessFunction, "process_element", generator=True)),
    "keyed map": lambda env: keyed(env).map(failing(MapFunction, "map")),
    "keyed filter": lambda env: keyed(env).filter(failing(FilterFunction, "filter")),
    "keyed flat_map": lambda env: keyed(env).flat_map(failing(FlatMapFunction, "flat_map", generator=True)),
    "keyed process": lambda env: keyed(env).process(failing(KeyedProcessFunction, "process_element", generator=True)),
    "keyed process without timestamps": lambda env: (
        env.from_collection(["a"])
        .key_by(lambda v: v)
        .process(failing(KeyedProcessFunction, "process_element", generator=True))
    ),
    "event timer": lambda env: keyed(env).process(SetsTimers("event")),
    "processing timer": lambda env: keyed(env).process(SetsTimers("processing")),
    "reduce": lambda env: keyed(env).reduce(failing(ReduceFunction, "reduce")),
    "sum of no numbers": lambda env: env.from_collection([("a", 1), ("a", None)]).key_by(0).sum(1),
    "reducing state": lambda env: keyed(env).process(UsesState(ReducingStateDescriptor("s", boom))),
    "aggregating state, add": lambda env: keyed(env).process(
        UsesState(AggregatingStateDescriptor("s", aggregate("add")))
    ),
    "aggregating state, get_result": lambda env: keyed(env).process(
        UsesState(AggregatingStateDescriptor("s", aggregate("get_result")))
    ),
    "co map 1": lambda env: numbers(env).connect(numbers(env)).map(failing(CoMapFunction, "map1")),
    "co map 2": lambda env: numbers(env).connect(numbers(env)).map(failing(CoMapFunction, "map2")),
    "co flat_map": lambda env: numbers(env).connect(numbers(env)).flat_map(failing(CoFlatMapFunction, "flat_map2")),
    "co process": lambda env: (
        numbers(env).connect(numbers(env)).process(failing(CoProcessFunction, "process_element1"))
    ),
    "keyed co map": lambda env: both(env).map(failing(CoMapFunction, "map2")),
    "keyed co flat_map": lambda env: both(env).flat_map(failing(CoFlatMapFunction, "flat_map1", generator=True)),
    "keyed co process": lambda env: both(env).process(failing(KeyedCoProcessFunction, "process_element2")),
    "broadcast": lambda env: beside_rules(env).process(failing(BroadcastProcessFunction, "process_element")),
    "broadcast element": lambda env: beside_rules(env).process(
        failing(BroadcastProcessFunction, "process_broadcast_element")
    ),
    "keyed broadcast": lambda env: keyed_beside_rules(env).process(
        failing(KeyedBroadcastProcessFunction, "process_element")
    ),
    "keyed broadcast element": lambda env: keyed_beside_rules(env).process(
        failing(KeyedBroadcastProcessFunction, "process_broadcast_element")
    ),
    "open": lambda env: numbers(env).map(failing(MapFunction, "open")),
    "close": lambda env: numbers(env).map(failing(MapFunction, "close")),
    "initialize_state": lambda env: numbers(env).map(Checkpointed("initialize_state")),
    "snapshot_state": lambda env: numbers(env).map(Checkpointed("snapshot_state")),
    "window process": lambda env: windowed(env).process(failing(ProcessWindowFunction, "process")),
    "window process generator": lambda env: windowed(env).process(
        failing(ProcessWindowFunction, "process", generator=True)
    ),
    "window clear": lambda env: windowed(env).process(FailingClear()),
    "window reduce": lambda env: (
        keyed(env).window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(failing(ReduceFunction, "reduce"))
    ),
    "sessions": lambda env: (
        env.from_collection([("a", 1), ("a", 25), ("a", 13)])
        .assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        .key_by(lambda record: record[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(15)))
        .aggregate(aggregate("merge"))
    ),
    "session gap": lambda env: (
        keyed(env).window(EventTimeSessionWindows.with_dynamic_gap(FailingGap())).process(Listing())
    ),
    "window assigner": lambda env: keyed(env).window(FailingAssigner(10)).process(Listing()),
    "count window": lambda env: keyed(env).count_window(2).reduce(boom),
    "sliding count window": lambda env: keyed(env).count_window(2, 1).reduce(boom),
    "window join": lambda env: joined(env).window(TumblingEventTimeWindows.of(TEN)).apply(boom),
    "co_group": lambda env: (
        numbers(env)
        .co_group(numbers(env))
        .where(lambda r: r[0])
        .equal_to(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(TEN))
        .apply(failing(CoGroupFunction, "co_group"))
    ),
    "interval join": lambda env: (
        keyed(env)
        .interval_join(keyed(env))
        .between(TEN, Time.milliseconds(20))
        .process(failing(ProcessJoinFunction, "process_element"))
    ),
    "async": lambda env: AsyncDataStream.unordered_wait(numbers(env), FailingAsync(None), Time.seconds(5), 2),
    "async no iterable": lambda env: AsyncDataStream.unordered_wait(numbers(env), FailingAsync(7), Time.seconds(5), 2),
    "apply_to_keyed_state": lambda env: keyed_beside_rules(env).process(AppliesToState()),
    **{
        f"window aggregate {method}": lambda env, method=method: windowed(env).aggregate(aggregate(method))
        for method in ("create_accumulator", "add", "get_result")
    },
    **{
        f"trigger {method}": lambda env, method=method: windowed(env).trigger(FailingTrigger(method)).process(Listing())
        for method in ("on_element", "on_event_time", "on_processing_time", "clear")
    },
    "trigger on_merge": lambda env: (
        keyed(env)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(50)))
        .trigger(FailingTrigger("on_merge"))
        .process(Listing())
    ),
    **{
        f"evictor {method}": lambda env, method=method: windowed(env).evictor(FailingEvictor(method)).process(Listing())
        for method in ("evict_before", "evict_after")
    },
    "key selector": lambda env: numbers(env).key_by(boom).process(failing(KeyedProcessFunction)),
    "partitioner": lambda env: numbers(env).partition_custom(boom, lambda record: record).map(lambda v: v),
}
NO_USER_CODE = {"sum of no numbers", "flat_map no iterable", "async no iterable"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.variants(modes=["STREAMING"])
def test_a_failing_callback_is_named(env, name):
    stream = CASES[name](env)
    operator = stream.get_transformation().name
    stream.add_sink(lambda value: None)
    with pytest.raises(PenstockError) as caught:
        env.execute()
    text = str(caught.value)
    assert f"'{operator}'" in text
    assert "penstock/runtime" not in text
    if name not in NO_USER_CODE:
        assert "boom of the user" in text
