"""Average temperature per sensor and second: the first program of the book (E01), live, on an embedded Spark."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource, GeneratorFunction
from penstock.datastream.functions import (
    AggregateFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

READING_INTERVAL_MS = 100
MAX_DELAY_MS = 400
COLUMNS = 10  # sensors that fit into a line of a terminal


class SensorReading(NamedTuple):
    """One measurement: sensor, milliseconds since the epoch, degrees."""

    id: str
    timestamp: int
    temperature: float


# -- the sensors ------------------------------------------------------------------------------------------------------


class Sensors(GeneratorFunction):
    """The n-th reading of all sensors together: each takes a random walk, with a step every 100 ms.

    The same number always gives the same reading. So what was read before a crash can be read again after it.
    """

    def __init__(self, sensors: int, started_at: int) -> None:
        self.sensors = sensors
        self.started_at = started_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self._walks: dict[int, tuple[int, Iterator[tuple[float, int]]]] = {}

    def map(self, value: int) -> SensorReading:
        step, sensor = divmod(value, self.sensors)
        position, walk = self._walks.get(sensor, (0, random_walk(sensor)))
        if position > step:  # a batch is read again
            position, walk = 0, random_walk(sensor)
        temperature, delay = next(islice(walk, step - position, None))
        self._walks[sensor] = step + 1, walk
        measured_at = self.started_at + step * READING_INTERVAL_MS - delay
        return SensorReading(f"sensor_{sensor + 1}", measured_at, temperature)


def random_walk(sensor: int) -> Iterator[tuple[float, int]]:
    """Temperatures in °F, each with the time its message needs to arrive."""
    draw = random.Random(sensor)  # noqa: S311 - a demonstration
    temperature = 65 + draw.gauss(0, 20)
    while True:
        yield temperature, draw.randrange(MAX_DELAY_MS)
        temperature += draw.gauss(0, 0.5)


# -- the job ----------------------------------------------------------------------------------------------------------


class Mean(AggregateFunction):
    """Sum and number of temperatures: all that a window keeps."""

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: SensorReading, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.temperature, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithSensorAndEnd(ProcessWindowFunction[float, SensorReading, str, TimeWindow]):
    """The mean of a window as a reading of its sensor, at the window's end."""

    def process(self, key: str, context: Any, elements: Iterable[float]) -> Iterator[SensorReading]:
        for mean in elements:  # there is exactly one
            yield SensorReading(key, context.window().end, mean)


def averages(readings: DataStream, window: Time) -> DataStream:
    """°F to °C, then the mean of each sensor in each window of event time: one reading per sensor and window."""
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(MAX_DELAY_MS))
    return (
        readings.assign_timestamps_and_watermarks(in_order.with_timestamp_assigner(lambda reading: reading.timestamp))
        .map(lambda reading: reading._replace(temperature=(reading.temperature - 32) * 5 / 9))
        .key_by(lambda reading: reading.id)
        .window(TumblingEventTimeWindows.of(window))
        .aggregate(Mean(), WithSensorAndEnd())
        .uid("averages")
    )


class OneLine(ProcessAllWindowFunction[SensorReading, str, TimeWindow]):
    """The means of all sensors in a window as a line of text."""

    def __init__(self, sensors: int) -> None:
        self.columns = [f"sensor_{number}" for number in range(1, min(sensors, COLUMNS) + 1)]

    def process(self, context: Any, elements: Iterable[SensorReading]) -> Iterator[str]:
        means = {reading.id: reading.temperature for reading in elements}
        cells = "".join(f"{means[sensor]:6.1f}" if sensor in means else f"{'-':>6}" for sensor in self.columns)
        overall = sum(means.values()) / len(means)
        yield f"{datetime.fromtimestamp(context.window().end / 1000):%H:%M:%S} {cells}   {overall:6.1f}"  # noqa: DTZ006


def lines(means: DataStream, window: Time, sensors: int) -> DataStream:
    """A line for each window. Results of a window have its last timestamp, so they meet again in the same window."""
    return means.window_all(TumblingEventTimeWindows.of(window)).process(OneLine(sensors)).uid("lines")


def build(env: StreamExecutionEnvironment, options: argparse.Namespace, started_at: int) -> DataStream:
    """The whole job, from the sensors to lines of text."""
    per_second = options.sensors * 1000 / READING_INTERVAL_MS
    source = DataGeneratorSource(
        Sensors(options.sensors, started_at), round(options.seconds * per_second), rate_limiter_strategy=per_second
    )
    readings = env.from_source(source, WatermarkStrategy.no_watermarks(), "sensors").set_parallelism(1).uid("sensors")
    window = Time.milliseconds(round(options.window * 1000))
    return lines(averages(readings, window), window, options.sensors)


# -- the program ------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and tells about it."""
    options = parser().parse_args(argv)
    directory = options.checkpoint or (Path(tempfile.gettempdir()) / "penstock-sensor-average")
    durable = options.kill_safe or options.checkpoint is not None
    started_at, resumed = recall(directory, options) if durable else (now(), False)

    env = StreamExecutionEnvironment.get_execution_environment()
    if options.parallelism is not None:
        env.set_parallelism(options.parallelism)
    if durable:
        env.get_checkpoint_config().set_checkpoint_storage((directory / "checkpoint").resolve().as_uri())
    build(env, options, started_at).print().set_parallelism(1)

    print(header(options, resumed=resumed, directory=directory if durable else None), flush=True)
    try:
        result = env.execute("sensor averages")
    except KeyboardInterrupt:
        print(f"\nStopped.{' The same command continues here.' if durable else ''}")
        return 130
    if durable:
        shutil.rmtree(directory)  # the job is done: the next one starts afresh
    print(footer(options, result.get_net_runtime()))
    return 0


def now() -> int:
    """The time in milliseconds, from a full second on: windows are easier to read then."""
    return int(time.time()) * 1000


def recall(directory: Path, options: argparse.Namespace) -> tuple[int, bool]:
    """When a job with this directory started, now or before a crash; a job goes on with the options it began with."""
    notes = directory / "job.json"
    if notes.exists():
        known = json.loads(notes.read_text())
        for name in ("sensors", "seconds", "window"):
            setattr(options, name, known[name])
        return known["started_at"], True
    directory.mkdir(parents=True, exist_ok=True)
    known = {"sensors": options.sensors, "seconds": options.seconds, "window": options.window, "started_at": now()}
    notes.write_text(json.dumps(known))
    return known["started_at"], False


def header(options: argparse.Namespace, *, resumed: bool, directory: Path | None) -> str:
    """What is going on."""
    shown = min(options.sensors, COLUMNS)
    text = [
        f"{options.sensors} sensors send a reading every {READING_INTERVAL_MS} ms for {options.seconds:g} s.",
        f"Readings arrive up to {MAX_DELAY_MS / 1000:g} s late, and not in order.",
        f"One Spark query computes the mean of each sensor in °C, for every {options.window:g} s of event time.",
    ]
    if directory is not None:
        text += [
            f"Checkpoints are in {directory}.{' Continuing behind the last one.' if resumed else ''}",
            f"Try kill -9 {os.getpid()} and start the same command again: every reading counts once.",
        ]
    names = "".join(f"{f'#{number}':>6}" for number in range(1, shown + 1))
    text += ["Spark is starting, results will follow.", ""]
    return "\n".join([*text, f"{'window to':<9}{names}   {'all':>6}"])


def footer(options: argparse.Namespace, runtime_ms: int) -> str:
    """What has been."""
    readings = round(options.seconds * options.sensors * 1000 / READING_INTERVAL_MS)
    return f"\nDone: {readings:,} readings of {options.sensors} sensors; the job ran for {runtime_ms / 1000:.1f} s."


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = f"python {sys.argv[0]} --checkpoint averages"
    arguments = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"""\
surviving kill -9:
  Every micro-batch is a checkpoint: state, timers and the position in the source, in one commit.
  With --checkpoint they are kept in a directory. Start the job, kill it while it runs, start it again:

    {command} --seconds 30 &
    sleep 15; kill -9 $!
    {command}

  The second run reads on behind the last commit. All windows together are those of a run without a kill;
  only lines that were printed just before the kill can appear again. When a job has come to its end, its
  directory is removed.""",
    )
    arguments.add_argument("--seconds", type=float, default=15, help="how long the sensors send (default: 15)")
    arguments.add_argument("--sensors", type=int, default=10, help="how many there are (default: 10)")
    arguments.add_argument("--window", type=float, default=1, help="length of a window in seconds (default: 1)")
    arguments.add_argument("--parallelism", type=int, help="parallel tasks of each operator (default: the CPU cores)")
    arguments.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep checkpoints here, to survive a kill")
    arguments.add_argument(
        "--kill-safe", action="store_true", help="the same, in a directory for temporary files, with a hint what to try"
    )
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
