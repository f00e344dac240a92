"""(p) A pattern of three events per key: `a`, later `b`, later `c`, all within 10 s.

`systems/java/PatternBenchmark.java` is the same job for Flink, whose CEP library has no Python API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.cep import CEP, Pattern
from penstock.common import Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.connectors.number_seq import NumberSequenceSource

if TYPE_CHECKING:
    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
TIMES = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
SCATTER = 2_654_435_761
KINDS = 4  # a, b, c and one that the pattern has no use for
WINDOW_MS = 10_000


class EventTime(TimestampAssigner):
    """The event carries its time in its third field: one event per millisecond."""

    def extract_timestamp(self, value: tuple[int, int, int], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[2]


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(key, time of a, time of b, time of c) of every match."""
    keys = load.keys
    # One source in order: several would run ahead of each other, and Flink's cost grows quadratically then.
    numbers = env.from_source(
        NumberSequenceSource(1, load.records), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    ).set_parallelism(1)
    events = (
        numbers.map(lambda n: (n * SCATTER % keys, (n * SCATTER >> 13) % KINDS, n), output_type=EVENT)
        .set_parallelism(1)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
        )
        .set_parallelism(1)
    )
    pattern = (
        Pattern.begin("a")
        .where(lambda event: event[1] == 0)
        .followed_by("b")
        .where(lambda event: event[1] == 1)
        .followed_by("c")
        .where(lambda event: event[1] == 2)
        .within(WINDOW_MS)
    )
    return CEP.pattern(events.key_by(lambda event: event[0], key_type=Types.LONG()), pattern).select(
        _times, output_type=TIMES
    )


def _times(match: dict[str, list[Any]]) -> tuple[int, int, int, int]:
    (first,), (second,), (third,) = match["a"], match["b"], match["c"]
    return first[0], first[2], second[2], third[2]
