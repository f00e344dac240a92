"""Short forms of windows: ``tumbling(minutes=1)``, ``sliding(minutes=10, every="1 min")``, ``sessions(gap="5 min")``.

A length is keywords, a ``timedelta``, a ``Duration``, a ``Time``, a text or a number of milliseconds. Windows use event
time unless ``processing_time`` is set.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, to_millis
from penstock.core.window.assigner import WindowAssigner
from penstock.core.window.session import EventTimeSessionWindows, ProcessingTimeSessionWindows
from penstock.core.window.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.core.window.windows import TimeWindow

__all__ = ["sessions", "sliding", "tumbling"]

Length = Time | Duration | timedelta | int | str


def tumbling(
    length: Length | None = None,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
    offset: Length = 0,
    processing_time: bool = False,
) -> WindowAssigner[Any, TimeWindow]:
    """Windows of a fixed length, without overlap or gaps. They are aligned to the epoch, plus the offset.

    >>> tumbling(minutes=1), tumbling("1 min", offset="15 s", processing_time=True)
    (TumblingEventTimeWindows(60000), TumblingProcessingTimeWindows(60000))
    """
    size = _length("tumbling(minutes=1)", length, days, hours, minutes, seconds, milliseconds)
    kind = TumblingProcessingTimeWindows if processing_time else TumblingEventTimeWindows
    return kind(size, to_millis(offset))


def sliding(
    length: Length | None = None,
    *,
    every: Length,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
    offset: Length = 0,
    processing_time: bool = False,
) -> WindowAssigner[Any, TimeWindow]:
    """Windows of a fixed length. A new one begins ``every`` so often.

    >>> sliding(minutes=10, every="1 min")
    SlidingEventTimeWindows(600000, 60000)
    """
    size = _length("sliding(minutes=10, every='1 min')", length, days, hours, minutes, seconds, milliseconds)
    kind = SlidingProcessingTimeWindows if processing_time else SlidingEventTimeWindows
    return kind(size, to_millis(every), to_millis(offset))


def sessions(
    gap: Length | None = None,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
    processing_time: bool = False,
) -> WindowAssigner[Any, TimeWindow]:
    """Windows that end when no record of the key arrives for the length of the gap.

    >>> sessions(gap="5 min"), sessions(minutes=5)
    (EventTimeSessionWindows(300000), EventTimeSessionWindows(300000))
    """
    size = _length("sessions(gap='5 min')", gap, days, hours, minutes, seconds, milliseconds)
    kind = ProcessingTimeSessionWindows if processing_time else EventTimeSessionWindows
    return kind(size)


def _length(example: str, length: Length | None, *parts: float) -> int:
    given = timedelta(days=parts[0], hours=parts[1], minutes=parts[2], seconds=parts[3], milliseconds=parts[4])
    if (length is None) is not bool(given):
        raise InvalidProgramError(f"windows need one length, as keywords or as an argument: {example}")
    return to_millis(given if length is None else length)
