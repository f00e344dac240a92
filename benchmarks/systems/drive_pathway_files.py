"""Runs the job from files to Parquet files on Pathway: it reads CSV files; a subscriber writes the rows with Arrow,
because Pathway writes Parquet files only as a Delta table, and that asks for a licence key.

It reads the files as a batch: in streaming mode its file source never ends.

python -m benchmarks.systems.drive_pathway_files --job n
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pathway as pw
from pathway.internals.parse_graph import G as GRAPH

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.files import FilesLoad, run_files_job
from benchmarks.harness.options import Options
from benchmarks.harness.parquet import ParquetFile
from benchmarks.harness.report import hand_over


class _Schema(pw.Schema):
    key: int
    time: int


def execute(load: FilesLoad) -> None:
    """Run the job to its end."""
    GRAPH.clear()
    readings = pw.io.csv.read(str(Path(load.inputs[0]).parent), schema=_Schema, mode="static")
    windows = readings.windowby(
        readings.time,
        window=pw.temporal.tumbling(duration=1_000),
        behavior=pw.temporal.exactly_once_behavior(shift=5),
        instance=readings.key,
    )
    counts = windows.reduce(key=pw.this._pw_instance, window_end=pw.this._pw_window_end, count=pw.reducers.count())
    file = ParquetFile(Path(load.target) / "part-0.parquet")

    def change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        assert is_addition, "windows are emitted once"
        file.add([(row["key"], row["window_end"], row["count"])])

    pw.io.subscribe(counts, change, file.close)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)


if __name__ == "__main__":
    adopt_orphans()
    options = Options.parse()
    os.environ["PATHWAY_THREADS"] = str(options.parallelism)
    hand_over(run_files_job(options, execute, header="key,time\n"))
