"""Runs the job from files to Parquet files on Bytewax, whose own file source reads; it has no Parquet sink, so here is
one, which writes with Arrow.

python -m benchmarks.systems.drive_bytewax_files --job n
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import DirSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.files import FilesLoad, run_files_job
from benchmarks.harness.options import Options
from benchmarks.harness.parquet import ParquetFile
from benchmarks.harness.report import hand_over
from benchmarks.systems.drive_bytewax import MILLISECOND, START, event_clock, run_processes

_SECOND = 1_000


class _Part(StatelessSinkPartition[Any]):
    """The file of a worker."""

    def __init__(self, path: Path) -> None:
        self._file = ParquetFile(path)

    def write_batch(self, items: list[Any]) -> None:
        """Add the rows."""
        self._file.add(items)

    def close(self) -> None:
        """Complete the file."""
        self._file.close()


class ParquetSink(DynamicSink[Any]):
    """A file for every worker."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Part:
        """One per worker."""
        return _Part(self._directory / f"part-{worker_index}.parquet")


def parse(line: str) -> tuple[str, tuple[int, Any]]:
    """`key,event time`."""
    key, _, time = line.partition(",")
    return key, (int(key), START + MILLISECOND * int(time))


def row(item: tuple[str, tuple[int, int]]) -> tuple[int, int, int]:
    """(key, end of the window, count): windows are numbered from the start of event time on."""
    key, (window, count) = item
    return int(key), (window + 1) * _SECOND, count


def flow(load: FilesLoad) -> Dataflow:
    """The dataflow."""
    flow = Dataflow("files")
    lines = op.input("lines", flow, DirSource(Path(load.inputs[0]).parent, "*.csv", batch_size=1_000))
    counted = win.fold_window(
        "windows",
        op.map("parse", lines, parse),
        event_clock(load.parallelism),
        win.TumblingWindower(length=timedelta(seconds=1), align_to=START),
        builder=lambda: 0,
        folder=lambda count, _reading: count + 1,
        merger=lambda a, b: a + b,
        ordered=False,
    )
    op.output("files", op.map("row", counted.down, row), ParquetSink(load.target))
    return flow


def execute(load: FilesLoad) -> None:
    """Run the dataflow to its end."""
    run_processes(flow, load, load.parallelism)


if __name__ == "__main__":
    adopt_orphans()
    options = Options.parse()
    hand_over(run_files_job(options, execute))
