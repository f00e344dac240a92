"""Files -> counts per sensor and minute -> Parquet files, exactly once.

    python examples/connectors/file_counts.py --input readings/ --output counts/ [--watch] [--checkpoint checkpoint/]

Reads CSV files of `sensor,time in ms,temperature`; with --watch also those that are moved into the directory later,
until it is stopped. With --checkpoint it can be killed at any moment and started again: the output has every window
once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    OutputFileConfig,
)
from penstock.datastream.formats.csv import CsvReaderFormat, CsvSchema
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.datastream.window import TumblingEventTimeWindows

READING = (
    CsvSchema.builder()
    .add_string_column("sensor")
    .add_number_column("time", Types.LONG())
    .add_number_column("temperature", Types.DOUBLE())
    .build()
)
COUNT = Types.ROW_NAMED(["sensor", "minute", "readings"], [Types.STRING(), Types.LONG(), Types.LONG()])


class CountReadings(ProcessWindowFunction):
    """One row per sensor and window."""

    def process(self, key: str, context: Any, elements: Any) -> Any:
        yield key, context.window().start, sum(1 for _ in elements)


def define(env: StreamExecutionEnvironment, source: str, target: str, *, watch: bool = False) -> None:
    """The job."""
    files = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(READING), source)
    if watch:
        files.monitor_continuously(Duration.of_seconds(1))
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
        lambda reading, _: reading.time
    )
    counts = (
        env.from_source(files.build(), in_order, "readings")
        .uid("readings")
        .key_by(lambda reading: reading.sensor)
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .process(CountReadings(), output_type=COUNT)
        .uid("counts")
    )
    writers = ParquetBulkWriters.for_row_type(COUNT)
    sink = (
        FileSink.for_bulk_format(target, writers)
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd"))
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".parquet").build())
        .enable_compact(
            # A file for each micro-batch would be many: make one of a hundred.
            FileCompactStrategy.builder().enable_compaction_on_checkpoint(100).set_size_threshold(64 << 20).build(),
            FileCompactor.record_wise_file_compactor(ParquetColumnarRowInputFormat(COUNT), writers),
        )
        .build()
    )
    counts.sink_to(sink).uid("parquet")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--checkpoint")
    options = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    if options.checkpoint:
        env.get_checkpoint_config().set_checkpoint_storage(Path(options.checkpoint).absolute().as_uri())
    define(env, options.input, options.output, watch=options.watch)
    env.execute("count readings")


if __name__ == "__main__":
    main()
