"""Clocks and timers as user functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Reads both clocks and sets timers for the current key.

    There is at most one timer per key, timestamp and domain; setting it again changes nothing. Deleting a timer
    that is not there is harmless. Timers exist only on keyed streams.
    """

    __slots__ = ()

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's clock in milliseconds since the epoch; constant during a micro-batch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's event-time clock in milliseconds since the epoch."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Fires when processing time reaches ``timestamp``."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Fires when the watermark reaches ``timestamp``."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Removes the timer, if there is one."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Removes the timer, if there is one."""
