"""Runs the Kafka job on Quix Streams: one process per partition, exactly once by Kafka transactions.

python -m benchmarks.systems.drive_quix --job k --package quix
"""

from __future__ import annotations

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


def count(value: str, state: Any) -> str:
    """`key,moment sent` to `key,count,moment sent`."""
    key, _, sent = value.partition(",")
    seen = state.get("count", 0) + 1
    state.set("count", seen)
    return f"{key},{seen},{sent}"


def work(source: str, target: str, records: int, commit_seconds: float) -> None:
    """One process of the job; ends after so many records, or never."""
    from quixstreams import Application

    with tempfile.TemporaryDirectory(prefix="bench-quix-") as state:
        app = Application(
            broker_address=os.environ[BOOTSTRAP],
            consumer_group=f"group-{source}",
            processing_guarantee="exactly-once",
            auto_offset_reset="earliest",
            commit_interval=commit_seconds,
            state_dir=state,
            loglevel="WARNING",
        )
        frame = app.dataframe(app.topic(source, value_deserializer="str"))
        frame = frame.apply(count, stateful=True)
        frame.to_topic(app.topic(target, value_serializer="str"))
        app.run(count=records)


class QuixDriver:
    """One process that starts the workers."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def start(self, load: KafkaLoad, records: int) -> list[subprocess.Popen[bytes]]:
        """The workers; keys come equally often, so each gets the same number of records."""
        workers = self.options.parallelism
        words = [load.source, load.target, str(records // workers), str(_COMMIT_SECONDS[self.options.mode])]
        command = [sys.executable, "-m", "benchmarks.systems.drive_quix", "work", *words]
        return [subprocess.Popen(command) for _ in range(workers)]

    def execute(self, load: KafkaLoad, records: int) -> None:
        """Run the workers to their end."""
        for process in self.start(load, records):
            if process.wait() != 0:
                raise RuntimeError("a worker failed")

    def prepare(self, records: int) -> Callable[[], object]:
        """Fill a topic; the call returned runs the job over it."""
        load = fill(records, self.options.keys, self.options.parallelism)
        return lambda: self.execute(load, records)

    def run(self) -> dict[str, object]:
        """Do what the options ask for."""
        options = self.options
        if options.mode == "slope":
            return measure_slope(self.prepare, expected=options.expected, seconds=options.seconds).as_json()
        if options.mode == "latency":
            source, target = options.directory.split(",")
            self.execute(KafkaLoad(os.environ[BOOTSTRAP], source, target, bounded=False), 0)
            return {}
        load = fill(options.records, options.keys, options.parallelism)
        self.execute(load, options.records)
        return digest_of(load)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        adopt_orphans()
        hand_over(QuixDriver(Options.parse()).run())
