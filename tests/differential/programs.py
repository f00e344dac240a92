"""Window programs that run in PyFlink and in Penstock alike: only the package they import differs.

    python programs.py PACKAGE OUTPUT.json

runs them all and writes, for each, its results as sorted strings. Inputs are bounded and in event-time order, so that
results do not depend on when a watermark is generated: both systems have one right answer.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = sys.argv[1] if __name__ == "__main__" else "penstock"
common = importlib.import_module(f"{PACKAGE}.common")
datastream = importlib.import_module(f"{PACKAGE}.datastream")
functions = importlib.import_module(f"{PACKAGE}.datastream.functions")
window = importlib.import_module(f"{PACKAGE}.datastream.window")
state = importlib.import_module(f"{PACKAGE}.datastream.state")
watermarks = importlib.import_module(f"{PACKAGE}.common.watermark_strategy")

Types, Time, Duration = common.Types, common.Time, common.Duration

READINGS = [(f"s{i % 3}", i * 370, i % 7) for i in range(60)]  # (sensor, ms, value)


class Stamp(watermarks.TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


class Collect(functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        bounds = context.window()
        yield key, bounds.start, bounds.end, sorted(element[2] for element in elements)


class CollectGlobal(functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, sorted(element[2] for element in elements)


class CollectAll(functions.ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield context.window().start, sum(element[2] for element in elements)


class Apply(functions.WindowFunction):
    def apply(self, key: Any, bounds: Any, inputs: Any) -> Any:
        yield key, bounds.end, len(list(inputs))


class Average(functions.AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return (accumulator[0] + value[2], accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])


class WithEnd(functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for element in elements:
            yield key, context.window().end, element


class CountPerKey(functions.KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(state.ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(value[1] // 5000 * 5000 + 4999)
        yield value[0], count

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp, self.count.value()


def keyed(env: Any, readings: Any = READINGS) -> Any:
    strategy = watermarks.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    return env.from_collection(readings).assign_timestamps_and_watermarks(strategy).key_by(lambda r: r[0])


def tumbling_reduce(env: Any) -> Any:
    windows = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(2)))
    return windows.reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))


def tumbling_aggregate(env: Any) -> Any:
    return keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(3))).aggregate(Average())


def tumbling_aggregate_and_process(env: Any) -> Any:
    windows = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(3)))
    return windows.aggregate(Average(), window_function=WithEnd())


def tumbling_offset_process(env: Any) -> Any:
    return (
        keyed(env)
        .window(window.TumblingEventTimeWindows.of(Time.seconds(5), Time.milliseconds(1500)))
        .process(Collect())
    )


def tumbling_apply(env: Any) -> Any:
    return keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(4))).apply(Apply())


def sliding_process(env: Any) -> Any:
    return keyed(env).window(window.SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2))).process(Collect())


def sliding_reduce(env: Any) -> Any:
    windows = keyed(env).window(window.SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2)))
    return windows.reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]), WithEnd())


def sliding_with_gaps(env: Any) -> Any:
    return keyed(env).window(window.SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(3))).process(Collect())


def sessions_of_single_records(env: Any) -> Any:
    return keyed(env).window(window.EventTimeSessionWindows.with_gap(Time.milliseconds(1000))).process(Collect())


def tumbling_count(env: Any) -> Any:
    return keyed(env).count_window(4).process(CollectGlobal())


def sliding_count(env: Any) -> Any:
    return keyed(env).count_window(4, 2).reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))


def count_trigger_on_time_window(env: Any) -> Any:
    windows = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(10)))
    return windows.trigger(window.CountTrigger.of(3)).process(Collect())


def purging_count_trigger(env: Any) -> Any:
    windows = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(10)))
    return windows.trigger(window.PurgingTrigger.of(window.CountTrigger.of(3))).process(Collect())


def window_all(env: Any) -> Any:
    strategy = watermarks.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stream = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy)
    return stream.window_all(window.TumblingEventTimeWindows.of(Time.seconds(5))).process(CollectAll())


def windows_in_sequence(env: Any) -> Any:
    first = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(2)))
    sums = first.reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))
    return sums.key_by(lambda r: "all").window(window.TumblingEventTimeWindows.of(Time.seconds(6))).process(Collect())


def allowed_lateness(env: Any) -> Any:
    windows = keyed(env).window(window.TumblingEventTimeWindows.of(Time.seconds(5))).allowed_lateness(2000)
    return windows.process(Collect())


def timers_and_state(env: Any) -> Any:
    return keyed(env).process(CountPerKey())


def rolling_sum(env: Any) -> Any:
    return env.from_collection(READINGS).key_by(lambda r: r[0]).sum(2)


PROGRAMS = [
    tumbling_reduce,
    tumbling_aggregate,
    tumbling_aggregate_and_process,
    tumbling_offset_process,
    tumbling_apply,
    sliding_process,
    sliding_reduce,
    sliding_with_gaps,
    sessions_of_single_records,
    tumbling_count,
    sliding_count,
    count_trigger_on_time_window,
    purging_count_trigger,
    window_all,
    windows_in_sequence,
    allowed_lateness,
    timers_and_state,
    rolling_sum,
]


def run_all() -> dict[str, list[str]]:
    results = {}
    for program in PROGRAMS:
        env = datastream.StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        with program(env).execute_and_collect() as records:
            results[program.__name__] = sorted(str(record) for record in records)
    return results


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run_all()))
