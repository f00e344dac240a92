"""The job whose savepoint is kept in tests/fixtures, as it was written by the first version of the format.

To write one for a new version: ``python tests/runtime/savepoint/fixture_job.py tests/fixtures/savepoint-v2``, with
``src`` and ``tests/semantics`` on the path. Those of older versions stay as they are.
"""

import queue
import sys
from pathlib import Path

from support import At, Script, Wm

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.connectors.sinks import CollectSink
from penstock.core.window import CountTrigger, GlobalWindows
from penstock.datastream import AggregateFunction, KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.functions import CheckpointedFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.testing import ManualClock, MiniCluster

KEYS = ["a", ("b", 1), 3]
BEFORE = [At((key, n), 10 * n) for n in range(1, 4) for key in KEYS]
AFTER = [At((key, n), 10 * n) for n in range(4, 6) for key in KEYS]


class Product(AggregateFunction):
    def create_accumulator(self):
        return [1]

    def add(self, value, accumulator):
        accumulator[0] *= value[1] if isinstance(value, tuple) else value
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, a, b):
        return [a[0] * b[0]]


class EveryKind(KeyedProcessFunction):
    def open(self, runtime_context):
        ttl = StateTtlConfig.new_builder(Time.days(10_000)).build()
        expiring = MapStateDescriptor("expiring")
        expiring.enable_time_to_live(ttl)
        row = Types.ROW_NAMED(["number", "key"], [Types.LONG(), Types.STRING()])
        self.row = runtime_context.get_state(ValueStateDescriptor("row", row))
        self.stamped = runtime_context.get_list_state(ListStateDescriptor("dataclasses"))
        self.expiring = runtime_context.get_map_state(expiring)
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.product = runtime_context.get_aggregating_state(AggregatingStateDescriptor("product", Product()))

    def process_element(self, value, ctx):
        key, number = value
        before = self.row.value()
        largest = number if before is None else max(number, before.number)
        self.row.update(Row(number=largest, key=str(key)))
        self.stamped.add(At(value, ctx.timestamp()))
        self.expiring.put(number, [number])
        self.sum.add(number)
        self.product.add(number)
        ctx.timer_service().register_event_time_timer(60)
        ctx.timer_service().register_processing_time_timer(9_000)

    def on_timer(self, timestamp, ctx):
        yield (
            str(ctx.get_current_key()),
            timestamp,
            self.row.value(),
            len(list(self.stamped.get())),
            sorted(self.expiring.keys()),
            self.sum.get(),
            self.product.get(),
        )


class Listed(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split"))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.seen = list(self.split.get())

    def snapshot_state(self, context):
        self.split.update(self.seen)
        self.union.update(self.seen[-1:])

    def map(self, value):
        self.seen.append(value[1])
        return value


class FixtureJob:
    """The job, from the beginning or from a savepoint."""

    def __init__(self, parallelism, elements, savepoint=None):
        self.sink = CollectSink()
        cluster = MiniCluster(clock=ManualClock(1_000))
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
        source = Script(elements, bounded=False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Script").uid("script")
        listed = stream.rebalance().map(Listed()).uid("listed")
        keyed = listed.key_by(lambda value: value[0])
        add = _add

        def window(assigner):
            return keyed.window(assigner)

        results = [
            keyed.process(EveryKind()).uid("kinds"),
            window(TumblingEventTimeWindows.of(Time.milliseconds(50))).aggregate(Product()).uid("tumbling"),
            window(SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(20))).reduce(add).uid("sliding"),
            window(EventTimeSessionWindows.with_gap(Time.milliseconds(15))).reduce(add).uid("sessions"),
            window(GlobalWindows.create()).trigger(CountTrigger.of(5)).reduce(add).uid("counted"),
        ]
        texts = [result.map(str) for result in results]
        texts[0].union(*texts[1:]).sink_to(self.sink).set_parallelism(1)
        self.job = cluster.start(list(env.sinks), env.job_settings("fixture"), savepoint=savepoint)
        self.job.run()

    def records(self):
        found = []
        while True:
            try:
                found += self.sink.records.get_nowait()
            except queue.Empty:
                return sorted(found)


def _add(a, b):
    return a[0], a[1] + b[1]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    path = FixtureJob(2, [*BEFORE, Wm(12)]).job.stop_with_savepoint(str(target.parent))
    Path(path).rename(target)
