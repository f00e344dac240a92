"""A job that is stopped with a savepoint and continued at another parallelism gives what it would have given."""

import pytest
from support import At, Script, Wm, collected

from penstock.common import Time, Types, WatermarkStrategy
from penstock.connectors.sinks import CollectSink
from penstock.core.window import CountTrigger, GlobalWindows
from penstock.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.savepoint.manifest import verify
from penstock.testing import ManualClock, MiniCluster

pytestmark = pytest.mark.exhaustive

KEYS = [f"key-{number}" for number in range(11)]


def segment(start):
    """Records of all keys with timestamps from `start`, then a watermark a little behind."""
    elements = [At((key, start + 7 * n + i), start + 7 * n + i) for n in range(3) for i, key in enumerate(KEYS)]
    return [*elements, Wm(start + 15)]


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        number = value[1] if isinstance(value, tuple) else value
        return accumulator[0] + number, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class EveryKind(KeyedProcessFunction):
    """All kinds of keyed state, with and without TTL, and timers in both time domains."""

    def open(self, runtime_context):
        ttl = StateTtlConfig.new_builder(Time.hours(1)).build()
        expiring = ValueStateDescriptor("expiring", Types.LONG())
        expiring.enable_time_to_live(ttl)
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG(), default_value=0))
        self.expiring = runtime_context.get_state(expiring)
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.LONG(), Types.STRING()))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.average = runtime_context.get_aggregating_state(AggregatingStateDescriptor("average", Average()))

    def process_element(self, value, ctx):
        key, number = value
        self.value.update(self.value.value() + 1)
        self.expiring.update((self.expiring.value() or 0) + 1)
        self.list.add(number)
        self.map.put(number % 5, key)
        self.sum.add(number)
        self.average.add(number)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 40)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1500)

    def on_timer(self, timestamp, ctx):
        yield (
            ctx.get_current_key(),
            ctx.time_domain().name,
            timestamp,
            self.value.value(),
            self.expiring.value(),
            sorted(self.list.get()),
            sorted(self.map.items()),
            self.sum.get(),
            self.average.get(),
        )


class Elements(ProcessWindowFunction):
    """Also keeps state of its own, per window and per key."""

    def process(self, key, context, elements):
        fired = context.global_state().get_state(ValueStateDescriptor("fired", default_value=0))
        fired.update(fired.value() + 1)
        seen = context.window_state().get_state(ValueStateDescriptor("seen", default_value=0))
        seen.update(seen.value() + 1)
        yield key, fired.value(), seen.value(), sorted(elements)


class Sessions(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, sorted(elements)


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def tumbling(stream):
    return stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(25))).aggregate(Average())


def tumbling_with_lateness(stream):
    windows = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    return windows.allowed_lateness(20).process(Elements())


def sliding(stream):
    windows = stream.key_by(lambda v: v[0]).window(
        SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(10))
    )
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))


def sliding_lists(stream):
    windows = stream.key_by(lambda v: v[0]).window(
        SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(20))
    )
    return windows.process(Elements())


def sessions(stream):
    windows = stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(9)))
    return windows.process(Sessions())


def counted(stream):
    return stream.key_by(lambda v: v[0]).count_window(4).reduce(lambda a, b: (a[0], a[1] + b[1]))


def triggered(stream):
    windows = stream.key_by(lambda v: v[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(4))
    return windows.aggregate(Average())


def every_kind(stream):
    return stream.key_by(lambda v: v[0]).process(EveryKind())


def two_stages(stream):
    counts = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    sums = counts.reduce(lambda a, b: (a[0], a[1] + b[1])).key_by(lambda v: v[0][-1])
    return sums.window(TumblingEventTimeWindows.of(Time.milliseconds(60))).reduce(lambda a, b: ("*", a[1] + b[1]))


def interval_join(stream):
    left = stream.filter(lambda v: v[1] % 2 == 0).key_by(lambda v: v[1] % 7)
    right = stream.filter(lambda v: v[1] % 2).key_by(lambda v: v[1] % 7)
    return left.interval_join(right).between(Time.milliseconds(-30), Time.milliseconds(30)).process(Pair())


def rolling(stream):
    return stream.key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


PROGRAMS = [
    tumbling,
    tumbling_with_lateness,
    sliding,
    sliding_lists,
    sessions,
    counted,
    triggered,
    every_kind,
    two_stages,
    interval_join,
    rolling,
]


class Run:
    """A job over a scripted source that can be stopped and started again."""

    def __init__(self, program, *, cold=False):
        self.program = program
        self.clock = ManualClock(1_000)
        self.cold = cold
        self.source = Script([], [], bounded=False)
        self.sink = CollectSink()
        self.job = None

    def start(self, parallelism, savepoint=None):
        cluster = MiniCluster(clock=self.clock, cold=self.cold)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
        stream = env.from_source(self.source, WatermarkStrategy.no_watermarks(), "Script")
        self.program(stream).sink_to(self.sink).set_parallelism(1)
        self.job = cluster.start(list(env.sinks), env.job_settings("job"), savepoint=savepoint)

    def feed(self, start):
        for split in (0, 1):
            self.source.add(*segment(start), split=split)
        self.clock.advance(1_000)
        self.job.run()

    def records(self):
        return sorted(collected(self.sink), key=repr)


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_savepoints_at_parallelism_1_3_2_change_nothing(program, cold, tmp_path):
    undisturbed = Run(program)
    undisturbed.start(1)
    for start in (0, 50, 100, 150):
        undisturbed.feed(start)
    undisturbed.job.drain()

    run = Run(program, cold=cold)
    run.start(1)
    run.feed(0)
    run.start(3, run.job.stop_with_savepoint(str(tmp_path)))
    run.feed(50)
    run.start(2, run.job.stop_with_savepoint(str(tmp_path)))
    run.feed(100)
    run.start(2, run.job.stop_with_savepoint(str(tmp_path)))
    run.feed(150)
    run.job.drain()
    expected = undisturbed.records()
    assert expected
    assert run.records() == expected


def test_a_job_runs_on_after_a_savepoint_and_the_savepoint_stays_as_it_was(tmp_path):
    run = Run(every_kind)
    run.start(2)
    run.feed(0)
    path = run.job.savepoint(str(tmp_path))
    run.records()
    run.feed(50)
    later = run.records()
    again = Run(every_kind)
    again.source, again.clock = run.source, ManualClock(2_000)
    again.start(3, path)
    again.clock.advance(1_000)
    again.job.run()
    assert again.records() == later


def test_draining_fires_everything_before_the_job_ends(tmp_path):
    run = Run(tumbling)
    run.start(2)
    run.feed(0)
    undrained = len(run.records())
    run.job.stop_with_savepoint(str(tmp_path), drain=True)
    assert run.job.finished
    assert undrained < len(KEYS) <= len(run.records())


def test_who_asked_before_a_job_is_drained_gets_a_savepoint_that_can_be_continued(tmp_path):
    run = Run(tumbling)
    run.start(2)
    run.feed(0)
    asked = [run.job.life.savepoints.submit(str(tmp_path), drain=drain) for drain in (False, False, True)]
    run.job.run()
    assert run.job.finished
    assert [verify(ticket.future.result()).drained for ticket in asked] == [False, False, True]


def test_the_splits_of_a_source_stay_as_they_were(tmp_path):
    sink, path, cluster = CollectSink(), None, MiniCluster(clock=ManualClock(), max_records=20)
    for parallelism in (2, 3, 1, 4):
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
        env.from_sequence(1, 500).uid("numbers").key_by(lambda n: n % 5).sink_to(sink)
        job = cluster.start(list(env.sinks), env.job_settings("job"), savepoint=path)
        for _ in range(3):
            job.run_batch()
        path = job.stop_with_savepoint(str(tmp_path))
    again = cluster.start(list(env.sinks), env.job_settings("job"), savepoint=path)
    again.run_to_end()
    assert sorted(collected(sink)) == list(range(1, 501))


@pytest.fixture(scope="module")
def undisturbed_results():
    """Results of some programs that run without interruption."""
    results = {}
    for program in (every_kind, sessions, tumbling_with_lateness, two_stages):
        run = Run(program)
        run.start(1)
        for start in (0, 50, 100):
            run.feed(start)
        run.job.drain()
        results[program] = run.records()
    return results


@pytest.mark.parametrize("parallelism", range(1, 9))
def test_a_savepoint_is_restored_at_every_parallelism(parallelism, undisturbed_results, tmp_path):
    for program, expected in undisturbed_results.items():
        run = Run(program)
        run.start(3)
        run.feed(0)
        run.start(parallelism, run.job.stop_with_savepoint(str(tmp_path)))
        run.feed(50)
        run.start(9 - parallelism, run.job.stop_with_savepoint(str(tmp_path)))
        run.feed(100)
        run.job.drain()
        assert run.records() == expected
