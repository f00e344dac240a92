"""Timestamps and watermarks: the built-in strategies, and custom generators (ch. 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sensors import MINUTE, SECOND, SensorReading, clock, event_time
from showcase import Showcase

from penstock.common import Configuration, Duration, Time, Watermark, WatermarkGenerator, WatermarkStrategy
from penstock.common.watermark import MIN_WATERMARK
from penstock.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import ProcessFunction, ProcessWindowFunction
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

book = Showcase(__doc__)

# In the order of arrival: some are behind the one before them, by 50 seconds at most.
READINGS = [
    SensorReading("sensor_1", 10 * SECOND, 65.0),
    SensorReading("sensor_2", 65 * SECOND, 71.0),
    SensorReading("sensor_1", 15 * SECOND, 66.0),
    SensorReading("sensor_2", 55 * SECOND, 72.0),
    SensorReading("sensor_1", 130 * SECOND, 67.0),
    SensorReading("sensor_2", 90 * SECOND, 73.0),
]


class Count(AggregateFunction):
    """How many elements."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithEnd(ProcessWindowFunction[int, tuple[str, str, int], str, TimeWindow]):
    """The result with its key and the end of its window."""

    def process(self, key: str, context: Any, elements: Any) -> Iterator[tuple[str, str, int]]:
        yield key, clock(context.window().end), *elements


def count_per_minute(readings: DataStream) -> DataStream:
    """Complete only if the watermarks leave enough time."""
    return readings.key_by("id").window(TumblingEventTimeWindows.of(Time.minutes(1))).aggregate(Count(), WithEnd())


class OneMinuteBehind(WatermarkGenerator):
    """Asked now and then, says: the latest timestamp, less one minute."""

    def __init__(self) -> None:
        self.latest: int | None = None

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.latest = event_timestamp if self.latest is None else max(self.latest, event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        # Nothing before the first record. A start value of -2**63 would wrap around when a minute is subtracted, and
        # everything that follows would be late.
        if self.latest is not None:
            output.emit_watermark(Watermark(self.latest - MINUTE))


PERIODIC = WatermarkStrategy.for_generator(lambda ctx: OneMinuteBehind()).with_timestamp_assigner(event_time)


@book.example("E25", "A periodic generator")
def periodic_assigner(env: StreamExecutionEnvironment) -> DataStream:
    """Watermarks one minute behind: readings that come up to a minute late are counted. Sensor, window end, count."""
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(PERIODIC).set_parallelism(1)
    return count_per_minute(readings)


class OnlyFromSensor1(WatermarkGenerator):
    """Emits a watermark right behind each reading of one sensor, and none for others."""

    def on_event(self, event: SensorReading, event_timestamp: int, output: Any) -> None:
        if event.id == "sensor_1":
            output.emit_watermark(Watermark(event_timestamp - MINUTE))

    def on_periodic_emit(self, output: Any) -> None:
        pass


PUNCTUATED = WatermarkStrategy.for_generator(lambda ctx: OnlyFromSensor1()).with_timestamp_assigner(event_time)


class WithWatermark(ProcessFunction):
    """Shows what time it was, in event time, when a record came."""

    def process_element(self, value: SensorReading, ctx: ProcessFunction.Context) -> Iterator[Any]:
        watermark = ctx.timer_service().current_watermark()
        seconds = None if watermark == MIN_WATERMARK else watermark // SECOND
        yield value.timestamp // SECOND, value.id, seconds


@book.example("E26", "A punctuated generator")
def punctuated_assigner(env: StreamExecutionEnvironment) -> DataStream:
    """Reading's second, sensor, watermark (in seconds) before it: only sensor_1 moves it, and it never goes back."""
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(PUNCTUATED).set_parallelism(1)
    return readings.process(WithWatermark()).set_parallelism(1)


@book.example("E27", "The built-in strategies")
def built_in_strategies(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """For records that are out of order by up to a bound, and for records in order. Sensor, window end, count."""
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(50))
    ascending = WatermarkStrategy.for_monotonous_timestamps()
    as_they_come = env.from_collection(READINGS)
    in_order = env.from_collection(sorted(READINGS, key=event_time))
    return {
        "bounded out-of-orderness": count_per_minute(
            as_they_come.assign_timestamps_and_watermarks(bounded.with_timestamp_assigner(event_time))
        ),
        "ascending timestamps": count_per_minute(
            in_order.assign_timestamps_and_watermarks(ascending.with_timestamp_assigner(event_time))
        ),
    }


class Tick(NamedTuple):
    """A record of one of four partitions. The watermark of the partition follows right behind it."""

    number: int
    partition: int
    timestamp: int


TICKS = [
    Tick(number, partition, timestamp)
    for number, (partition, timestamp) in enumerate(
        [(0, 2), (1, 4), (2, 3), (3, 6), (0, 4), (1, 7), (2, 6), (3, 9), (0, 8)]
    )
]


class AtEveryTick(WatermarkGenerator):
    """Each record is the last of its time in its partition."""

    def on_event(self, event: Tick, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        pass


class WithClock(ProcessFunction):
    """Shows the clock of the task as a record finds it."""

    def process_element(self, value: Tick, ctx: ProcessFunction.Context) -> Iterator[Any]:
        watermark = ctx.timer_service().current_watermark()
        yield value.number, value.partition, value.timestamp, "-" if watermark == MIN_WATERMARK else watermark


@book.example("E47", "A task with four inputs", own_job=True)
def four_partitions(env: StreamExecutionEnvironment) -> DataStream:
    """The clock of a task is that of its slowest input. Record, partition, watermark behind it, clock before it.

    Four tasks send records and watermarks to three; each of the three hears all watermarks. There is no clock before
    every input has sent one. The sixth record moves its partition, but not the clock.
    """
    record_by_record = Configuration()
    record_by_record.set_string("penstock.batch.max-records", "1")
    env.configure(record_by_record)
    ticks = WatermarkStrategy.for_generator(lambda ctx: AtEveryTick()).with_timestamp_assigner(event_time)
    return (
        env.from_collection(TICKS)
        .partition_custom(lambda partition, tasks: partition, lambda tick: tick.partition)
        .assign_timestamps_and_watermarks(ticks)
        .set_parallelism(4)
        .rebalance()
        .process(WithClock())
        .set_parallelism(3)
    )


if __name__ == "__main__":
    raise SystemExit(book.main())
