"""Nothing grows per batch or per dead key: memory, state, clocks (what never bends: bounded by what is alive)."""

import gc
import sys
import time

import pytest

from penstock.common import Duration, Time, Watermark, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.connectors import DataGeneratorSource, DiscardingSink
from penstock.datastream import (
    CoMapFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ListStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.runtime.job import batch_history, checkpoint_statistics
from penstock.testing import ManualClock, MiniCluster

pytestmark = pytest.mark.exhaustive

BATCH = 50
"""Records of a batch; one for each millisecond."""


def moving(number):
    """A key is seen five times, and never again."""
    return f"key {number // 5:06}", 1_000_000 + number  # of the same length forever


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record[1])


class OneBehind(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output):
        pass


def stream(env, strategy=MONOTONOUS):
    return env.from_source(DataGeneratorSource(moving), strategy, "numbers").key_by(lambda record: record[0])


class Forgets(KeyedProcessFunction):
    """State and timers in both time domains; everything is cleared by a timer."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all"))

    def process_element(self, value, ctx):
        self.last.update(value)
        self.all.add(value)
        service = ctx.timer_service()
        service.register_event_time_timer(value[1] + 50)
        service.register_processing_time_timer(service.current_processing_time() + 50)
        service.delete_event_time_timer(value[1] + 49)
        yield value

    def on_timer(self, timestamp, ctx):
        self.last.clear()
        self.all.clear()


class Expires(KeyedProcessFunction):
    """State that only time-to-live removes."""

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("last")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(200)).build())
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.last.update(value)
        yield value


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        seen = context.window_state().get_state(ValueStateDescriptor("seen"))
        seen.update(len(elements))
        yield key, seen.value()

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("seen")).clear()


class Sessions(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, len(elements)


class Both(CoMapFunction):
    def map1(self, value):
        return value

    map2 = map1


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def latest(left, right):
    return max(left, right)


OWN = (
    WatermarkStrategy.for_generator(lambda ctx: OneBehind())
    .with_timestamp_assigner(lambda record: record[1])
    .with_idleness(Duration.of_millis(500))
)
TWENTY, TEN, FIVE = Time.milliseconds(20), Time.milliseconds(10), Time.milliseconds(5)


def functions(env):
    yield stream(env).process(Forgets())
    yield stream(env).process(Expires())
    everything = env.from_source(DataGeneratorSource(moving), MONOTONOUS, "all").broadcast()
    yield stream(env, OWN).connect(everything).map(Both()).key_by(lambda record: record[0]).process(Forgets())


def windows(env):
    numbers = stream(env)
    yield numbers.window(TumblingEventTimeWindows.of(TWENTY)).process(Count())
    yield numbers.window(TumblingEventTimeWindows.of(TWENTY)).allowed_lateness(30).reduce(latest)
    yield numbers.window(SlidingEventTimeWindows.of(TWENTY, FIVE)).reduce(latest)
    yield numbers.window(EventTimeSessionWindows.with_gap(TEN)).process(Sessions())
    yield numbers.count_window(5).reduce(latest)


def joins(env):
    left, right = stream(env), stream(env)
    yield left.interval_join(right).between(Time.milliseconds(-5), FIVE).process(Pairs())
    joined = left.join(right).where(lambda record: record[0]).equal_to(lambda record: record[0])
    yield joined.window(TumblingEventTimeWindows.of(TWENTY)).apply(lambda one, two: (one, two))


def run_batches(job, clock, count):
    for _ in range(count):
        clock.advance(BATCH)
        assert job.run_batch()


def alive(job):
    """Python's memory blocks, and what the job keeps between batches: pages, their bytes, bytes of small states."""
    gc.collect()
    states = job.engine.channels.values()
    pages = [blob for state in states for blob in state.store.blobs.values()]
    return sys.getallocatedblocks(), len(pages), sum(map(len, pages)), sum(len(state.snapshot) for state in states)


@pytest.mark.parametrize("program", [functions, windows, joins], ids=lambda program: program.__name__)
def test_over_a_moving_key_domain_nothing_grows(program, monkeypatch):
    monkeypatch.setattr(batch_history, "_KEPT", 10)  # histories have a bound, and reach it before the first look
    monkeypatch.setattr(batch_history, "_SECONDS", 10)
    monkeypatch.setattr(checkpoint_statistics, "_FINDABLE", 10)
    monkeypatch.setattr(checkpoint_statistics, "_SECONDS", 10)
    clock = ManualClock()
    cluster = MiniCluster(clock=clock, max_records=BATCH)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    branches = list(program(env))
    for branch in branches:
        branch.sink_to(DiscardingSink())
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.progress.recent.extend((time.time(), 0, 0.0) for _ in range(job.progress.recent.maxlen))  # has a bound
    run_batches(job, clock, 60)
    before = alive(job)
    run_batches(job, clock, 100)
    after = alive(job)
    job.close()
    blocks, pages, *size = (late - early for early, late in zip(before, after, strict=True))
    keys = 100 * BATCH // 5 * len(branches)
    assert blocks < keys / 10  # what is kept for a key that is gone would be one block at least
    assert pages <= 0
    assert max(size) < 100
