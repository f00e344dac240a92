"""Files as source and as sink (ch. 8)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from showcase import Showcase

from penstock.common import Encoder, Types, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileSource,
    OutputFileConfig,
    StreamFormat,
    StreamingFileSink,
)
from penstock.datastream.formats.parquet import ParquetBulkWriters

book = Showcase(__doc__)

READING = Types.ROW_NAMED(["sensor", "temperature"], [Types.STRING(), Types.DOUBLE()])
READINGS = [("sensor_1", 68.5), ("sensor_2", 71.0), ("sensor_1", 69.0), ("sensor_2", 74.5)]


def new_directory() -> Path:
    """For one run of an example."""
    return Path(tempfile.mkdtemp(prefix="penstock-example-"))


@book.example("8-3", "Reading files")
def read_files(env: StreamExecutionEnvironment) -> DataStream:
    """All files of a directory, line by line. `.monitor_continuously(...)` would go on with files that come later.

    Write such files elsewhere and move them there when they are complete: a file is read once, when it is found.
    """
    directory = new_directory()
    for number, (sensor, temperature) in enumerate(READINGS):
        (directory / f"{number}.csv").write_text(f"{sensor},{temperature}\n", encoding="utf-8")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    return lines.map(lambda line: (line.split(",")[0], float(line.split(",")[1])))


@book.example("8-4", "Writing files, record by record")
def write_rows(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Text in parts that appear when their checkpoint is complete: readers see every line once."""
    directory = new_directory()
    sink = (
        StreamingFileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".txt").build())
        .build()
    )
    lines = env.from_collection(READINGS).map(lambda one: f"{one[0]} {one[1]}", output_type=Types.STRING())
    lines.add_sink(sink)

    def written() -> list[Any]:
        found = sorted(line for part in directory.rglob("*.txt") for line in part.read_text("utf-8").splitlines())
        shutil.rmtree(directory)
        return found

    return {"lines of all parts": written}


@book.example("8-5", "Writing files, many records at a time")
def write_parquet(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Parquet is complete only at the end of a file, so there is a new one with every checkpoint."""
    directory = new_directory()
    sink = (
        StreamingFileSink.for_bulk_format(str(directory), ParquetBulkWriters.for_row_type(READING))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".parquet").build())
        .build()
    )
    env.from_collection(READINGS, READING).add_sink(sink)

    def written() -> list[Any]:
        import pyarrow.parquet as pq

        rows = [row for part in directory.rglob("*.parquet") for row in pq.read_table(part).to_pylist()]
        shutil.rmtree(directory)
        return sorted((row["sensor"], row["temperature"]) for row in rows)

    return {"rows of all parts": written}


if __name__ == "__main__":
    raise SystemExit(book.main())
