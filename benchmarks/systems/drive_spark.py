"""Runs the running-average job on plain PySpark, in its obvious way: the user's key is Spark's grouping key.

Two programs: the job as it is written for Flink, where every record reads and writes the state, and the same with the
state read and written once per key and micro-batch, as a developer who knows the cost of a call would write it.

The input is a directory of Parquet files read one file per micro-batch, so that the run is bounded and every batch
has the same number of rows. The files are written before the clock starts.

python -m benchmarks.systems.drive_spark --job b --variant 100000          # the rewritten one
python -m benchmarks.systems.drive_spark --job b --variant 100000-calls    # state calls for every record
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.options import Options
from benchmarks.harness.report import digest, hand_over
from benchmarks.harness.slope import measure_slope

os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run whatever `python3` is on PATH

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

_SCATTER = 2_654_435_761


class RunningAverage(StatefulProcessor):
    """(key, average so far) for every reading: the state is read and written once per key and micro-batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: (count, sum)."""
        self.state = handle.getValueState("count_and_sum", "count long, total double")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        """All rows of one key in one micro-batch."""
        count, total = self.state.get() or (0, 0.0)
        for frame in rows:
            averages = []
            for value in frame["value"].tolist():
                count, total = count + 1, total + value
                averages.append(total / count)
            yield pd.DataFrame({"key": key[0], "average": averages})
        self.state.update((count, total))

    def close(self) -> None:
        """Nothing to close."""


class RunningAverageByCalls(RunningAverage):
    """The same as Flink's function does it: the state is read and written for every record."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        """All rows of one key in one micro-batch."""
        for frame in rows:
            averages = []
            for value in frame["value"].tolist():
                count, total = self.state.get() or (0, 0.0)
                count, total = count + 1, total + value
                self.state.update((count, total))
                averages.append(total / count)
            yield pd.DataFrame({"key": key[0], "average": averages})


class SparkDriver:
    """One process measuring the job at one size of micro-batch."""

    def __init__(self, options: Options, directory: Path) -> None:
        self.options = options
        rows, _, calls = options.variant.partition("-")
        self.rows_per_batch = int(rows)
        self.processor = RunningAverageByCalls() if calls else RunningAverage()
        self.directory = directory
        self.runs = 0
        self.spark = (
            SparkSession.builder.master(f"local[{options.parallelism}]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", options.parallelism)
            .config("spark.driver.memory", "4g")
            .config(  # transformWithState runs on no other
                "spark.sql.streaming.stateStore.providerClass",
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
            )
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")

    def prepare(self, records: int) -> Callable[[], object]:
        """Write the input; the call returned runs the query over it."""
        path = self.write_input(records)
        return lambda: self.execute(path)

    def write_input(self, records: int) -> Path:
        """Files of `rows_per_batch` rows."""
        path = self.directory / f"input-{records}"
        for start in range(0, records, self.rows_per_batch):
            end = min(start + self.rows_per_batch, records)
            part = path / f"part-{start:012d}"
            if not part.exists():
                numbers = self.spark.range(start + 1, end + 1, 1, numPartitions=1)
                rows = numbers.selectExpr(f"id * {_SCATTER} % {self.options.keys} AS key", "double(id) AS value")
                rows.write.parquet(str(part))
        return path

    def execute(self, path: Path, sink: str = "noop") -> None:
        """Run the query over the whole input."""
        self.runs += 1
        rows = self.spark.readStream.schema("key long, value double").option("maxFilesPerTrigger", 1)
        query = (
            self.average(rows.parquet(f"{path}/*"))
            .writeStream.format(sink)
            .queryName("averages")
            .option("checkpointLocation", str(self.directory / f"checkpoint-{self.runs}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def average(self, rows: DataFrame) -> DataFrame:
        """The job itself."""
        return rows.groupBy("key").transformWithStateInPandas(
            self.processor, "key long, average double", outputMode="Append", timeMode="None"
        )

    def run(self) -> dict[str, object]:
        """Do what the options ask for, measuring always with whole micro-batches."""
        options = self.options
        if options.mode == "collect":
            self.execute(self.write_input(options.records), "memory")
            return digest((row["key"], row["average"]) for row in self.spark.table("averages").collect())
        return measure_slope(
            self.prepare, expected=options.expected, seconds=options.seconds, unit=self.rows_per_batch
        ).as_json()


if __name__ == "__main__":
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as scratch:
        hand_over(SparkDriver(Options.parse(), Path(scratch)).run())
