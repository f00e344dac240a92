"""Runs jobs on Quix Streams: one process per partition, exactly once by Kafka transactions.

Quix Streams reads Kafka topics and nothing else, so the numbers of the jobs (a) to (f) are in a topic when the clock
starts, partitioned by key; the time of a window job's record is its time in Kafka. A window closes when a later record
of its partition comes, so each partition ends with a record of a much later time.

python -m benchmarks.systems.drive_quix --job k --package quix
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.kafka import BOOTSTRAP, KafkaLoad, digest_of, fill
from benchmarks.harness.options import Options
from benchmarks.harness.report import hand_over
from benchmarks.harness.slope import measure_slope

# Results become visible with a commit.
_COMMIT_SECONDS = {"slope": 1.0, "collect": 1.0, "latency": 0.2}


# -- the jobs ---------------------------------------------------------------------------------------------------------


def count(frame: Any) -> Any:
    """(k), (m): `key,moment sent` to `key,count,moment sent`."""

    def answer(value: str, state: Any) -> str:
        key, _, sent = value.partition(",")
        seen = state.get("count", 0) + 1
        state.set("count", seen)
        return f"{key},{seen},{sent}"

    return frame.apply(answer, stateful=True)


def map_filter(frame: Any) -> Any:
    """(a)."""
    return frame.apply(lambda n: 2 * int(n) + 1).filter(lambda n: n % 3 != 0)


def running_average(frame: Any) -> Any:
    """(b), (c)."""

    def add(value: str, key: Any, _timestamp: int, _headers: Any, state: Any) -> tuple[int, float]:
        count, total = state.get("count_and_sum") or (0, 0.0)
        count, total = count + 1, total + float(value)
        state.set("count_and_sum", (count, total))
        return int(key), total / count

    return frame.apply(add, stateful=True, metadata=True)


def _averages(windows: Any) -> Any:
    """The average of each key and window."""
    folded = windows.reduce(
        initializer=lambda value: (1, float(value)),
        reducer=lambda acc, value: (acc[0] + 1, acc[1] + float(value)),
        merger=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    )
    return folded.final("partition").apply(lambda window: window["value"][1] / window["value"][0])


def tumbling(frame: Any) -> Any:
    """(d)."""
    return _averages(frame.tumbling_window(1_000))


def sliding(frame: Any) -> Any:
    """(e)."""
    return _averages(frame.hopping_window(60_000, 1_000))


def sessions(frame: Any) -> Any:
    """(f)."""
    return _averages(frame.session_window(500))


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "a": map_filter,
    "b": running_average,
    "c": running_average,
    "d": tumbling,
    "e": sliding,
    "f": sessions,
    "k": count,
    "m": count,
}


# -- running them -----------------------------------------------------------------------------------------------------


def work(job: str, mode: str, source: str, target: str, records: int) -> None:
    """One process of the job; ends after so many records, or never."""
    from quixstreams import Application

    with tempfile.TemporaryDirectory(prefix="bench-quix-") as state:
        app = Application(
            broker_address=os.environ[BOOTSTRAP],
            consumer_group=f"group-{source}",
            processing_guarantee="exactly-once",
            auto_offset_reset="earliest",
            commit_interval=_COMMIT_SECONDS[mode],
            state_dir=state,
            loglevel="WARNING",
        )
        taken = itertools.count(1)

        def stop_at_the_end(_value: str) -> None:  # run(count=...) would count what comes out
            if next(taken) == records:
                app.stop()

        frame = app.dataframe(app.topic(source, value_deserializer="str"))
        frame = BUILDERS[job](frame.update(stop_at_the_end) if records else frame)
        if job in "km":
            frame.to_topic(app.topic(target, value_serializer="str"))
        elif mode == "collect":
            frame.apply(repr).to_topic(app.topic(target, value_serializer="str"))
        app.run()


class QuixDriver:
    """One process that starts the workers."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def fill(self, records: int) -> KafkaLoad:
        """A topic with the records of the job."""
        return fill(records, self.options.keys, self.options.parallelism, self.options.job)

    def execute(self, load: KafkaLoad) -> None:
        """Run the workers to their end; keys come equally often, so each gets the same number of records."""
        options = self.options
        words = (options.job, options.mode, load.source, load.target, str(load.records_per_partition))
        command = [sys.executable, "-m", "benchmarks.systems.drive_quix", "work", *words]
        workers = [subprocess.Popen(command) for _ in range(options.parallelism)]
        for process in workers:
            if process.wait() != 0:
                raise RuntimeError("a worker failed")

    def prepare(self, records: int) -> Callable[[], object]:
        """Fill a topic; the call returned runs the job over it."""
        load = self.fill(records)
        return lambda: self.execute(load)

    def run(self) -> dict[str, object]:
        """Do what the options ask for."""
        options = self.options
        if options.mode == "slope":
            return measure_slope(self.prepare, expected=options.expected, seconds=options.seconds).as_json()
        if options.mode == "latency":
            source, target = options.directory.split(",")
            self.execute(KafkaLoad(os.environ[BOOTSTRAP], source, target, bounded=False))
            return {}
        load = self.fill(options.records)
        self.execute(load)
        return digest_of(load, parse=options.job != "k")


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(*sys.argv[2:6], records=int(sys.argv[6]))
    else:
        adopt_orphans()
        hand_over(QuixDriver(Options.parse()).run())
