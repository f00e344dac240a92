"""What the programs of this folder share: times of day, streams in event time, the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment


def at(time_of_day: str, day: int = 1) -> int:
    """A time in January 2024 as a timestamp in milliseconds.

    >>> at("00:00:01", day=2) - at("00:00:00")
    86401000
    """
    return int(datetime.fromisoformat(f"2024-01-{day:02}T{time_of_day}+00:00").timestamp()) * 1000


def clock(timestamp: int) -> str:
    """A timestamp as a time of day."""
    return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%H:%M:%S}"


def day_and_time(timestamp: int) -> str:
    """A timestamp as day and time of day."""
    return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%d %b %H:%M}"


def in_event_time(env: StreamExecutionEnvironment, events: Sequence[Any]) -> DataStream:
    """A stream of events with a field `time`, which may arrive up to ten seconds out of order."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10))
    return (
        env.from_collection(events)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda event: event.time))
        .set_parallelism(1)
    )


def environment(description: str | None, argv: Sequence[str] | None) -> StreamExecutionEnvironment:
    """Read the command line and set up the environment that it asks for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallelism", type=int, default=2, help="parallel tasks of each operator (default: 2)")
    options = parser.parse_args(argv)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(options.parallelism)
    env.add_python_file(__file__)  # functions that import it run in other processes
    return env
