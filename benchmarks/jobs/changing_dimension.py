"""(t) Orders with the price that was valid at their time: a slowly changing dimension, joined by event-time timers.

One record in ten is a new price of a product, the others are orders. An order waits until event time has reached it;
then every price that was valid at its time has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedCoProcessFunction, RuntimeContext
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.options import Workload
    from penstock.datastream import DataStream, StreamExecutionEnvironment

RECORD = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])  # product, time, quantity or price
PRICED = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.DOUBLE()])
SCATTER = 2_654_435_761
EVENTS_PER_MS = 10
PRICES = 10  # one record in so many is a price
DELAY_MS = 20


class RecordTime(TimestampAssigner):
    """The record carries its time in its second field."""

    def extract_timestamp(self, value: tuple[int, int, float], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return value[1]


class PriceAtTheTime(KeyedCoProcessFunction):
    """Joins an order with the last price that is not newer than the order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: prices by the time they became valid, and orders that wait for event time."""
        self.prices = runtime_context.get_map_state(MapStateDescriptor("prices", Types.LONG(), Types.DOUBLE()))
        self.orders = runtime_context.get_list_state(
            ListStateDescriptor("orders", Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
        )

    def process_element1(self, value: tuple[int, int, float], ctx: KeyedCoProcessFunction.Context) -> None:
        """An order waits until event time has reached it."""
        self.orders.add(value)
        ctx.timer_service().register_event_time_timer(value[1])

    def process_element2(self, value: tuple[int, int, float], ctx: KeyedCoProcessFunction.Context) -> None:
        """A new price."""
        self.prices.put(value[1], value[2])

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext
    ) -> Iterator[tuple[int, int, float, float]]:
        """Emit the orders that are due; forget prices that no order can need any more."""
        waiting = []
        valid = sorted((since, price) for since, price in self.prices.items() if since <= timestamp)
        for order in self.orders.get():
            if order[1] > timestamp:
                waiting.append(order)
                continue
            price = 0.0
            for since, its in valid:
                if since <= order[1]:
                    price = its
            yield (*order, price)
        self.orders.update(waiting)
        for since, _ in valid[:-1]:
            self.prices.remove(since)


def build(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """Orders with their prices.

    The sources cut their sequences into one contiguous part per subtask. Event time starts at 0 in each part, so that
    the parts advance side by side as the partitions of a log do.
    """
    orders = records(env, load, "orders", 1)
    prices = records(env, load, "prices", PRICES)
    return (
        orders.connect(prices)
        .key_by(lambda order: order[0], lambda price: price[0], key_type=Types.LONG())
        .process(PriceAtTheTime(), output_type=PRICED)
    )


def records(env: StreamExecutionEnvironment, load: Workload, name: str, every: int) -> DataStream:
    """Orders, or prices: one for every so many orders."""
    keys, splits = load.keys, load.parallelism
    part = -(-load.records * (PRICES - 1 if every == 1 else 1) // (PRICES * splits))
    spacing = 1 if every == 1 else PRICES - 1  # both streams cover the same event time
    per_split = max(1, EVENTS_PER_MS // splits)
    numbers = env.from_source(
        NumberSequenceSource(0, part * splits - 1), WatermarkStrategy.no_watermarks(), name, Types.LONG()
    )
    return numbers.map(
        lambda n: (n * SCATTER % keys, n % part * spacing // per_split, float(n % 1_009)), output_type=RECORD
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DELAY_MS)).with_timestamp_assigner(
            RecordTime()
        )
    )
