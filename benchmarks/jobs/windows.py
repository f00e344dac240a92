"""(d), (e), (f), (g) Event-time windows per key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

if TYPE_CHECKING:
    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment
    from penstock.datastream.window import WindowAssigner

READING = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
COUNT_AND_SUM = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
SCATTER = 2_654_435_761
EVENTS_PER_MS = 10


class ReadingTime(TimestampAssigner):
    """The reading carries its time in its second field."""

    def extract_timestamp(self, value: tuple[int, int, float], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[1]


class Average(AggregateFunction):
    """(count, sum) to average."""

    def create_accumulator(self) -> tuple[int, float]:
        """Nothing yet."""
        return 0, 0.0

    def add(self, value: tuple[int, int, float], accumulator: tuple[int, float]) -> tuple[int, float]:
        """Add one reading."""
        return accumulator[0] + 1, accumulator[1] + value[2]

    def get_result(self, accumulator: tuple[int, float]) -> float:
        """The average of the window."""
        return accumulator[1] / accumulator[0]

    def merge(self, acc_a: tuple[int, float], acc_b: tuple[int, float]) -> tuple[int, float]:
        """Both windows together."""
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def readings(
    env: StreamExecutionEnvironment, load: Workload, name: str = "numbers", events_per_ms: int = EVENTS_PER_MS
) -> DataStream:
    """(key, event time, value), in event-time order within each split of the source.

    The source cuts the sequence into one contiguous part per subtask. Event time starts at 0 in each part, so that
    the parts advance side by side as the partitions of a log do.
    """
    keys, splits = load.keys, load.parallelism
    part = -(-load.records // splits)
    per_split = max(1, events_per_ms // splits)
    numbers = env.from_source(
        NumberSequenceSource(0, part * splits - 1), WatermarkStrategy.no_watermarks(), name, Types.LONG()
    )
    return numbers.map(
        lambda n: (n * SCATTER % keys, n % part // per_split, float(n)), output_type=READING
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(ReadingTime())
    )


def windowed(env: StreamExecutionEnvironment, load: Workload, windows: WindowAssigner[Any, Any]) -> DataStream:
    """The average of each key and window."""
    return (
        readings(env, load)
        .key_by(lambda reading: reading[0], key_type=Types.LONG())
        .window(windows)
        .aggregate(Average(), accumulator_type=COUNT_AND_SUM, output_type=Types.DOUBLE())
    )


def build_tumbling(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(d) Tumbling windows of one second."""
    return windowed(env, load, TumblingEventTimeWindows.of(Time.seconds(1)))


def build_sliding(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(e) Sliding windows of 60 seconds, one every second."""
    return windowed(env, load, SlidingEventTimeWindows.of(Time.seconds(60), Time.seconds(1)))


def build_session(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(f) Session windows: a key is active for one second in every three, so a session holds about 30 readings."""
    return (
        readings(env, load)
        .map(lambda r: (r[0] - r[0] % 3 + r[1] // 1_000 % 3, r[1], r[2]), output_type=READING)
        .key_by(lambda reading: reading[0], key_type=Types.LONG())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(500)))
        .aggregate(Average(), accumulator_type=COUNT_AND_SUM, output_type=Types.DOUBLE())
    )


def build_join(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(g) A window join: each side has half of the records, 2 a millisecond, so a key joins 2 by 2 every second.

    PyFlink has no join on DataStreams.
    """
    half = replace(load, records=load.records // 2)
    return (
        readings(env, half, "left", events_per_ms=2)
        .join(readings(env, half, "right", events_per_ms=2))
        .where(lambda reading: reading[0])
        .equal_to(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .apply(lambda left, right: (left[0], left[2], right[2]))
    )
