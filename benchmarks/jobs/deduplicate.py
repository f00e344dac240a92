"""(r) Events that may come twice -> each once, as long as its id is remembered -> Parquet files, exactly once.

Every fourth event repeats one that came a little earlier. An id is remembered for an hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import StateTtlConfig, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.files import FilesLoad
    from penstock.datastream import DataStream, StreamExecutionEnvironment

EVENT = Types.ROW_NAMED(["id", "customer", "amount"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
REPEATED = 4
DISTANCE = 1_001  # not a multiple of REPEATED: what is repeated is not a repetition itself
CUSTOMERS = 10_000


def event(n: int) -> Row:
    """The n-th event; every fourth one is the one DISTANCE before it."""
    if n % REPEATED == 0 and n > DISTANCE:
        n -= DISTANCE
    return Row(f"order-{n:012}", n % CUSTOMERS, n % 1_000 / 4)


class FirstOfEachId(KeyedProcessFunction):
    """Passes on events whose id was not seen for an hour."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(seen)

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """Emit it if it is the first one."""
        if self.seen.value() is None:
            self.seen.update(True)
            yield value


def build(env: StreamExecutionEnvironment, load: FilesLoad) -> DataStream:
    """The rows that are written."""
    numbers = env.from_source(
        NumberSequenceSource(1, load.records), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(event, output_type=EVENT)
        .key_by(lambda row: row[0], key_type=Types.STRING())
        .process(FirstOfEachId(), output_type=EVENT)
    )
