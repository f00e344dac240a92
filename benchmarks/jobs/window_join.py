"""(g) A window join of two streams: tumbling windows of one second, 1,000 keys. PyFlink has no such join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment

READING = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
SCATTER = 2_654_435_761
EVENTS_PER_MS = 2


class ReadingTime(TimestampAssigner):
    """The reading carries its time in its second field."""

    def extract_timestamp(self, value: tuple[int, int, float], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[1]


def side(env: StreamExecutionEnvironment, load: Workload, name: str) -> DataStream:
    """One input: half of the records, one event per millisecond and split."""
    keys, splits = load.keys, load.parallelism
    part = -(-load.records // (2 * splits))
    per_split = max(1, EVENTS_PER_MS // splits)
    numbers = env.from_source(
        NumberSequenceSource(0, part * splits - 1), WatermarkStrategy.no_watermarks(), name, Types.LONG()
    )
    return numbers.map(
        lambda n: (n * SCATTER % keys, n % part // per_split, float(n)), output_type=READING
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(ReadingTime())
    )


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(key, left value, right value) for each pair in the same window: about four pairs for every key and second."""
    return (
        side(env, load, "left")
        .join(side(env, load, "right"))
        .where(lambda reading: reading[0])
        .equal_to(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .apply(lambda left, right: (left[0], left[2], right[2]))
    )
