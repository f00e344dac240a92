"""Taxi exercise 4, long ride alerts: tell about a ride as soon as it takes longer than two hours.

Not when it has ended: at the moment (of event time) when the two hours are over. So every begin sets a timer, and the
end deletes it. Ends can come before their begins, and can be missing.

The course's solution leaks state in two cases: a begin that never comes, and an end that comes after the alert. Here an
end that finds no begin sets a timer too, and is forgotten after two hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taxi_data import HOUR, TaxiRide, clock, environment, parser, rides, start_time

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import DataStream
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

TWO_HOURS = 2 * HOUR


class LongRideAlerts(KeyedProcessFunction):
    """Emits the id of a ride that takes too long, at most once."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # The event that waits for its counterpart: a begin for its end, or the other way round.
        self.waiting = runtime_context.get_state(ValueStateDescriptor("waiting", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: TaxiRide, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        other = self.waiting.value()
        timers = ctx.timer_service()
        if other is None:
            self.waiting.update(value)
            timers.register_event_time_timer(value.event_time + TWO_HOURS)
            return
        self.waiting.clear()
        timers.delete_event_time_timer(other.event_time + TWO_HOURS)
        if abs(value.event_time - other.event_time) > TWO_HOURS:  # the end is here before the watermark
            yield value.ride_id

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        waiting = self.waiting.value()
        self.waiting.clear()
        if waiting.is_start:
            yield waiting.ride_id


def alerts(stream: DataStream) -> DataStream:
    """The exercise: ids of rides that take longer than two hours."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    return (
        stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda ride: ride.event_time))
        .set_parallelism(1)
        .key_by(lambda ride: ride.ride_id)
        .process(LongRideAlerts())
        .name("long rides")
        .uid("long-rides")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints the alerts as they come."""
    options = parser(__doc__, rides=5_000).parse_args(argv)
    env = environment(options.parallelism)
    print(f"Watching {options.rides:,} rides.\n", flush=True)
    found = 0
    with alerts(rides(env, options.rides)).execute_and_collect("long ride alerts") as late:
        for ride_id in late:
            found += 1
            began = start_time(ride_id)
            print(f"ride {ride_id:6} began {clock(began)}, and is still under way at {clock(began + TWO_HOURS)}")
    print(f"\n{found} rides took longer than two hours.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
