"""What the programs here share: sensor readings, and streams of which one knows exactly what comes when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.common import Configuration, Duration, Watermark, WatermarkGenerator, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class SensorReading(NamedTuple):
    """One measurement: sensor, milliseconds of event time, degrees Fahrenheit."""

    id: str
    timestamp: int
    temperature: float


def at(hours: int, minutes: int = 0, seconds: float = 0) -> int:
    """A time of day in milliseconds."""
    return hours * HOUR + minutes * MINUTE + round(seconds * SECOND)


def clock(timestamp: int) -> str:
    """Milliseconds as a time of day: the way back from :func:`at`."""
    seconds, millis = divmod(timestamp, SECOND)
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return f"{text}.{millis:03}" if millis else text


def event_time(record: Any) -> int:
    """The timestamp of a record that carries it."""
    return record.timestamp


def stamped(
    env: StreamExecutionEnvironment,
    records: Sequence[Any],
    delay: int = 0,
    timestamp: Callable[[Any], int] = event_time,
) -> DataStream:
    """A collection in event time; records may come up to ``delay`` milliseconds behind the latest one.

    One task reads and stamps them, so that they stay in the order of the list.
    """
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(delay))
    return (
        env.from_collection(records)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(timestamp))
        .set_parallelism(1)
    )


class Mark(NamedTuple):
    """Stands between records for a watermark: see :func:`scripted`."""

    timestamp: int


class FollowMarks(WatermarkGenerator):
    """Emits a watermark exactly where there is a mark, and no other."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if isinstance(event, Mark):
            output.emit_watermark(Watermark(event.timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        pass


def scripted(
    env: StreamExecutionEnvironment, script: Sequence[Any], timestamp: Callable[[Any], int] = event_time
) -> DataStream:
    """Records and watermarks exactly as they are listed: what is late then does not depend on any clock."""
    strategy = WatermarkStrategy.for_generator(lambda ctx: FollowMarks()).with_timestamp_assigner(
        lambda element: element.timestamp if isinstance(element, Mark) else timestamp(element)
    )
    return (
        env.from_collection(script)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)
        .filter(lambda element: not isinstance(element, Mark))
        .set_parallelism(1)
    )


def live(env: StreamExecutionEnvironment, steps: Sequence[Sequence[Any]], per_second: float) -> DataStream:
    """Some records at each step, one step after the other as time passes: for programs that look at the clock.

    A batch has one step at most. So steps that had to wait, while the first batch was slow, do not come all at once.
    This is a setting of the whole job.
    """
    step_by_step = Configuration()
    step_by_step.set_string("penstock.batch.max-records", "1")
    env.configure(step_by_step)
    source = DataGeneratorSource(list(steps).__getitem__, len(steps), per_second)
    live_steps = env.from_source(source, WatermarkStrategy.no_watermarks(), "live").set_parallelism(1)
    return live_steps.flat_map(lambda step: step).set_parallelism(1)
