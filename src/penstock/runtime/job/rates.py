"""Rates over the last minute, from amounts that arrive batch by batch.

The records of a batch are spread over its duration. Otherwise a batch of ten seconds would look like nine seconds of
silence and one second with ten times the load.
"""

from __future__ import annotations

from array import array

_SECONDS = 60
_BUCKETS = _SECONDS + 4

__all__ = ["Rate"]


class Rate:
    """An amount per second over the last minute.

    >>> rate = Rate()
    >>> rate.add(600, start=100.0, end=110.0)  # sixty a second for ten seconds
    >>> rate.per_second(110.0), rate.per_second(130.0), rate.per_second(200.0)
    (60.0, 20.0, 0.0)
    """

    __slots__ = ("_amounts", "_latest", "_since")

    def __init__(self) -> None:
        self._amounts = array("d", bytes(8 * _BUCKETS))
        self._latest = -1  # the latest second with a bucket
        self._since = -1.0  # when the first amount began

    def add(self, amount: float, start: float, end: float) -> None:
        """Add an amount that was produced between two times in seconds."""
        if self._since < 0:
            self._since = start
        if not amount and self._latest >= 0:
            return  # there are hundreds of steps per second, and most rates of most tasks are zero
        start = max(start, end - _SECONDS)
        self._advance(int(end))
        if end <= start or int(start) == int(end):
            self._amounts[int(end) % _BUCKETS] += amount
            return
        per_second = amount / (end - start)
        for second in range(int(start), int(end) + 1):
            overlap = min(end, second + 1) - max(start, second)
            if overlap > 0:
                self._amounts[second % _BUCKETS] += per_second * overlap

    def per_second(self, now: float) -> float:
        """Return the mean over the last minute, or since the first amount if that is more recent."""
        if self._latest < 0:
            return 0.0
        self._advance(int(now))
        span = min(_SECONDS, max(1.0, now - self._since))
        first = int(now - span)
        return sum(self._amounts[second % _BUCKETS] for second in range(first, int(now) + 1)) / span

    def _advance(self, second: int) -> None:
        """Clear the buckets of the seconds that have passed."""
        if self._latest < 0:
            self._latest = second
        for passed in range(max(self._latest + 1, second - _BUCKETS + 1), second + 1):
            self._amounts[passed % _BUCKETS] = 0.0
        self._latest = max(self._latest, second)
