"""The two clocks a timer can follow."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Whether a timer fires by watermarks (event time) or by the machine's clock (processing time)."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
