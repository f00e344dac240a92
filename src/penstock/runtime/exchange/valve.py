"""The watermark valve of a task: one clock per input channel. The task's event time is their minimum (rule 3.6).

Idle channels are ignored. A channel that becomes active again is ignored until it has caught up with the task's clock:
it is not aligned. If the last channel for which the clock was waiting becomes idle, the clock jumps to the maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK


@dataclass(slots=True)
class ChannelClock:
    """The state of one input channel."""

    watermark: int = MIN_WATERMARK
    idle: bool = False
    aligned: bool = True


class WatermarkValve:
    """Combines the clocks of all input channels.

    >>> valve = WatermarkValve()
    >>> valve.expect("a")
    >>> valve.expect("b")
    >>> valve.input_watermark("a", 10) is None  # no watermark of b yet
    True
    >>> valve.input_watermark("b", 7)
    7
    """

    __slots__ = ("channels", "idle", "last")

    def __init__(self) -> None:
        self.channels: dict[Any, ChannelClock] = {}
        self.last = MIN_WATERMARK
        self.idle = False

    def expect(self, channel: Any) -> None:
        """Wait for the clock of a channel. This includes new channels, whose first records must not be late."""
        if channel not in self.channels:
            self.channels[channel] = ChannelClock()
            self.idle = False

    def forget(self, channel: Any) -> int | None:
        """Remove a channel permanently. Return the task's new event time if the others were waiting for it.

        >>> valve = WatermarkValve()
        >>> valve.input_watermark("slow", 1), valve.input_watermark("fast", 5)
        (1, None)
        >>> valve.forget("slow")
        5
        """
        clock = self.channels.pop(channel, None)
        return None if clock is None or clock.idle else self._leave(clock)

    def input_watermark(self, channel: Any, watermark: int) -> int | None:
        """Handle a watermark. Return the task's new event time if it advanced."""
        clock = self._clock(channel)
        if clock.idle or watermark <= clock.watermark:
            return None
        clock.watermark = watermark
        if not clock.aligned and watermark >= self.last:
            clock.aligned = True
        return self._advance_to_minimum()

    def input_status(self, channel: Any, *, idle: bool) -> int | None:
        """Handle a channel that becomes idle or active. Return the task's new event time if it advanced."""
        clock = self._clock(channel)
        if clock.idle == idle:
            return None
        clock.idle = idle
        if idle:
            return self._leave(clock)
        clock.aligned = clock.watermark >= self.last
        self.idle = False
        return None

    def _clock(self, channel: Any) -> ChannelClock:
        clock = self.channels.get(channel)
        if clock is None:
            clock = self.channels[channel] = ChannelClock(aligned=self.last == MIN_WATERMARK)
        return clock

    def _leave(self, clock: ChannelClock) -> int | None:
        """Ignore a channel that was active. The clock advances only if the others were waiting for it."""
        held_back = clock.aligned and clock.watermark <= self.last
        clock.aligned = False
        self.idle = all(other.idle for other in self.channels.values())
        if not held_back:
            return None
        if self.idle:
            return self._advance(max((other.watermark for other in self.channels.values()), default=self.last))
        return self._advance_to_minimum()

    def _advance_to_minimum(self) -> int | None:
        aligned = [clock.watermark for clock in self.channels.values() if clock.aligned]
        return self._advance(min(aligned)) if aligned else None

    def _advance(self, watermark: int) -> int | None:
        if watermark <= self.last:
            return None
        self.last = watermark
        return watermark

    def snapshot(self) -> tuple[Any, ...]:
        """Return a small picklable copy."""
        clocks = {name: (clock.watermark, clock.idle, clock.aligned) for name, clock in self.channels.items()}
        return (self.last, self.idle, clocks)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Continue from a snapshot."""
        self.last, self.idle, clocks = snapshot
        self.channels = {
            name: ChannelClock(watermark, idle, aligned and not idle)
            for name, (watermark, idle, aligned) in clocks.items()
        }
