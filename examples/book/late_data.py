"""What comes too late: dropped, put aside, or an update of what was said before (ch. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sensors import Mark, SensorReading, clock, scripted
from showcase import Showcase

from penstock.common import Time, Types
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import ProcessFunction, ProcessWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

book = Showcase(__doc__)

LATE = OutputTag("late-readings")


def reading(seconds: float, sensor: str = "sensor_1") -> SensorReading:
    """A reading at a second."""
    return SensorReading(sensor, round(seconds * 1_000), 70.0)


# Readings in the order of arrival; a mark says that event time has come so far.
SCRIPT = [
    reading(1), reading(9), reading(2, "sensor_2"),
    Mark(8_000), reading(5),  # behind the watermark, but its window is open: not late
    Mark(10_000), reading(7),  # late: the window up to second 10 is done
    reading(3, "sensor_2"),  # late as well
    reading(12), reading(10),  # on time, though the second equals the watermark
    Mark(20_000),
]  # fmt: skip


class CountWithEnd(ProcessWindowFunction[SensorReading, tuple[Any, ...], str, TimeWindow]):
    """Sensor, end of the window, how many readings."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        yield key, clock(context.window().end), len(list(elements))


@book.example("E42", "Late readings to a side output")
def late_to_side_output(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Late is what finds its window done already, not everything that is behind the watermark."""
    counted = (
        scripted(env, SCRIPT)
        .key_by("id")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(LATE)
        .process(CountWithEnd())
    )
    return {"readings in 10 s": counted, "late": counted.get_side_output(LATE)}


class LateReadingsFilter(ProcessFunction):
    """Compares every record with the clock of event time; needs no keys and no windows."""

    def process_element(self, value: SensorReading, ctx: ProcessFunction.Context) -> Iterator[Any]:
        # A watermark t says that everything up to and including t has come.
        if value.timestamp <= ctx.timer_service().current_watermark():
            ctx.output(LATE, value)
        else:
            yield value


@book.example("E43", "Late readings filtered by a process function")
def late_filtered(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Here every reading at or behind the watermark is late: more of them than in E42."""
    filtered = scripted(env, SCRIPT).process(LateReadingsFilter())
    return {"on time": filtered, "late": filtered.get_side_output(LATE)}


class UpdatingWindowCount(ProcessWindowFunction[SensorReading, tuple[Any, ...], str, TimeWindow]):
    """Says whether a result is the first of its window or an update; this flag is state of the key and window."""

    FIRED = ValueStateDescriptor("fired-before", Types.BOOLEAN(), default_value=False)

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        fired = context.window_state().get_state(self.FIRED)
        yield key, clock(context.window().end), len(list(elements)), "update" if fired.value() else "first"
        fired.update(True)

    def clear(self, context: Any) -> None:
        # Without this, one flag for every key and every window would stay forever.
        context.window_state().get_state(self.FIRED).clear()


@book.example("E44", "Late readings update results")
def late_updates(env: StreamExecutionEnvironment) -> DataStream:
    """Windows of 10 s stay 5 s longer: each late reading in that time fires its window again. The last is dropped."""
    script = [
        reading(1), reading(5),
        Mark(10_000), reading(7), reading(9),
        Mark(14_998), reading(8),  # one millisecond before the window goes
        Mark(15_000), reading(6),
        reading(12), Mark(30_000),
    ]  # fmt: skip
    return (
        scripted(env, script)
        .key_by("id")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .allowed_lateness(Time.seconds(5))
        .process(UpdatingWindowCount())
    )


if __name__ == "__main__":
    raise SystemExit(book.main())
