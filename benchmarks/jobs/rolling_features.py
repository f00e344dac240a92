"""(s) Features of the last ten seconds of each sensor, every second, computed with numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.common import Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import ProcessWindowFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.window import SlidingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment

READING = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
NAMES = ["sensor", "window_end", "mean", "deviation", "low", "high", "slope"]
FEATURES = Types.ROW_NAMED(NAMES, [Types.LONG(), Types.LONG(), *[Types.DOUBLE()] * 5])
SCATTER = 2_654_435_761
EVENTS_PER_MS = 10


class ReadingTime(TimestampAssigner):
    """The reading carries its time in its second field."""

    def extract_timestamp(self, value: tuple[int, int, float], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[1]


class Features(ProcessWindowFunction):
    """Mean, deviation, extremes and trend of the readings in the window."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context, elements: Iterable[tuple[int, int, float]]
    ) -> Iterator[Row]:
        """One row for each window. Rounded, because sums depend on the version of numpy."""
        readings = np.array([(time, value) for _, time, value in elements])
        values = readings[:, 1]
        times = readings[:, 0] - readings[:, 0].mean()
        mean = values.mean()
        spread = float(times @ times)
        slope = float(times @ (values - mean)) / spread if spread else 0.0
        found = (mean, values.std(), values.min(), values.max(), slope)
        yield Row(key, context.window().end, *[round(float(feature), 6) for feature in found])


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The features of each sensor and window.

    The source cuts the sequence into one contiguous part per subtask. Event time starts at 0 in each part, so that
    the parts advance side by side as the partitions of a log do.
    """
    keys, splits = load.keys, load.parallelism
    part = -(-load.records // splits)
    per_split = max(1, EVENTS_PER_MS // splits)
    numbers = env.from_source(
        NumberSequenceSource(0, part * splits - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(lambda n: (n * SCATTER % keys, n % part // per_split, float(n % 997)), output_type=READING)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(ReadingTime())
        )
        .key_by(lambda reading: reading[0], key_type=Types.LONG())
        .window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(1)))
        .process(Features(), output_type=FEATURES)
    )
