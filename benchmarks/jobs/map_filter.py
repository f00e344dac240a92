"""(a) sequence -> map -> filter -> discard: the cost of a record that needs no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Types, WatermarkStrategy
from penstock.datastream.connectors.number_seq import NumberSequenceSource

if TYPE_CHECKING:
    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The stream whose records are discarded."""
    numbers = env.from_source(
        NumberSequenceSource(1, load.records), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return numbers.map(lambda n: 2 * n + 1, output_type=Types.LONG()).filter(lambda n: n % 3 != 0)
