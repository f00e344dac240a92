"""Watermarks, who makes them, and who takes them.

A watermark ``t`` says: no record with a timestamp ``<= t`` is expected any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from numbers import Integral
from typing import Any, ClassVar, Final

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, to_millis

__all__ = [
    "MAX_WATERMARK",
    "MIN_WATERMARK",
    "AscendingTimestampsWatermarks",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarksGenerator",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
]

MIN_WATERMARK: Final = -(2**63)
MAX_WATERMARK: Final = 2**63 - 1


class Watermark:
    """A point of event time up to which a stream is complete, clamped to 64 bits.

    >>> Watermark(1_000)
    Watermark(1000)
    >>> Watermark(2**70) == Watermark.MAX
    True
    """

    __slots__ = ("timestamp",)

    MIN: ClassVar[Watermark]
    MAX: ClassVar[Watermark]
    MAX_WATERMARK: ClassVar[Watermark]

    def __init__(self, timestamp: int) -> None:
        if type(timestamp) is not int:
            timestamp = _as_int(timestamp)
        self.timestamp = min(max(timestamp, MIN_WATERMARK), MAX_WATERMARK)

    def get_timestamp(self) -> int:
        return self.timestamp

    def __eq__(self, other: object) -> bool:
        return self.timestamp == other.timestamp if isinstance(other, Watermark) else NotImplemented

    def __lt__(self, other: Watermark) -> bool:
        return self.timestamp < other.timestamp

    def __hash__(self) -> int:
        return hash(self.timestamp)

    def __repr__(self) -> str:
        return f"Watermark({self.timestamp})"


def _as_int(timestamp: Any) -> int:
    whole = isinstance(timestamp, (Integral, float)) and not isinstance(timestamp, bool) and timestamp == int(timestamp)
    if not whole:
        raise TypeError(f"a Watermark takes milliseconds since the epoch as an int, got {timestamp!r}")
    return int(timestamp)


Watermark.MIN = Watermark(MIN_WATERMARK)
Watermark.MAX = Watermark.MAX_WATERMARK = Watermark(MAX_WATERMARK)


class WatermarkOutput(ABC):
    """Where a :class:`WatermarkGenerator` sends its watermarks. The receiver drops those that do not advance."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Sends a watermark, and marks the output active."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Says that downstream operators should not wait for watermarks from here."""

    @abstractmethod
    def mark_active(self) -> None:
        """Takes :meth:`mark_idle` back."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the records of one source split: per record (punctuated) or now and then (periodic).

    A generator that lets special records carry the watermark:

    >>> class Punctuated(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "flush":
    ...             output.emit_watermark(Watermark(event_timestamp))
    ...
    ...     def on_periodic_emit(self, output):
    ...         pass

    Generators live as long as their split is read and are pickled between micro-batches.
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record, after its timestamp was assigned."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called at the watermark interval, and at the end of every micro-batch."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Watermarks that trail the largest timestamp by a fixed bound: ``max timestamp - bound - 1``.

    Before the first record there is no watermark at all, so nothing can underflow.
    """

    __slots__ = ("max_timestamp", "out_of_orderness_millis")

    def __init__(self, max_out_of_orderness: Duration | Time | timedelta | int) -> None:
        bound = to_millis(max_out_of_orderness)
        if bound < 0:
            raise InvalidProgramError(f"the bound of out-of-orderness must not be negative, got {bound} ms")
        self.out_of_orderness_millis = bound
        self.max_timestamp: int | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if self.max_timestamp is None or event_timestamp > self.max_timestamp:
            self.max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.max_timestamp is not None:
            output.emit_watermark(Watermark(self.max_timestamp - self.out_of_orderness_millis - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Watermarks for timestamps that never go back: ``max timestamp - 1``, since equal timestamps may follow."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Never makes a watermark, for jobs that do not use event time."""

    __slots__ = ()

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass
