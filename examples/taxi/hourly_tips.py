"""Taxi exercise 3, hourly tips: which driver earned the most in tips, hour after hour?

Two windows, one behind the other: the sum of each driver (in parallel), then the best of them (in one task). Results of
the first window have its last timestamp, so they meet again in the window of the same hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from taxi_data import HOUR, TaxiFare, clock, environment, fares, parser

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import DataStream
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows


class SumOfTips(AggregateFunction):
    """All that a window keeps is one number."""

    def create_accumulator(self) -> float:
        return 0.0

    def add(self, value: TaxiFare, accumulator: float) -> float:
        return accumulator + value.tip

    def get_result(self, accumulator: float) -> float:
        return accumulator

    def merge(self, acc_a: float, acc_b: float) -> float:
        return acc_a + acc_b


class WithHourAndDriver(ProcessWindowFunction[float, tuple[int, int, float], int, TimeWindow]):
    """Adds what the sum alone does not know: the end of the window, and whose it is."""

    def process(self, key: int, context: Any, elements: Iterable[float]) -> Iterator[tuple[int, int, float]]:
        for tips in elements:  # there is exactly one
            yield context.window().end, key, tips


def best_of_each_hour(stream: DataStream) -> DataStream:
    """The exercise: (end of the hour, driver, sum of tips) of the driver with the largest sum."""
    ascending = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    hour = TumblingEventTimeWindows.of(Time.milliseconds(HOUR))
    return (
        stream.assign_timestamps_and_watermarks(ascending.with_timestamp_assigner(lambda fare: fare.start_time))
        .set_parallelism(1)  # as the source: one task, so no exchange between them
        .key_by(lambda fare: fare.driver_id)
        .window(hour)
        .aggregate(SumOfTips(), WithHourAndDriver())
        .name("tips of each driver")
        .window_all(hour)
        .max_by(2)
        .name("best driver")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints a line an hour, as the hours end."""
    options = parser(__doc__, rides=2_000).parse_args(argv)
    env = environment(options.parallelism)
    print("hour until        driver         tips", flush=True)
    with best_of_each_hour(fares(env, options.rides)).execute_and_collect("hourly tips") as winners:
        for end, driver, tips in winners:
            print(f"{clock(end)}   {driver}   {tips:7.2f}   {'*' * round(tips / 4)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
