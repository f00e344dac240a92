"""A program to be killed: files of readings -> counts per sensor and window -> Parquet, exactly once.

python file_job.py CHECKPOINT_DIRECTORY INPUT_DIRECTORY OUTPUT_DIRECTORY
"""

import sys
from pathlib import Path

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    OutputFileConfig,
)
from penstock.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.formats.csv import CsvReaderFormat, CsvSchema
from penstock.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

READING = CsvSchema.builder().add_string_column("sensor").add_number_column("at", Types.LONG()).build()
COUNT = Types.ROW_NAMED(["sensor", "start", "count"], [Types.STRING(), Types.LONG(), Types.LONG()])
WINDOW = 1_000


class AtField:
    def extract_timestamp(self, value, record_timestamp):
        return value.at


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, len(list(elements))


def main(checkpoint, source, target):
    configuration = Configuration.from_dict({"penstock.batch.max-records": "60", "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    files = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(READING), source).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtField())
    readings = env.from_source(files, strategy, "readings").uid("readings")
    windows = readings.key_by(lambda row: row.sensor).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW)))
    counts = windows.process(Count(), output_type=COUNT).uid("counts")
    writers = ParquetBulkWriters.for_row_type(COUNT)
    sink = FileSink.for_bulk_format(target, writers).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink.with_output_file_config(OutputFileConfig.builder().with_part_suffix(".parquet").build())
    compactor = FileCompactor.record_wise_file_compactor(ParquetColumnarRowInputFormat(COUNT), writers)
    sink.enable_compact(FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).build(), compactor)
    counts.sink_to(sink.build()).uid("parquet")
    env.execute("count readings")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
