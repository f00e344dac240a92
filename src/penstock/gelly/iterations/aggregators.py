"""Aggregators: values to which all vertices contribute, and which the next superstep can read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

__all__ = [
    "Aggregator",
    "DoubleMaxAggregator",
    "DoubleMinAggregator",
    "DoubleSumAggregator",
    "LongMaxAggregator",
    "LongMinAggregator",
    "LongSumAggregator",
]


class Aggregator(ABC):
    """Combines the values of a superstep. Every task has its own instance, and their results are aggregated again.

    >>> total = LongSumAggregator()
    >>> total.aggregate(2)
    >>> total.aggregate(3)
    >>> total.get_aggregate()
    5
    """

    @abstractmethod
    def aggregate(self, value: Any) -> None:
        """Add a value."""

    @abstractmethod
    def get_aggregate(self) -> Any:
        """Return the aggregate of all values since the last reset."""

    @abstractmethod
    def reset(self) -> None:
        """Start again."""


class _Folding(Aggregator):
    """Keeps one value."""

    start: Any = 0

    def __init__(self) -> None:
        self._value = self.start

    def get_aggregate(self) -> Any:
        return self._value

    def reset(self) -> None:
        self._value = self.start


class LongSumAggregator(_Folding):
    """The sum of integers."""

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value += int(value)


class DoubleSumAggregator(_Folding):
    """The sum of floats."""

    start = 0.0

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value += float(value)


class LongMaxAggregator(_Folding):
    """The maximum of integers."""

    start = -(1 << 63)

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value = max(self._value, int(value))


class LongMinAggregator(_Folding):
    """The minimum of integers."""

    start = (1 << 63) - 1

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value = min(self._value, int(value))


class DoubleMaxAggregator(_Folding):
    """The maximum of floats."""

    start = -math.inf

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value = max(self._value, float(value))


class DoubleMinAggregator(_Folding):
    """The minimum of floats."""

    start = math.inf

    def aggregate(self, value: Any) -> None:
        """Add a value."""
        self._value = min(self._value, float(value))
