"""Three programs with PyFlink's names. short_forms.py has the same in short forms; the job graphs are the same."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueState, ValueStateDescriptor
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows


@dataclass
class Reading:
    sensor: str
    at: int  # milliseconds since the epoch
    celsius: float


# 1. The average of each sensor and second.


class Average(AggregateFunction[Reading, tuple[float, int], float]):
    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Reading, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.celsius, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithSensor(ProcessWindowFunction[float, tuple[str, float], str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterable[tuple[str, float]]:
        for average in elements:
            yield key, average


def averages(readings: DataStream[Reading]) -> DataStream[tuple[str, float]]:
    windows = readings.key_by(lambda r: r.sensor).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    return windows.aggregate(Average(), WithSensor())


# 2. The running average of each sensor: state.


@dataclass
class Total:
    celsius: float = 0.0
    count: int = 0


class RunningAverage(KeyedProcessFunction[str, Reading, tuple[str, float]]):
    total: ValueState[Total]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("state"))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[str, float]]:
        total = self.total.value() or Total()
        total.celsius += value.celsius
        total.count += 1
        self.total.update(total)
        yield value.sensor, total.celsius / total.count


def running_averages(readings: DataStream[Reading]) -> DataStream[tuple[str, float]]:
    return readings.key_by(lambda r: r.sensor).process(RunningAverage())


# 3. An alert when a sensor is silent for ten seconds: timers.


class Silence(KeyedProcessFunction[str, Reading, str]):
    deadline: ValueState[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.deadline = runtime_context.get_state(ValueStateDescriptor("deadline", Types.LONG()))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterable[str] | None:
        before, timestamp = self.deadline.value(), ctx.timestamp()
        assert timestamp is not None
        if before is not None:
            ctx.timer_service().delete_event_time_timer(before)
        self.deadline.update(timestamp + 10_000)
        ctx.timer_service().register_event_time_timer(timestamp + 10_000)
        return None

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[str]:
        yield f"{ctx.get_current_key()} is silent"


def alerts(readings: DataStream[Reading]) -> DataStream[str]:
    return readings.key_by(lambda r: r.sensor).process(Silence())


SAMPLE = [
    Reading("attic", 100, 20.0),
    Reading("attic", 700, 22.0),
    Reading("cellar", 900, 10.0),
    Reading("attic", 9_500, 24.0),
]


def main() -> None:
    """Run the three programs as one job."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    up_to_1s_late = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        lambda reading, _: reading.at
    )
    readings = env.from_collection(SAMPLE).assign_timestamps_and_watermarks(up_to_1s_late)
    averages(readings).print("average")
    running_averages(readings).print("running average")
    alerts(readings).print("alert")
    env.execute("three programs")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
