"""The watermark valve of a task: one clock per input channel, the task's event time is their minimum (spec: 3.6).

Idle channels are left out. A channel that comes back is left out until it has caught up with the task's clock. When
all channels are idle, the clock jumps to the largest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK


@dataclass(slots=True)
class ChannelClock:
    """What is known of one input channel."""

    watermark: int = MIN_WATERMARK
    idle: bool = False
    aligned: bool = True


class WatermarkValve:
    """Combines the clocks of all input channels.

    >>> valve = WatermarkValve()
    >>> valve.expect("a")
    >>> valve.expect("b")
    >>> valve.input_watermark("a", 10) is None  # b has not spoken yet
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
        """A channel whose clock has to be waited for: also a new split, whose first records must not be late."""
        if channel not in self.channels:
            self.channels[channel] = ChannelClock()
            self.idle = False

    def forget(self, channel: Any) -> int | None:
        """A channel that is gone for good; returns the task's new event time if the others have been waiting for it.

        >>> valve = WatermarkValve()
        >>> valve.input_watermark("slow", 1), valve.input_watermark("fast", 5)
        (1, None)
        >>> valve.forget("slow")
        5
        """
        return None if self.channels.pop(channel, None) is None else self._advance()

    def input_watermark(self, channel: Any, watermark: int) -> int | None:
        """A watermark arrived; returns the task's new event time if it advanced."""
        clock = self._clock(channel)
        if clock.idle or watermark <= clock.watermark:
            return None
        clock.watermark = watermark
        if not clock.aligned and watermark >= self.last:
            clock.aligned = True
        return self._advance()

    def input_status(self, channel: Any, *, idle: bool) -> int | None:
        """A channel became idle or active; returns the task's new event time if it advanced."""
        clock = self._clock(channel)
        if clock.idle == idle:
            return None
        clock.idle = idle
        if not idle:
            clock.aligned = clock.watermark >= self.last
            self.idle = False
            return None
        return self._advance()

    def _clock(self, channel: Any) -> ChannelClock:
        clock = self.channels.get(channel)
        if clock is None:
            clock = self.channels[channel] = ChannelClock(aligned=self.last == MIN_WATERMARK)
        return clock

    def _advance(self) -> int | None:
        """The minimum over the channels that count, if it moved."""
        active = [clock for clock in self.channels.values() if not clock.idle]
        if active:
            self.idle = False
            aligned = [clock.watermark for clock in active if clock.aligned]
            if not aligned:
                return None
            new = min(aligned)
        else:
            self.idle = True
            new = max((clock.watermark for clock in self.channels.values()), default=self.last)
        if new <= self.last:
            return None
        self.last = new
        for clock in active:
            clock.aligned = clock.aligned or clock.watermark >= new
        return new

    def snapshot(self) -> tuple[Any, ...]:
        """A small picklable copy."""
        clocks = {name: (clock.watermark, clock.idle, clock.aligned) for name, clock in self.channels.items()}
        return (self.last, self.idle, clocks)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Continue from a snapshot."""
        self.last, self.idle, clocks = snapshot
        self.channels = {name: ChannelClock(*clock) for name, clock in clocks.items()}
