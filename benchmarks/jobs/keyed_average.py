"""(b), (c) A running average per key: one ValueState, read and written for every record, every record emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment

READING = Types.TUPLE([Types.LONG(), Types.DOUBLE()])

# Scatters neighbouring numbers over the keys; coprime to every power of ten, so all keys come equally often.
SCATTER = 2_654_435_761


class RunningAverage(KeyedProcessFunction):
    """Emits (key, average so far) for every reading."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: (count, sum)."""
        # A type made outside, once used by PyFlink's job graph, can no longer be shipped to a worker.
        self.state = runtime_context.get_state(
            ValueStateDescriptor("count_and_sum", Types.TUPLE([Types.LONG(), Types.DOUBLE()]))
        )

    def process_element(
        self, value: tuple[int, float], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, float]]:
        """Add one reading."""
        count, total = self.state.value() or (0, 0.0)
        count, total = count + 1, total + value[1]
        self.state.update((count, total))
        yield value[0], total / count


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The stream whose records are discarded."""
    keys = load.keys
    numbers = env.from_source(
        NumberSequenceSource(1, load.records), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(lambda n: (n * SCATTER % keys, float(n)), output_type=READING)
        .key_by(lambda reading: reading[0], key_type=Types.LONG())
        .process(RunningAverage(), output_type=READING)
    )
