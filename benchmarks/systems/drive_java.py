"""Runs a job on Flink's Java API: a small program of ours, compiled when the benchmark starts; jars through Maven.

python -m benchmarks.systems.drive_java --job p
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.options import Options
from benchmarks.harness.report import digest, hand_over
from benchmarks.harness.slope import measure_slope
from penstock.testing.kafka_broker import maven_jars

VERSION = "2.3.0"
_PROGRAMS = {"p": "PatternBenchmark"}
_SOURCES = Path(__file__).parent / "java"
_ARTIFACTS = [("org.apache.flink", name, VERSION) for name in ("flink-cep", "flink-streaming-java", "flink-clients")]
# What Flink asks for on Java 17, and a heap that no collection has to struggle with.
_JAVA = ["java", "-Xmx3g", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"]


class JavaDriver:
    """One process measuring one Java program."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._program = _PROGRAMS[options.job]
        jars = maven_jars("flink-cep", VERSION, _ARTIFACTS)
        classes = tempfile.mkdtemp(prefix="penstock-bench-java-")
        source = _SOURCES / f"{self._program}.java"
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, str(source)], check=True)
        self._classpath = f"{classes}:{jars}/*"

    def command(self, records: int, *more: str) -> list[str]:
        """The command of one run."""
        size = [str(records), str(self.options.keys), str(self.options.parallelism)]
        return [*_JAVA, "-cp", self._classpath, self._program, *size, *more]

    def prepare(self, records: int) -> Callable[[], object]:
        """A run in a process of its own."""
        return lambda: subprocess.run(self.command(records), check=True)

    def run(self) -> dict[str, object]:
        """Do what the options ask for."""
        options = self.options
        if options.mode == "slope":
            return measure_slope(self.prepare, expected=options.expected, seconds=options.seconds).as_json()
        done = subprocess.run(self.command(options.records, "collect"), check=True, capture_output=True, text=True)
        return digest(tuple(map(int, line.split())) for line in done.stdout.splitlines() if line[:1].isdigit())


if __name__ == "__main__":
    adopt_orphans()
    hand_over(JavaDriver(Options.parse()).run())
