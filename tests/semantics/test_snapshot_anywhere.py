"""Random keyed jobs, written to bytes and started again between any two records: as if nothing had happened."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import IDLE, At, Script, Wm, by_key, collected

from penstock.common import Types, WatermarkStrategy
from penstock.connectors.sinks import CollectSink
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.testing import ManualClock, MiniCluster

pytestmark = pytest.mark.exhaustive

SIDE = OutputTag("side")
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())

KEYS = st.sampled_from("abcde")
NUMBERS = st.integers(0, 30)
COMMANDS = st.tuples(
    KEYS,
    st.sampled_from(
        ["add", "append", "put", "reduce", "clear", "event", "processing", "no event", "no processing", "side"]
    ),
    NUMBERS,
)
ELEMENTS = st.one_of(COMMANDS, st.builds(At, COMMANDS, NUMBERS), st.builds(Wm, NUMBERS), st.just(IDLE))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("element"), st.integers(0, 1), ELEMENTS),
        st.tuples(st.just("rule"), NUMBERS),
        st.tuples(st.just("wait"), st.integers(1, 10)),
    ),
    max_size=25,
)


class Interpreter(KeyedProcessFunction):
    """Does what the records say to its state and timers, and shows everything it has."""

    def open(self, runtime_context: RuntimeContext):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.INT(), 0))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.reduced = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        )

    def process_element(self, value, ctx):
        key, command, number = value
        timers = ctx.timer_service()
        match command:
            case "add":
                self.value.update(self.value.value() + number)
            case "append":
                self.list.add(number)
            case "put":
                self.map.put(number % 3, number)
            case "reduce":
                self.reduced.add(number)
            case "clear":
                [self.value.clear, self.list.clear, self.map.clear, self.reduced.clear][number % 4]()
            case "event":
                timers.register_event_time_timer(number)
            case "processing":
                timers.register_processing_time_timer(timers.current_processing_time() + number)
            case "no event":
                timers.delete_event_time_timer(number)
            case "no processing":
                timers.delete_processing_time_timer(timers.current_processing_time() + number)
            case "side":
                ctx.output(SIDE, (key, number))
        yield key, "record", ctx.timestamp(), timers.current_watermark(), self.state()

    def on_timer(self, timestamp, ctx):
        self.value.update(self.value.value() + 1)
        if self.value.value() % 5 == 0:
            ctx.timer_service().register_event_time_timer(timestamp + 7)
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp, self.state()

    def state(self):
        return self.value.value(), tuple(self.list.get()), tuple(sorted(self.map.items())), self.reduced.get()


class Both(KeyedCoProcessFunction):
    """Counts what came from where."""

    def open(self, runtime_context: RuntimeContext):
        self.counts = runtime_context.get_state(ValueStateDescriptor("counts"))

    def count(self, side):
        counts = list(self.counts.value() or (0, 0))
        counts[side] += 1
        self.counts.update(tuple(counts))
        return tuple(counts)

    def process_element1(self, value, ctx):
        yield value[0], "main", self.count(0), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        yield value[0], "side", self.count(1), ctx.timer_service().current_watermark()


class Rules(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.descriptor = ValueStateDescriptor("seen", Types.INT(), 0)
        self.seen = runtime_context.get_state(self.descriptor)

    def process_element(self, value, ctx):
        self.seen.update(self.seen.value() + 1)
        yield value[0], "rules", tuple(sorted(ctx.get_broadcast_state(RULES).items())), self.seen.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value % 4, value)
        if value % 5 == 0:
            ctx.apply_to_keyed_state(self.descriptor, lambda key, state: state.clear())


class Job:
    """The job under test, with two splits of commands and a broadcast stream of rules."""

    def __init__(self, parallelism, *, cold=False):
        self.clock = ManualClock(0)
        self.cluster = MiniCluster(clock=self.clock, cold=cold)
        self.commands, self.rules = Script([], [], bounded=False), Script([], bounded=False)
        env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(parallelism)
        commands = env.from_source(self.commands, WatermarkStrategy.no_watermarks(), "commands").set_parallelism(1)
        rules = env.from_source(self.rules, WatermarkStrategy.no_watermarks(), "rules").set_parallelism(1)
        main = commands.key_by(0).process(Interpreter())
        both = main.key_by(0).connect(main.get_side_output(SIDE).key_by(0)).process(Both())
        ruled = main.key_by(0).connect(rules.broadcast(RULES)).process(Rules())
        rolling = main.map(lambda record: (record[0], 1)).key_by(0).sum(1)
        self.sinks = [CollectSink() for _ in range(4)]
        for stream, sink in zip((main, both, ruled, rolling), self.sinks, strict=True):
            stream.sink_to(sink).set_parallelism(1)
        self.graph = list(env.sinks), env.job_settings(None)
        self.job = self.cluster.start(*self.graph)

    def restart(self):
        self.job = self.cluster.start(*self.graph, snapshot=self.job.snapshot())

    def apply(self, step):
        match step:
            case ("element", split, element):
                self.commands.add(element, split=split)
            case ("rule", number):
                self.rules.add(number)
            case ("wait", milliseconds):
                self.clock.advance(milliseconds)

    def output(self):
        """What came out since the last call: the records of each sink by key, in order."""
        self.job.run()
        return [by_key(collected(sink)) for sink in self.sinks]

    def finish(self):
        self.job.drain()
        return self.output()


@pytest.mark.parametrize("parallelism", [1, 3])
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(steps=STEPS, cuts=st.sets(st.integers(0, 25)), cold=st.booleans())
def test_a_snapshot_between_any_two_records_changes_nothing(parallelism, steps, cuts, cold):
    undisturbed, disturbed = Job(parallelism), Job(parallelism, cold=cold)
    for position, step in enumerate(steps):
        if position in cuts:
            disturbed.restart()
        for job in (undisturbed, disturbed):
            job.apply(step)
        assert disturbed.output() == undisturbed.output()
    disturbed.restart()
    assert disturbed.finish() == undisturbed.finish()


@settings(max_examples=2 * settings.default.max_examples // 5)
@given(commands=st.lists(st.one_of(COMMANDS, st.builds(Wm, NUMBERS)), max_size=30), cut=st.integers(1, 30))
def test_where_batches_are_cut_changes_nothing(commands, cut):
    """One split: its records and watermarks have one order, so keyed results are the same however they are batched."""
    whole, parts = Job(2), Job(2)
    whole.commands.add(*commands)
    results = [whole.output(), whole.finish()]
    for start in range(0, len(commands), cut):
        parts.commands.add(*commands[start : start + cut])
        results.append(parts.output())
    results.append(parts.finish())

    def main_records(outputs):
        merged = {}
        for main, *_ in outputs:
            for key, records in main.items():
                merged.setdefault(key, []).extend(records)
        return merged

    assert main_records(results[:2]) == main_records(results[2:])
