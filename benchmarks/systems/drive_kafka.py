"""Runs the Kafka job on Penstock or on PyFlink.

python -m benchmarks.systems.drive_kafka --package pyflink --job k --variant thread
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.kafka import BOOTSTRAP, KafkaLoad, digest_of, fill
from benchmarks.harness.options import Options
from benchmarks.harness.report import hand_over
from benchmarks.harness.slope import measure_slope
from benchmarks.systems.drive_flink import FlinkDriver
from benchmarks.systems.jars import KAFKA_JARS


class KafkaDriver(FlinkDriver):
    """One process measuring the Kafka job."""

    def define(self, load: KafkaLoad) -> Any:
        """The job in an environment of its own."""
        env = self.environment()
        if self.options.package == "pyflink":
            env.add_jars(*os.environ[KAFKA_JARS].split(";"))
        else:  # PyFlink keeps its checkpoints in memory
            env.get_checkpoint_config().set_checkpoint_storage(Path(tempfile.mkdtemp(prefix="bench-kafka-")).as_uri())
        self.build(env, load)
        return env

    def prepare(self, records: int) -> Callable[[], object]:
        """Fill a topic and define the job; the call returned runs it to its end."""
        env = self.define(fill(records, self.options.keys, self.options.parallelism))
        return lambda: env.execute(self.job.title)

    def run(self) -> dict[str, object]:
        """Do what the options ask for."""
        options = self.options
        if options.mode == "slope":
            return measure_slope(self.prepare, expected=options.expected, seconds=options.seconds).as_json()
        if options.mode == "latency":
            source, target = options.directory.split(",")
            self.define(KafkaLoad(os.environ[BOOTSTRAP], source, target, bounded=False)).execute(self.job.title)
            return {}
        load = fill(options.records, options.keys, options.parallelism)
        self.define(load).execute(self.job.title)
        return digest_of(load)


if __name__ == "__main__":
    adopt_orphans()
    hand_over(KafkaDriver(Options.parse()).run())
