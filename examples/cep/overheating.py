"""Overheating: a machine gets hotter with each of four readings in a row, by more than ten degrees in total.

Whether a reading is hotter depends on the reading before it, so the condition is iterative: it asks its context for the
events that the partial match has taken so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cep_input import at, clock, environment, in_event_time

from penstock.cep import CEP, AfterMatchSkipStrategy, IterativeCondition, Match, Pattern
from penstock.datastream import DataStream


class Reading(NamedTuple):
    """The temperature of a machine at a time."""

    machine: str
    time: int
    celsius: float


def readings(machine: str, *temperatures: float) -> list[Reading]:
    """A reading every ten seconds."""
    return [Reading(machine, at("12:00:00") + 10_000 * n, celsius) for n, celsius in enumerate(temperatures)]


READINGS = sorted(
    [
        *readings("press", 60, 61, 65, 71, 78, 77, 76),
        *readings("drill", 50, 51, 52, 53, 54, 55, 56),  # hotter each time, but slowly
        *readings("lathe", 40, 48, 47, 56, 55, 64, 63),  # a lot hotter, but not each time
        *readings("mixer", 30, 29, 33, 39, 47, 50, 52),
    ],
    key=lambda reading: reading.time,
)


class HotterThanBefore(IterativeCondition[Reading]):
    """Accepts a reading above the last one of the partial match."""

    def filter(self, value: Reading, ctx: IterativeCondition.Context) -> bool:
        earlier = ctx.get_events_for_pattern("rising") or ctx.get_events_for_pattern("first")
        return value.celsius > earlier[-1].celsius


def risen(reading: Reading, ctx: IterativeCondition.Context) -> bool:
    """Whether the temperature is ten degrees above the first reading of the partial match."""
    (first,) = ctx.get_events_for_pattern("first")
    return bool(reading.celsius > first.celsius + 10)


def heat_pattern() -> Pattern[Reading]:
    """Four readings in a row, each hotter than the one before, and the last one ten degrees above the first."""
    return (
        Pattern.begin("first", AfterMatchSkipStrategy.skip_past_last_event())
        .next("rising")
        .where(HotterThanBefore())
        .times(2)
        .consecutive()
        .next("hot")
        .where(HotterThanBefore())
        .where(risen)
    )


def alert(match: Match[Reading]) -> tuple[int, str]:
    """The time of an alert and its text."""
    taken = [*match["first"], *match["rising"], *match["hot"]]
    degrees = " ".join(f"{reading.celsius:.0f}" for reading in taken)
    return taken[-1].time, f"{taken[-1].machine} is overheating: {degrees} °C"


def alerts(stream: DataStream) -> DataStream:
    """The alerts for a stream of readings."""
    return CEP.pattern(stream.key_by(lambda reading: reading.machine), heat_pattern()).select(alert)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints the alerts in the order of their times."""
    env = environment(__doc__, argv)
    print(f"Looking for: {heat_pattern()}\n", flush=True)
    with alerts(in_event_time(env, READINGS)).execute_and_collect("overheating") as found:
        for time, text in sorted(found):
            print(f"{clock(time)}  {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
