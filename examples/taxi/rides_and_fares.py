"""Taxi exercise 2, rides and fares: a ride and its fare come on two streams, in any order; put them together.

The record that arrives first waits in keyed state. The course's first solution waits forever if its partner was lost.
Here a timer decides: once the watermark has passed the start of a ride, both streams are complete up to it, so the
missing partner will not come any more. The record without a partner goes to a side output, and the state is cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taxi_data import TaxiFare, TaxiRide, clock, environment, fares, parser, rides

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import DataStream, OutputTag
from penstock.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

SHUFFLED_BY = Duration.of_seconds(100)  # five rides, 20 seconds apart, come in any order
RIDES_ALONE = OutputTag("rides without a fare", Types.PICKLED_BYTE_ARRAY())
FARES_ALONE = OutputTag("fares without a ride", Types.PICKLED_BYTE_ARRAY())


class Pair(KeyedCoProcessFunction):
    """The ride and the fare of one ride id."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.ride = runtime_context.get_state(ValueStateDescriptor("ride", Types.PICKLED_BYTE_ARRAY()))
        self.fare = runtime_context.get_state(ValueStateDescriptor("fare", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(
        self, value: TaxiRide, ctx: KeyedCoProcessFunction.Context
    ) -> Iterator[tuple[TaxiRide, TaxiFare]]:
        fare = self.fare.value()
        if fare is None:
            self.ride.update(value)
            ctx.timer_service().register_event_time_timer(value.event_time)
        else:
            self.fare.clear()
            ctx.timer_service().delete_event_time_timer(fare.start_time)
            yield value, fare

    def process_element2(
        self, value: TaxiFare, ctx: KeyedCoProcessFunction.Context
    ) -> Iterator[tuple[TaxiRide, TaxiFare]]:
        ride = self.ride.value()
        if ride is None:
            self.fare.update(value)
            ctx.timer_service().register_event_time_timer(value.start_time)
        else:
            self.ride.clear()
            ctx.timer_service().delete_event_time_timer(ride.event_time)
            yield ride, value

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> None:
        for state, alone in ((self.ride, RIDES_ALONE), (self.fare, FARES_ALONE)):
            if state.value() is not None:
                ctx.output(alone, state.value())
                state.clear()


def paired(ride_stream: DataStream, fare_stream: DataStream) -> DataStream:
    """The exercise: pairs of a ride's begin and its fare."""
    shuffled = WatermarkStrategy.for_bounded_out_of_orderness(SHUFFLED_BY)
    ascending = WatermarkStrategy.for_monotonous_timestamps()
    begins = (
        ride_stream.filter(lambda ride: ride.is_start)
        .set_parallelism(1)
        .assign_timestamps_and_watermarks(shuffled.with_timestamp_assigner(lambda ride: ride.event_time))
        .set_parallelism(1)
    )
    stamped_fares = fare_stream.assign_timestamps_and_watermarks(
        ascending.with_timestamp_assigner(lambda fare: fare.start_time)
    ).set_parallelism(1)
    pairs = begins.connect(stamped_fares).key_by(lambda ride: ride.ride_id, lambda fare: fare.ride_id).process(Pair())
    return pairs.name("rides with fares").uid("rides-with-fares")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints pairs, and what was left alone."""
    arguments = parser(__doc__, rides=1_000)
    arguments.add_argument("--lose", type=int, default=250, metavar="N", help="lose every N-th fare (default: 250)")
    options = arguments.parse_args(argv)
    env = environment(options.parallelism)
    lose = options.lose
    received = fares(env, options.rides).filter(lambda fare: fare.ride_id % lose != 0).set_parallelism(1)
    pairs = paired(rides(env, options.rides), received)
    together, alone = pairs.collect_async(), pairs.get_side_output(RIDES_ALONE).collect_async()
    env.execute("rides and fares")

    found = sorted(together)
    print(f"{len(found):,} rides with their fares. The first of them:\n")
    print(f"{'ride':>6}   {'begins':15} {'passengers':>13}   {'paid':5} {'fare':>7} {'tip':>8}")
    for ride, fare in found[:8]:
        print(
            f"{ride.ride_id:6}   {clock(ride.event_time)} {ride.passengers:13}   {fare.payment_type:5} "
            f"{fare.total_fare:7.2f} {fare.tip:8.2f}"
        )
    unpaid = sorted(alone)
    print(f"\n{len(unpaid):,} rides whose fare was lost: {', '.join(str(ride.ride_id) for ride in unpaid)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
