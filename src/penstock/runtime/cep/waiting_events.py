"""Events that wait for the watermark.

Events that arrive in a batch are collected here, outside of keyed state. Usually the watermark comes in the same batch,
and they never enter the state. Only events that still wait at the end of a batch go into the state of their key.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

__all__ = ["Arrivals", "Waiting", "add_waiting", "merge_in_order", "take_due"]

Waiting = tuple[list[int], list[Any]]
"""Two parallel lists: sorted timestamps, and events."""


class Arrivals:
    """The events of one key that arrived in this batch."""

    __slots__ = ("earliest", "in_order", "timestamps", "values")

    def __init__(self, timestamp: int, value: Any) -> None:
        self.timestamps = [timestamp]
        self.values = [value]
        self.earliest = timestamp
        self.in_order = True

    def sort(self) -> None:
        """Sort the events by time. Events with the same timestamp stay in arrival order."""
        if not self.in_order:
            self.timestamps, self.values = _sorted(self.timestamps, self.values)
            self.in_order = True

    def take_due(self, watermark: int) -> Waiting:
        """Remove and return the events up to the watermark."""
        self.sort()
        if self.timestamps[-1] <= watermark:
            due = self.timestamps, self.values
            self.timestamps, self.values = [], []
            return due
        due = take_due((self.timestamps, self.values), watermark)
        self.earliest = self.timestamps[0]
        return due


def take_due(waiting: Waiting, watermark: int) -> Waiting:
    """Remove and return the events up to the watermark."""
    timestamps, values = waiting
    count = bisect_right(timestamps, watermark)
    due = timestamps[:count], values[:count]
    if count:
        del timestamps[:count], values[:count]
    return due


def merge_in_order(first: Waiting, second: Waiting) -> Waiting:
    """Merge two sorted lists. Of events with the same timestamp, those of the first list come first."""
    if not first[0]:
        return second
    if not second[0]:
        return first
    timestamps, values = [*first[0], *second[0]], [*first[1], *second[1]]
    return (timestamps, values) if first[0][-1] <= second[0][0] else _sorted(timestamps, values)


def add_waiting(waiting: Waiting, timestamps: list[int], values: list[Any]) -> None:
    """Add sorted events. Nearly always, they are later than all waiting events."""
    if not waiting[0] or waiting[0][-1] <= timestamps[0]:
        waiting[0].extend(timestamps)
        waiting[1].extend(values)
        return
    # Only events later than the first new event must move.
    start = bisect_right(waiting[0], timestamps[0])
    tail = merge_in_order((waiting[0][start:], waiting[1][start:]), (timestamps, values))
    waiting[0][start:], waiting[1][start:] = tail


def _sorted(timestamps: list[int], values: list[Any]) -> Waiting:
    order = sorted(range(len(timestamps)), key=timestamps.__getitem__)
    return [timestamps[at] for at in order], [values[at] for at in order]
