"""The interface of clocks and timers for user functions."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Reads both clocks and sets timers for the current key.

    There is at most one timer per key, timestamp and domain; setting it again changes nothing. Deleting a timer that
    does not exist is harmless. Timers exist only on keyed streams.
    """

    __slots__ = ()

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in ms since the epoch. It is constant during a micro-batch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's current watermark in ms since the epoch."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Set a timer that fires when processing time reaches ``timestamp``."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Set a timer that fires when the watermark reaches ``timestamp``."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete the timer, if there is one."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete the timer, if there is one."""
