"""Runs a job that writes Parquet files on Penstock or on PyFlink.

python -m benchmarks.systems.drive_files --package pyflink --job n --variant thread
"""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.files import FilesLoad, run_files_job
from benchmarks.harness.options import Options
from benchmarks.harness.report import hand_over
from benchmarks.systems.drive_flink import FlinkDriver
from benchmarks.systems.jars import PARQUET_JARS


class FilesDriver(FlinkDriver):
    """One process measuring the job."""

    def execute(self, load: FilesLoad) -> None:
        """Run the job to its end."""
        env = self.environment()
        if self.options.package == "pyflink":
            env.add_jars(*os.environ[PARQUET_JARS].split(";"))
        else:  # PyFlink keeps its checkpoints in memory
            env.get_checkpoint_config().set_checkpoint_storage(Path(tempfile.mkdtemp(prefix="bench-files-")).as_uri())
        rows = self.build(env, load)
        rows.sink_to(self.sink(load.target, rows))
        env.execute(self.job.title)

    def sink(self, target: str, rows: Any) -> Any:
        """The sink; PyFlink's wants the type of the table API."""
        package = self.options.package
        files = importlib.import_module(f"{package}.datastream.connectors.file_system")
        writers = importlib.import_module(f"{package}.datastream.formats.parquet").ParquetBulkWriters
        row_type = _table_type(rows.get_type()) if package == "pyflink" else rows.get_type()
        return files.FileSink.for_bulk_format(target, writers.for_row_type(row_type)).build()


def _table_type(row_type: Any) -> Any:
    """A row type of PyFlink's streams as one of its tables."""
    types = importlib.import_module("pyflink.table").DataTypes
    kinds = {"Long": types.BIGINT(), "String": types.STRING(), "Double": types.DOUBLE()}
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return types.ROW([types.FIELD(name, kinds[str(kind)]) for name, kind in fields])


if __name__ == "__main__":
    adopt_orphans()
    options = Options.parse()
    hand_over(run_files_job(options, FilesDriver(options).execute))
