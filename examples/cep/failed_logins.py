"""Failed logins: a user gets the password wrong three times in a row within five minutes.

`times(3).consecutive()` asks for three failures without a success in between. Six failures in a row are two alerts, not
four: after a match, the search resumes behind its last event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cep_input import at, clock, environment, in_event_time

from penstock.cep import CEP, AfterMatchSkipStrategy, Match, Pattern
from penstock.common import Duration
from penstock.datastream import DataStream


class Login(NamedTuple):
    """An attempt to log in."""

    user: str
    time: int
    succeeded: bool


def attempts(user: str, outcomes: dict[str, str]) -> list[Login]:
    """Attempts from times and outcomes."""
    return [Login(user, at(time), outcome == "ok") for time, outcome in outcomes.items()]


LOGINS = sorted(
    [
        # Twice wrong, then right, then wrong again: three failures, but not in a row.
        *attempts("ada", {"08:00:00": "wrong", "08:00:20": "wrong", "08:00:40": "ok", "08:01:00": "wrong"}),
        *attempts("mallory", {f"08:00:{second}": "wrong" for second in (10, 15, 20, 25, 30, 35)}),
        # Three failures in a row, but in more than five minutes.
        *attempts("alan", {"08:00:00": "wrong", "08:03:00": "wrong", "08:06:00": "wrong", "08:06:10": "ok"}),
        *attempts("grace", {"08:02:00": "ok", "08:04:00": "wrong", "08:04:30": "wrong", "08:05:00": "wrong"}),
    ],
    key=lambda login: login.time,
)


def failures_pattern() -> Pattern[Login]:
    """Three failures in a row within five minutes."""
    return (
        Pattern.begin("failed", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda login: not login.succeeded)
        .times(3)
        .consecutive()
        .within(Duration.of_minutes(5))
    )


def alert(match: Match[Login]) -> tuple[int, str]:
    """The time of an alert and its text."""
    failed = match["failed"]
    times = ", ".join(clock(login.time) for login in failed)
    return failed[-1].time, f"{failed[-1].user} failed at {times}"


def alerts(logins: DataStream) -> DataStream:
    """The alerts for a stream of logins."""
    return CEP.pattern(logins.key_by(lambda login: login.user), failures_pattern()).select(alert)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints the alerts in the order of their times."""
    env = environment(__doc__, argv)
    print(f"Looking for: {failures_pattern()}\n", flush=True)
    with alerts(in_event_time(env, LOGINS)).execute_and_collect("failed logins") as found:
        for _, text in sorted(found):
            print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
