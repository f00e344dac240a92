"""(n) Files -> count by key in windows of 1 s -> Parquet files, exactly once.

A line is `key,event time in ms`; a row of the result is (key, end of the window, count).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import ProcessWindowFunction
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.harness.files import FilesLoad
    from penstock.datastream import DataStream, StreamExecutionEnvironment

READING = Types.TUPLE([Types.LONG(), Types.LONG()])
ROW = Types.ROW_NAMED(["key", "window_end", "count"], [Types.LONG(), Types.LONG(), Types.LONG()])


class ReadingTime(TimestampAssigner):
    """The reading carries its time in its second field."""

    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[1]


class Count(AggregateFunction):
    """How many."""

    def create_accumulator(self) -> int:
        """None yet."""
        return 0

    def add(self, value: tuple[int, int], accumulator: int) -> int:
        """One more."""
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """The count."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """Both windows together."""
        return acc_a + acc_b


class Describe(ProcessWindowFunction):
    """A row for the file."""

    def process(self, key: int, context: ProcessWindowFunction.Context, elements: Iterable[int]) -> Iterator[Row]:
        """The one count of the window."""
        for count in elements:
            yield Row(key, context.window().end, count)


def parse(line: str) -> tuple[int, int]:
    """`key,event time`."""
    key, _, time = line.partition(",")
    return int(key), int(time)


def build(env: StreamExecutionEnvironment, load: FilesLoad) -> DataStream:
    """The rows that are written."""
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *load.inputs).build()
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        .map(parse, output_type=READING)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(ReadingTime())
        )
        .key_by(lambda reading: reading[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(Count(), Describe(), accumulator_type=Types.LONG(), output_type=ROW)
    )
