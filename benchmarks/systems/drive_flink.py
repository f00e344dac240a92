"""Runs a job on Penstock or on PyFlink: the same steps, with the few calls that PyFlink lacks in one place.

python -m benchmarks.systems.drive_flink --package pyflink --job b --variant thread
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.heartbeat import Heartbeat
from benchmarks.harness.options import Options
from benchmarks.harness.program import load_builder
from benchmarks.harness.report import digest, hand_over
from benchmarks.harness.slope import measure_slope
from benchmarks.jobs.catalogue import JOBS
from benchmarks.systems.settings import settings_for


class FlinkDriver:
    """One process measuring one job on one package."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.job = JOBS[options.job]
        self.build = load_builder(self.job, options.package)

    def environment(self) -> Any:
        """A fresh environment with the variant's settings."""
        options = self.options
        common = importlib.import_module(f"{options.package}.common")
        datastream = importlib.import_module(f"{options.package}.datastream")
        configuration = common.Configuration()
        for key, value in settings_for(options.package, options.variant, self.job).items():
            configuration.set_string(key, value)
        env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(options.parallelism)
        if options.package == "pyflink":
            env.set_python_executable(sys.executable)  # else workers run whatever `python` is on PATH
        return env

    def discard(self, stream: Any) -> None:
        """Send the stream to the package's discarding sink; in PyFlink that is Java's."""
        connectors = importlib.import_module(f"{self.options.package}.datastream.connectors")
        if self.options.package == "pyflink":
            base = importlib.import_module("pyflink.datastream.connectors.base")
            stream.sink_to(base.Sink("org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink"))
        else:
            stream.sink_to(connectors.DiscardingSink())

    def socket_lines(self, env: Any) -> Any:
        """The lines of the feeder; PyFlink reaches Java's socket source only through its gateway."""
        if self.options.package == "pyflink":
            datastream = importlib.import_module("pyflink.datastream")
            java_env = env._j_stream_execution_environment
            return datastream.DataStream(java_env.socketTextStream("127.0.0.1", self.options.port))
        return env.socket_text_stream("127.0.0.1", self.options.port)

    def prepare(self, records: int) -> Callable[[], object]:
        """Define the job; the call returned runs it to its end."""
        env = self.environment()
        self.discard(self.build(env, self.options.workload(records)))
        return lambda: env.execute(self.job.title)

    def run(self) -> dict[str, object]:
        """Do what the options ask for."""
        options = self.options
        if options.mode == "slope":
            return measure_slope(self.prepare, expected=options.expected, seconds=options.seconds).as_json()
        env = self.environment()
        if options.mode == "latency":
            self.discard(self.build(self.socket_lines(env), options.directory))
            with Heartbeat():
                env.execute(self.job.title)
            return {}
        stream = self.build(env, options.workload(options.records))
        with stream.execute_and_collect() as results:
            return digest(results)


if __name__ == "__main__":
    adopt_orphans()
    hand_over(FlinkDriver(Options.parse()).run())
