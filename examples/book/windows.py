"""Which windows there are: tumbling, sliding, sessions, counts; in event time and by the clock (ch. 2 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sensors import MINUTE, SensorReading, at, clock, live, stamped
from showcase import Showcase

from penstock.common import Time
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, ProcessAllWindowFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

book = Showcase(__doc__)


class Count(AggregateFunction):
    """How many elements; merge makes it fit for sessions too."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction[Any, tuple[Any, ...], str, TimeWindow]):
    """The aggregate of a window, with its key and the window's start and end."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        window = context.window()
        for aggregate in elements:  # there is exactly one
            yield key, clock(window.start), clock(window.end), aggregate


class Pop(NamedTuple):
    """A player popped a bubble: it happens in the game at one time and arrives here at another."""

    team: str
    popped_at: int
    arrived_at: int


def pops() -> list[Pop]:
    """A minute of play, in the order of arrival.

    Red pops ten bubbles a second. Half of red sits in a train and goes into a tunnel: what they pop there arrives half
    a minute after the minute is over. Blue pops eight a second.
    """
    played = []
    for tick in range(600):
        popped_at = at(12) + tick * 100
        in_tunnel = tick % 2 == 1 and tick > 200
        played.append(Pop("red", popped_at, at(12, 1, 30) + tick if in_tunnel else popped_at))
        if tick % 5:
            played.append(Pop("blue", popped_at, popped_at))
    return sorted(played, key=lambda pop: pop.arrived_at)


def level_ups(played: DataStream) -> DataStream:
    """Teams that popped 500 bubbles in a minute."""
    per_minute = played.key_by("team").window(TumblingEventTimeWindows.of(Time.minutes(1)))
    return per_minute.aggregate(Count(), WithWindow()).filter(lambda result: result[3] >= 500)


@book.example("E03", "A game where players lose the network")
def mobile_game(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """500 bubbles in a minute make a level. By the time of play red has it; by the time of arrival it would not."""
    return {
        "by the time of play": level_ups(stamped(env, pops(), 2 * MINUTE, lambda pop: pop.popped_at)),
        "by the time of arrival": level_ups(stamped(env, pops(), 0, lambda pop: pop.arrived_at)),
    }


class AsList(ProcessAllWindowFunction):
    """All elements of a window."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        yield " ".join(map(str, elements))


class AsListByKey(ProcessWindowFunction):
    """All elements of a window of a key."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[str, str]]:
        yield key, " ".join(str(number) for _, number in elements)


@book.example("E05", "Count windows")
def count_windows(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Windows by number of elements: one that is not full does not fire, a sliding one fires after every slide."""
    numbers = env.from_collection(range(1, 10))
    colours = env.from_elements(("red", 1), ("blue", 2), ("red", 3), ("blue", 4), ("red", 5))
    spelled_out = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(4))
    return {
        "tumbling, 4": numbers.count_window_all(4).process(AsList()),
        "sliding, 4 after every 3": numbers.count_window_all(4, 3).process(AsList()),
        "the same, spelled out": spelled_out.process(AsList()),
        "by colour, 2": colours.key_by(0).count_window(2).process(AsListByKey()),
    }


@book.example("E31", "Tumbling windows", own_job=True)
def tumbling_windows(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Windows begin at full units since the epoch, shifted by the offset; the end does not belong to the window.

    By the clock, results differ from run to run: five records a second come in live, for four seconds.
    """
    by_second = [SensorReading("sensor_1", timestamp, 0.0) for timestamp in (0, 999, 1_000, 2_500)]
    by_hour = [SensorReading("sensor_1", timestamp, 0.0) for timestamp in (at(8, 14, 59.999), at(8, 15), at(9, 14))]
    with_offset = TumblingEventTimeWindows.of(Time.hours(1), Time.minutes(15))
    by_clock = live(env, [[SensorReading("sensor_1", 0, 0.0)]] * 20, per_second=5)
    return {
        "event time, 1 s": counts(stamped(env, by_second), TumblingEventTimeWindows.of(Time.seconds(1))),
        "event time, 1 h from a quarter past": counts(stamped(env, by_hour), with_offset),
        "processing time, 1 s": (
            by_clock.key_by("id").window(TumblingProcessingTimeWindows.of(Time.seconds(1))).aggregate(Count())
        ),
    }


def counts(readings: DataStream, assigner: Any) -> DataStream:
    """How many readings of each sensor are in each window."""
    return readings.key_by("id").window(assigner).aggregate(Count(), WithWindow())


@book.example("E32", "Sliding windows")
def sliding_windows(env: StreamExecutionEnvironment) -> DataStream:
    """An hour, every quarter of an hour: each reading is in four windows."""
    readings = [SensorReading("sensor_1", at(9), 0.0), SensorReading("sensor_1", at(9, 20), 0.0)]
    return counts(stamped(env, readings), SlidingEventTimeWindows.of(Time.hours(1), Time.minutes(15)))


@book.example("E33", "Session windows")
def session_windows(env: StreamExecutionEnvironment) -> DataStream:
    """A session ends after a quarter of an hour without a reading: exactly a quarter still is the same session.

    The reading of sensor_2 at 08:10 comes last, and makes one session of two.
    """
    times = [("sensor_1", at(8)), ("sensor_1", at(8, 10)), ("sensor_1", at(8, 25)), ("sensor_1", at(9))]
    times += [("sensor_2", at(8)), ("sensor_2", at(8, 20)), ("sensor_2", at(8, 10))]
    readings = [SensorReading(sensor, timestamp, 0.0) for sensor, timestamp in times]
    return counts(stamped(env, readings, delay=90 * MINUTE), EventTimeSessionWindows.with_gap(Time.minutes(15)))


@book.example("E45", "Vehicles at an intersection")
def vehicle_count(env: StreamExecutionEnvironment) -> DataStream:
    """Detectors report how many vehicles passed. Intersection, time of the first report, vehicles in five minutes."""
    reports = [
        ("Main and 1st", at(8, 0, 30), 4),
        ("Main and 2nd", at(8, 1), 7),
        ("Main and 1st", at(8, 4, 59), 3),
        ("Main and 1st", at(8, 5), 6),
        ("Main and 2nd", at(8, 9), 1),
    ]
    windows = TumblingEventTimeWindows.of(Time.minutes(5))
    per_window = stamped(env, reports, timestamp=lambda report: report[1]).key_by(0).window(windows).sum(2)
    return per_window.map(lambda report: (report[0], clock(report[1]), report[2]))


if __name__ == "__main__":
    raise SystemExit(book.main())
