"""Aggregators of iterations."""

from penstock.gelly.iterations.aggregators import (
    Aggregator,
    DoubleMaxAggregator,
    DoubleMinAggregator,
    DoubleSumAggregator,
    LongMaxAggregator,
    LongMinAggregator,
    LongSumAggregator,
)

__all__ = [
    "Aggregator",
    "DoubleMaxAggregator",
    "DoubleMinAggregator",
    "DoubleSumAggregator",
    "LongMaxAggregator",
    "LongMinAggregator",
    "LongSumAggregator",
]
