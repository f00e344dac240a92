"""Several streams: union, connect, broadcast, and one stream split in two (ch. 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sensors import SensorReading, clock, stamped
from showcase import Showcase

from penstock.common import Types
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

book = Showcase(__doc__)


@book.example("E08", "Two sources, two sinks")
def two_source_even_odd(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Sums of the even and of the odd numbers of two sources, as two results of one job: one checkpoint covers all."""
    numbers = env.from_sequence(1, 6).union(env.from_sequence(7, 10))
    sums = numbers.map(lambda number: ("odd" if number % 2 else "even", number)).key_by(0).sum(1)
    return {
        "even": sums.filter(lambda result: result[0] == "even"),
        "odd": sums.filter(lambda result: result[0] == "odd"),
    }


@book.example("E14", "Union")
def union_of_cities(env: StreamExecutionEnvironment) -> DataStream:
    """All records of three streams of the same type. Nothing is said about their order, nothing is deduplicated."""
    paris = env.from_elements(("Paris", 57.2), ("Paris", 58.1))
    tokyo = env.from_elements(("Tokyo", 68.0))
    rio = env.from_elements(("Rio", 84.4), ("Rio", 84.4))
    return paris.union(tokyo, rio)


class SmokeLevel(NamedTuple):
    """From this moment on there is so much smoke."""

    timestamp: int
    level: str


SMOKE = MapStateDescriptor("smoke", Types.LONG(), Types.STRING())


class RaiseAlert(KeyedBroadcastProcessFunction):
    """Alert when it is hot while there is a lot of smoke.

    The two inputs come in no particular order. So a reading waits for the watermark to reach it: by then both inputs
    are complete up to that time, and the result does not depend on who was faster.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting", Types.LONG(), Types.DOUBLE()))

    def process_element(self, value: SensorReading, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        self.waiting.put(value.timestamp, value.temperature)
        ctx.timer_service().register_event_time_timer(value.timestamp)

    def process_broadcast_element(self, value: SmokeLevel, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(SMOKE).put(value.timestamp, value.level)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        temperature = self.waiting.get(timestamp)
        self.waiting.remove(timestamp)
        changes = [change for change in ctx.get_broadcast_state(SMOKE).items() if change[0] <= timestamp]
        _, level = max(changes, default=(0, "Low"))
        if level == "High" and temperature > 100:
            yield ctx.get_current_key(), clock(timestamp), f"Risk of fire! {temperature:.0f} °F"


@book.example("E15", "Fire alert")
def fire_alert(env: StreamExecutionEnvironment) -> DataStream:
    """Every task knows how much smoke there is (broadcast state), and compares the readings of its sensors with it."""
    readings = [
        SensorReading("sensor_1", 1_000, 104.0),  # no smoke yet
        SensorReading("sensor_2", 2_500, 71.0),  # smoke, but not hot
        SensorReading("sensor_1", 3_000, 105.0),
        SensorReading("sensor_3", 5_000, 101.0),
        SensorReading("sensor_1", 6_000, 110.0),  # the smoke is gone again
    ]
    smoke = [SmokeLevel(0, "Low"), SmokeLevel(2_000, "High"), SmokeLevel(5_500, "Low")]
    return stamped(env, readings).key_by("id").connect(stamped(env, smoke).broadcast(SMOKE)).process(RaiseAlert())


class PairByKey(CoFlatMapFunction):
    """Numbers with the name of their key, whichever of the two comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.early = runtime_context.get_list_state(ListStateDescriptor("early", Types.LONG()))

    def flat_map1(self, value: tuple[int, int]) -> Iterator[Any]:
        if self.name.value() is None:
            self.early.add(value[1])
        else:
            yield value[0], self.name.value(), value[1]

    def flat_map2(self, value: tuple[int, str]) -> Iterator[Any]:
        self.name.update(value[1])
        for number in self.early:
            yield value[0], value[1], number
        self.early.clear()


class WhoSawWhat(CoMapFunction):
    """Tags records with their side."""

    def map1(self, value: tuple[int, int]) -> Any:
        return "first", *value

    def map2(self, value: tuple[int, str]) -> Any:
        return "second", *value


@book.example("E16", "Connect, by key and with a broadcast")
def connected_streams(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """By key, records of the same key meet in one task and share state. Broadcast, each task sees all of the second."""
    numbers = env.from_elements((1, 10), (2, 20), (1, 11), (3, 30))
    names = env.from_elements((1, "one"), (2, "two"), (3, "three"))
    return {
        "by key": numbers.connect(names).key_by(0, 0).flat_map(PairByKey()),
        "second broadcast to two tasks": numbers.connect(names.broadcast()).map(WhoSawWhat()).set_parallelism(2),
    }


LARGE, SMALL = OutputTag("large", Types.LONG()), OutputTag("small", Types.LONG())


class SplitNumbers(ProcessFunction):
    """Side outputs do what split and select did in older versions of Flink: to one output, to several, to none."""

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> None:
        ctx.output(LARGE if value > 1_000 else SMALL, value)


@book.example("E17", "Split a stream")
def split_numbers(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Numbers above 1000 and the others, as two streams; their union is both again."""
    numbers = env.from_elements(7, 1_000, 1_001, 42, 5_000).process(SplitNumbers())
    large, small = numbers.get_side_output(LARGE), numbers.get_side_output(SMALL)
    return {"large": large, "small": small, "both": large.union(small)}


if __name__ == "__main__":
    raise SystemExit(book.main())
