"""What is computed of a window: reduce, aggregate, all elements at once, or both together (ch. 6)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sensors import SensorReading, clock, stamped
from showcase import Showcase

from penstock.common import Time
from penstock.datastream import DataStream, StreamExecutionEnvironment, WindowedStream
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

book = Showcase(__doc__)

READINGS = [
    SensorReading("sensor_1", 1_000, 70.0),
    SensorReading("sensor_2", 2_000, 60.0),
    SensorReading("sensor_1", 4_000, 74.0),
    SensorReading("sensor_1", 7_000, 72.0),
    SensorReading("sensor_2", 9_000, 63.0),
    SensorReading("sensor_2", 12_000, 57.0),
    SensorReading("sensor_1", 16_000, 68.0),
    SensorReading("sensor_2", 17_000, 65.0),
]


def temperatures(env: StreamExecutionEnvironment, seconds: int) -> WindowedStream:
    """(sensor, temperature) in tumbling windows."""
    return (
        stamped(env, READINGS)
        .map(lambda reading: (reading.id, reading.temperature))
        .key_by(0)
        .window(TumblingEventTimeWindows.of(Time.seconds(seconds)))
    )


@book.example("E34", "Lowest temperature: reduce")
def min_temp_per_window(env: StreamExecutionEnvironment) -> DataStream:
    """Two elements become one of the same type. A window of 15 s keeps one value, however many readings come."""
    return temperatures(env, 15).reduce(lambda a, b: (a[0], min(a[1], b[1])))


class Average(AggregateFunction):
    """Input, accumulator and result may be of different types."""

    def create_accumulator(self) -> tuple[str, float, int]:
        return "", 0.0, 0

    def add(self, value: tuple[str, float], accumulator: tuple[str, float, int]) -> tuple[str, float, int]:
        return value[0], accumulator[1] + value[1], accumulator[2] + 1

    def get_result(self, accumulator: tuple[str, float, int]) -> tuple[str, float]:
        return accumulator[0], accumulator[1] / accumulator[2]

    def merge(self, acc_a: tuple[str, float, int], acc_b: tuple[str, float, int]) -> tuple[str, float, int]:
        return acc_a[0] or acc_b[0], acc_a[1] + acc_b[1], acc_a[2] + acc_b[2]


@book.example("E35", "Average temperature: aggregate")
def avg_temp_per_window(env: StreamExecutionEnvironment) -> DataStream:
    """The accumulator (sensor, sum, count) is all that a window of 15 s keeps."""
    return temperatures(env, 15).aggregate(Average())


class MinMaxTemp(NamedTuple):
    """Lowest and highest temperature of a sensor in a window."""

    id: str
    min: float
    max: float
    end: str


class HighAndLowTemp(ProcessWindowFunction[Any, MinMaxTemp, str, TimeWindow]):
    """Sees all elements of a window at once, and the window itself."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[MinMaxTemp]:
        values = [temperature for _, temperature in elements]
        yield MinMaxTemp(key, min(values), max(values), clock(context.window().end))


@book.example("E36", "Lowest and highest temperature: all elements")
def high_and_low_temp(env: StreamExecutionEnvironment) -> DataStream:
    """Sensor, lowest, highest, end of the window of 5 s. Every element is kept until the window fires."""
    return temperatures(env, 5).process(HighAndLowTemp())


class AssignWindowEnd(ProcessWindowFunction[Any, MinMaxTemp, str, TimeWindow]):
    """Gets one element, what reduce has left, and adds what only the window knows."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[MinMaxTemp]:
        for _, lowest, highest in elements:
            yield MinMaxTemp(key, lowest, highest, clock(context.window().end))


@book.example("E37", "Lowest and highest temperature: reduce, then process")
def min_max_incrementally(env: StreamExecutionEnvironment) -> DataStream:
    """The same results as E36, but a window keeps one value."""
    return (
        stamped(env, READINGS)
        .map(lambda reading: (reading.id, reading.temperature, reading.temperature))
        .key_by(0)
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), max(a[2], b[2])), AssignWindowEnd())
    )


class MedianAndMode(ProcessWindowFunction[Any, tuple[str, str, float, float], str, TimeWindow]):
    """Neither can be computed one element at a time."""

    def process(self, key: str, context: Any, elements: Iterable[SensorReading]) -> Iterator[tuple[Any, ...]]:
        values = [reading.temperature for reading in elements]
        yield key, clock(context.window().end), statistics.median(values), statistics.mode(values)


@book.example("E46", "Median and most frequent value")
def median_and_mode(env: StreamExecutionEnvironment) -> DataStream:
    """What needs all elements of a window. Sensor, end of the window of 10 s, median, most frequent temperature."""
    values = [70.0, 71.0, 70.0, 75.0, 90.0, 65.0, 66.0, 66.0, 67.0]
    readings = [SensorReading("sensor_1", 2_000 * step, value) for step, value in enumerate(values)]
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    return stamped(env, readings).key_by("id").window(windows).process(MedianAndMode())


if __name__ == "__main__":
    raise SystemExit(book.main())
