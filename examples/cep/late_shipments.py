"""Late shipments: a parcel is sent, and is not delivered within two days.

A match is a delivery in time. What is wanted here is the opposite, a partial match whose time limit has passed: it goes
to a side output. It leaves as soon as the watermark has passed the limit, even if the parcel never arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cep_input import at, day_and_time, environment, in_event_time

from penstock.cep import CEP, Match, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from penstock.common import Duration
from penstock.datastream import DataStream, OutputTag


class Scan(NamedTuple):
    """A parcel was scanned: sent, sorted or delivered."""

    parcel: str
    time: int
    what: str


SCANS = [
    Scan("P1", at("08:00:00", day=1), "sent"),
    Scan("P2", at("09:00:00", day=1), "sent"),
    Scan("P1", at("20:00:00", day=1), "sorted"),
    Scan("P2", at("21:00:00", day=1), "sorted"),
    Scan("P1", at("10:30:00", day=2), "delivered"),
    Scan("P3", at("12:00:00", day=2), "sent"),  # never delivered
    Scan("P2", at("15:00:00", day=3), "delivered"),  # six hours late
    Scan("P4", at("08:00:00", day=6), "sent"),
    Scan("P4", at("09:00:00", day=7), "delivered"),
]
LATE = OutputTag("late")


def delivery_pattern() -> Pattern[Scan]:
    """A parcel is sent, then delivered within two days."""
    return (
        Pattern.begin("sent")
        .where(lambda scan: scan.what == "sent")
        .followed_by("delivered")
        .where(lambda scan: scan.what == "delivered")
        .within(Duration.of_days(2))
    )


class Deliveries(PatternProcessFunction[Scan, tuple[int, str]], TimedOutPartialMatchHandler[Scan]):
    """Deliveries in time to the main output, timeouts to the side output."""

    def process_match(self, match: Match[Scan], ctx: PatternProcessFunction.Context) -> Iterator[tuple[int, str]]:
        (sent,), (delivered,) = match["sent"], match["delivered"]
        hours = (delivered.time - sent.time) / 3_600_000
        yield delivered.time, f"{sent.parcel} delivered after {hours:.1f} hours"

    def process_timed_out_match(self, match: Match[Scan], ctx: PatternProcessFunction.Context) -> None:
        (sent,) = match["sent"]
        ctx.output(LATE, (ctx.timestamp(), f"{sent.parcel} sent {day_and_time(sent.time)}, not delivered"))


def deliveries(scans: DataStream) -> DataStream:
    """Deliveries in time, with those that are late as the side output `LATE`."""
    return CEP.pattern(scans.key_by(lambda scan: scan.parcel), delivery_pattern()).process(Deliveries())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints both outputs in the order of their times."""
    env = environment(__doc__, argv)
    print(f"Looking for: {delivery_pattern()}\n", flush=True)
    in_time = deliveries(in_event_time(env, SCANS))
    outputs = {"in time": in_time.collect_async(), "late": in_time.get_side_output(LATE).collect_async()}
    env.execute("late shipments")
    for title, found in outputs.items():
        print(f"{title}:")
        for time, text in sorted(found):
            print(f"  {day_and_time(time)}  {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
