"""Card fraud: a thief tests a stolen card with a small charge, and takes a large sum right after.

The pattern is a charge below one dollar, then one above 500 dollars, on the same card and within a minute. Other
charges may come in between. Events arrive out of order; the pattern sees them in the order of their timestamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cep_input import at, clock, environment, in_event_time

from penstock.cep import CEP, Match, Pattern
from penstock.common import Duration
from penstock.datastream import DataStream


class Charge(NamedTuple):
    """A payment with a card."""

    card: str
    time: int
    dollars: float


CHARGES = [
    Charge("ada", at("09:00:00"), 0.40),
    Charge("alan", at("09:00:05"), 0.90),
    Charge("ada", at("09:00:20"), 35.00),
    Charge("grace", at("09:00:38"), 700.00),  # arrives before the small charge, but was made after it
    Charge("grace", at("09:00:30"), 0.10),
    Charge("ada", at("09:00:45"), 812.50),
    Charge("alan", at("09:01:10"), 650.00),  # 65 seconds later: too late for the pattern
]


def fraud_pattern() -> Pattern[Charge]:
    """A small charge, then a large one within a minute."""
    return (
        Pattern.begin("small")
        .where(lambda charge: charge.dollars < 1)
        .followed_by("large")
        .where(lambda charge: charge.dollars > 500)
        .within(Duration.of_minutes(1))
    )


def alert(match: Match[Charge]) -> tuple[int, str]:
    """The time of an alert and its text."""
    (small,), (large,) = match["small"], match["large"]
    seconds = (large.time - small.time) // 1000
    return large.time, f"{large.card}: ${large.dollars:.2f}, {seconds} s after ${small.dollars:.2f}"


def alerts(charges: DataStream) -> DataStream:
    """The alerts for a stream of charges."""
    return CEP.pattern(charges.key_by(lambda charge: charge.card), fraud_pattern()).select(alert)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints the alerts in the order of their times."""
    env = environment(__doc__, argv)
    print(f"Looking for: {fraud_pattern()}\n", flush=True)
    with alerts(in_event_time(env, CHARGES)).execute_and_collect("card fraud") as found:
        for time, text in sorted(found):
            print(f"{clock(time)}  {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
