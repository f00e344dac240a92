"""Runs the Kafka job on Bytewax, one process per partition.

python -m benchmarks.systems.drive_bytewax_kafka --job k --package bytewax
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.kafka import BOOTSTRAP, KafkaLoad, digest_of, fill
from benchmarks.harness.options import Options
from benchmarks.harness.report import hand_over
from benchmarks.harness.slope import measure_slope


class BytewaxDriver:
    """One process that starts the dataflow."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def execute(self, load: KafkaLoad) -> None:
        """Run the dataflow to its end."""
        topics = {"BENCH_TOPICS": f"{load.source},{load.target}", "BENCH_TAIL": "0" if load.bounded else "1"}
        command = [sys.executable, "-m", "bytewax.testing", "benchmarks.systems.bytewax_count"]
        processes = ["-p", str(self.options.parallelism)] if self.options.parallelism > 1 else []
        subprocess.run([*command, *processes], env={**os.environ, **topics}, check=True)

    def prepare(self, records: int) -> Callable[[], object]:
        """Fill a topic; the call returned runs the dataflow over it."""
        load = fill(records, self.options.keys, self.options.parallelism)
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
        load = fill(options.records, options.keys, options.parallelism)
        self.execute(load)
        return digest_of(load)


if __name__ == "__main__":
    adopt_orphans()
    hand_over(BytewaxDriver(Options.parse()).run())
