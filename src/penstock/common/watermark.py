"""Watermarks, their generators and their outputs.

A watermark ``t`` says that no more records with a timestamp ``<= t`` are expected.
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
    """A point in event time up to which a stream is complete, clamped to 64 bits.

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
    """The output to which a :class:`WatermarkGenerator` emits. It drops watermarks that do not advance."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark and mark the output as active."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark the output as idle: downstream operators do not wait for its watermarks."""

    @abstractmethod
    def mark_active(self) -> None:
        """Mark the output as active again."""


class WatermarkGenerator(ABC):
    """Generates watermarks from the records of one source split: per record (punctuated) or at intervals (periodic).

    A generator with special records that carry the watermark:

    >>> class Punctuated(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "flush":
    ...             output.emit_watermark(Watermark(event_timestamp))
    ...
    ...     def on_periodic_emit(self, output):
    ...         pass

    A generator lives as long as its split is read. It is pickled between micro-batches.
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for each record after its timestamp is assigned."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called at the watermark interval and at the end of each micro-batch."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Watermarks that trail the largest timestamp by a fixed bound: ``max timestamp - bound - 1``.

    Before the first record there is no watermark, so it cannot underflow.
    """

    __slots__ = ("max_timestamp", "out_of_orderness_millis")

    def __init__(self, max_out_of_orderness: Duration | Time | timedelta | int) -> None:
        bound = to_millis(max_out_of_orderness)
        if bound < 0:
            raise InvalidProgramError(f"the out-of-orderness must not be negative, got {bound} ms")
        self.out_of_orderness_millis = bound
        self.max_timestamp: int | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if self.max_timestamp is None or event_timestamp > self.max_timestamp:
            self.max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.max_timestamp is not None:
            output.emit_watermark(Watermark(self.max_timestamp - self.out_of_orderness_millis - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Watermarks for timestamps that never decrease: ``max timestamp - 1``, since equal timestamps may follow."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Generates no watermarks, for jobs without event time."""

    __slots__ = ()

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass
