"""Three programs in short forms. flink_names.py has the same with PyFlink's names; the job graphs are the same."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import penstock as ps


@dataclass
class Reading:
    sensor: str
    at: int  # milliseconds since the epoch
    celsius: float


# 1. The average of each sensor and second.


def averages(readings: ps.DataStream[Reading]) -> ps.DataStream[tuple[str, float]]:
    return readings.key_by(lambda r: r.sensor).window(ps.tumbling(seconds=1)).mean("celsius")


# 2. The running average of each sensor: state.


@dataclass
class Total:
    celsius: float = 0.0
    count: int = 0


def running_average(reading: Reading, total: Total) -> Iterator[tuple[str, float]]:
    total.celsius += reading.celsius
    total.count += 1
    yield reading.sensor, total.celsius / total.count


def running_averages(readings: ps.DataStream[Reading]) -> ps.DataStream[tuple[str, float]]:
    return readings.key_by(lambda r: r.sensor).process(running_average)


# 3. An alert when a sensor is silent for ten seconds: timers.


@dataclass
class LastSeen:
    deadline: int | None = None


def watch(reading: Reading, seen: LastSeen, timers: ps.Timers) -> None:
    timers.cancel(seen.deadline)
    seen.deadline = timers.set(after="10 s")


def silent(seen: LastSeen, timers: ps.Timers) -> Iterator[str]:
    yield f"{timers.key} is silent"


def alerts(readings: ps.DataStream[Reading]) -> ps.DataStream[str]:
    return readings.key_by(lambda r: r.sensor).process(watch, on_timer=silent)


SAMPLE = [
    Reading("attic", 100, 20.0),
    Reading("attic", 700, 22.0),
    Reading("cellar", 900, 10.0),
    Reading("attic", 9_500, 24.0),
]


def main() -> None:
    """Run the three programs as one job."""
    env = ps.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    readings = env.from_collection(SAMPLE).with_event_time("at", max_delay="1 s")
    averages(readings).print("average")
    running_averages(readings).print("running average")
    alerts(readings).print("alert")
    env.execute("three programs")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
