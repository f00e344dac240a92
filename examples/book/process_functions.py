"""Process functions: state, timers, side outputs, two inputs (ch. 2 and 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sensors import MINUTE, SECOND, SensorReading, at, clock, live, stamped
from showcase import Showcase

from penstock.common import Types
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from penstock.datastream.state import ValueStateDescriptor

book = Showcase(__doc__)


class Observation(NamedTuple):
    """What a detector in a room tells: a temperature, or that there is smoke."""

    room: str
    timestamp: int
    kind: str
    value: float = 0.0


class HeatThenSmoke(KeyedProcessFunction):
    """Alert if smoke follows a high temperature within ten minutes."""

    HIGH = 100.0
    MEMORY = 10 * MINUTE

    def open(self, runtime_context: RuntimeContext) -> None:
        self.hot_at = runtime_context.get_state(ValueStateDescriptor("hot-at", Types.LONG()))

    def process_element(self, value: Observation, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        hot_at = self.hot_at.value()
        if value.kind == "smoke":
            # Timers only clean up. Whether it is in time is decided by timestamps: the watermark may lag behind.
            if hot_at is not None and value.timestamp - hot_at <= self.MEMORY:
                yield value.room, clock(value.timestamp), f"smoke, and it was hot at {clock(hot_at)}"
        elif value.value > self.HIGH:
            self.hot_at.update(value.timestamp)
            ctx.timer_service().register_event_time_timer(value.timestamp + self.MEMORY)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        if self.hot_at.value() == timestamp - self.MEMORY:  # it has not been hot again since
            self.hot_at.clear()


@book.example("E06", "Heat, then smoke")
def heat_then_smoke(env: StreamExecutionEnvironment) -> DataStream:
    """Remembers a high temperature for ten minutes of event time, and forgets it by a timer."""
    observations = [
        Observation("kitchen", at(8, 0), "temperature", 120.0),
        Observation("cellar", at(8, 1), "temperature", 110.0),
        Observation("attic", at(8, 2), "smoke"),  # not hot
        Observation("kitchen", at(8, 10), "smoke"),  # just in time
        Observation("cellar", at(8, 12), "smoke"),  # too late
        Observation("cellar", at(8, 20), "temperature", 130.0),
        Observation("cellar", at(8, 21), "smoke"),
    ]
    return stamped(env, observations).key_by("room").process(HeatThenSmoke())


class TempIncreaseAlert(KeyedProcessFunction):
    """Warns if the temperature of a sensor does not fall for one second of processing time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE(), default_value=0.0))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG(), default_value=0))

    def process_element(self, value: SensorReading, ctx: KeyedProcessFunction.Context) -> None:
        previous, timer = self.last.value(), self.timer.value()
        self.last.update(value.temperature)
        if previous == 0.0 or value.temperature < previous:
            ctx.timer_service().delete_processing_time_timer(timer)  # harmless if there is none
            self.timer.clear()
        elif value.temperature > previous and timer == 0:
            timer = ctx.timer_service().current_processing_time() + SECOND
            ctx.timer_service().register_processing_time_timer(timer)
            self.timer.update(timer)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "rising for one second"
        self.timer.clear()  # the next rise starts the next second


def rising_and_wavering(steps: int) -> list[list[SensorReading]]:
    """In every step sensor_1 rises, and sensor_2 goes up and down; at last both fall."""
    rising = [SensorReading("sensor_1", 0, 60.0 + step) for step in range(steps)]
    wavering = [SensorReading("sensor_2", 0, 61.0), SensorReading("sensor_2", 0, 60.0)]
    return [[reading, *wavering] for reading in rising] + [[SensorReading(f"sensor_{n}", 0, 50.0) for n in (1, 2)]]


@book.example("E28", "Warn of rising temperatures", own_job=True)
def temp_increase_alert(env: StreamExecutionEnvironment) -> DataStream:
    """A timer a second ahead, deleted when the temperature falls. Runs live for some seconds, so results may differ."""
    return live(env, rising_and_wavering(steps=15), per_second=5).key_by("id").process(TempIncreaseAlert())


FREEZING_ALARMS = OutputTag("freezing-alarms", Types.STRING())


class FreezingMonitor(ProcessFunction):
    """Passes every reading on, with an alarm to the side for those below the freezing point."""

    def process_element(self, value: SensorReading, ctx: ProcessFunction.Context) -> Iterator[SensorReading]:
        if value.temperature < 32.0:
            ctx.output(FREEZING_ALARMS, f"Freezing alarm for {value.id}")
        yield value


@book.example("E29", "Freezing alarms")
def freezing_alarms(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """One operator, two streams of different types: its results, and a side output."""
    readings = [
        SensorReading("sensor_1", 1_000, 33.5),
        SensorReading("sensor_2", 2_000, 31.9),
        SensorReading("sensor_1", 3_000, 32.0),
        SensorReading("sensor_3", 4_000, -4.0),
    ]
    monitored = env.from_collection(readings).process(FreezingMonitor())
    return {"monitored readings": monitored, "alarms": monitored.get_side_output(FREEZING_ALARMS)}


class ReadingFilter(KeyedCoProcessFunction):
    """Forwards readings of a sensor while its switch is on; a switch (sensor, milliseconds) goes off by itself."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.on = runtime_context.get_state(ValueStateDescriptor("on", Types.BOOLEAN(), default_value=False))
        self.off_at = runtime_context.get_state(ValueStateDescriptor("off-at", Types.LONG(), default_value=0))

    def process_element1(self, value: SensorReading, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        if self.on.value():
            yield value

    def process_element2(self, value: tuple[str, int], ctx: KeyedCoProcessFunction.Context) -> None:
        self.on.update(True)
        off_at = ctx.timer_service().current_processing_time() + value[1]
        if off_at > self.off_at.value():  # a longer switch extends a shorter one, never the other way round
            # The old timer must go in its own domain, processing time: left alone, it would switch off too early.
            ctx.timer_service().delete_processing_time_timer(self.off_at.value())
            ctx.timer_service().register_processing_time_timer(off_at)
            self.off_at.update(off_at)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> None:
        self.on.clear()
        self.off_at.clear()


def filtered(readings: DataStream, switches: DataStream) -> DataStream:
    """Readings and switches meet by sensor."""
    return readings.connect(switches).key_by("id", 0).process(ReadingFilter())


@book.example("E30", "Forward readings for a while", own_job=True)
def reading_filter(env: StreamExecutionEnvironment) -> DataStream:
    """Switches one sensor on for 1 s, another for 60 s, a third not at all. Runs live for some seconds.

    Last column: the number of the reading. There are five a second.
    """
    steps = [[SensorReading(f"sensor_{n}", 0, float(step)) for n in (1, 2, 7)] for step in range(15)]
    switches = env.from_elements(("sensor_2", 1 * SECOND), ("sensor_7", 60 * SECOND))
    return filtered(live(env, steps, per_second=5), switches)


if __name__ == "__main__":
    raise SystemExit(book.main())
