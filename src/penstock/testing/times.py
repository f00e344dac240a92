"""Points in time for tests."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Instant, Time, to_millis

__all__ = ["Moment", "millis_of"]

Moment = int | str | datetime | timedelta | Time | Duration


def millis_of(moment: Moment) -> int:
    """Convert a point in time to ms: "1 min" or a ``timedelta`` after the epoch, a datetime or its text, or ms.

    >>> millis_of("1 min"), millis_of(datetime(1970, 1, 1, 0, 1)), millis_of("1970-01-01T00:01")
    (60000, 60000, 60000)
    """
    if isinstance(moment, str):
        with suppress(InvalidProgramError):
            return to_millis(moment)
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidProgramError(
                f"{moment!r} is not a point in time: write for example '90 s', '2026-05-01T12:00:00' or milliseconds"
            ) from None
    if isinstance(moment, datetime):
        return Instant.from_datetime(moment).to_epoch_milli()
    return to_millis(moment)
