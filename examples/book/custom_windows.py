"""Custom windows: an assigner and a trigger (ch. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sensors import SECOND, Mark, SensorReading, scripted, stamped
from showcase import Showcase

from penstock.common import Types
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import EventTimeTrigger, TimeWindow, Trigger, TriggerResult, WindowAssigner

book = Showcase(__doc__)


class ThirtySecondsWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of 30 seconds of event time, the first from second 0 of every minute."""

    SIZE = 30 * SECOND

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        start = timestamp - timestamp % self.SIZE  # Python's remainder is right before 1970 too; Java's is not
        return [TimeWindow(start, start + self.SIZE)]

    def get_default_trigger(self, env: Any) -> EventTimeTrigger:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


class CountReadings(ProcessWindowFunction[SensorReading, tuple[Any, ...], str, TimeWindow]):
    """Sensor, start and end of the window, how many readings."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        window = context.window()
        yield key, window.start, window.end, len(list(elements))


@book.example("E38", "An assigner: thirty seconds")
def thirty_seconds_windows(env: StreamExecutionEnvironment) -> DataStream:
    """Sensor, start and end of the window in milliseconds, readings. One reading is from before 1970."""
    times = [("sensor_1", -1), ("sensor_1", 0), ("sensor_1", 29_999), ("sensor_1", 30_000), ("sensor_2", 45_000)]
    readings = [SensorReading(sensor, timestamp, 0.0) for sensor, timestamp in times]
    return stamped(env, readings).key_by("id").window(ThirtySecondsWindows()).process(CountReadings())


class OneSecondIntervalTrigger(Trigger[Any, TimeWindow]):
    """Early results: fires whenever event time has passed a full second, and for the last time at the window's end.

    The time of the next early firing is kept in state, per key and window. Such state cannot be merged, so this trigger
    is not for sessions.
    """

    NEXT = ValueStateDescriptor("next-early-firing", Types.LONG())

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        if ctx.get_partitioned_state(self.NEXT).value() is None:
            self._set_early_timer(window, ctx)
            ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE_AND_PURGE
        self._set_early_timer(window, ctx)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: TimeWindow, ctx: Any) -> None:
        next_firing = ctx.get_partitioned_state(self.NEXT)
        if next_firing.value() is not None:
            ctx.delete_event_time_timer(next_firing.value())
            next_firing.clear()

    def _set_early_timer(self, window: TimeWindow, ctx: Any) -> None:
        watermark = ctx.get_current_watermark()
        next_second = watermark - watermark % SECOND + SECOND
        ctx.get_partitioned_state(self.NEXT).update(next_second)
        if next_second < window.end:
            ctx.register_event_time_timer(next_second)


class CountSoFar(ProcessWindowFunction[SensorReading, tuple[Any, ...], str, TimeWindow]):
    """Sensor, end of the window, watermark, how many readings there are by now."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        yield key, context.window().end, context.current_watermark(), len(list(elements))


def counts_every_second(env: StreamExecutionEnvironment, script: Sequence[Any]) -> DataStream:
    """E38's windows with early results."""
    return (
        scripted(env, script)
        .key_by("id")
        .window(ThirtySecondsWindows())
        .trigger(OneSecondIntervalTrigger())
        .process(CountSoFar())
    )


def reading(timestamp: int) -> SensorReading:
    """Some reading at a time."""
    return SensorReading("sensor_1", timestamp, 0.0)


STEP_BY_STEP = [
    Mark(500), reading(100), reading(900),
    Mark(1_000), reading(1_500),
    Mark(2_500), Mark(2_999), Mark(3_000), reading(9_000),
    Mark(28_500), Mark(29_999), Mark(30_000),
]  # fmt: skip
ONE_LEAP = [Mark(500), reading(100), Mark(45_000)]


@book.example("E39", "A trigger: results every second")
def one_second_interval_trigger(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Sensor, window end, watermark, readings so far. Contents stay, so every firing sees all of them again."""
    return {
        "event time step by step": counts_every_second(env, STEP_BY_STEP),
        "event time in one leap: an early and the last result, at the same watermark": counts_every_second(
            env, ONE_LEAP
        ),
    }


if __name__ == "__main__":
    raise SystemExit(book.main())
