"""Run jobs and operators without a JVM, with a clock in your hand.

`MiniCluster` runs whole jobs in this process, batch by batch; the harnesses run single operators or functions.
"""

from penstock.testing.harness import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
    OneInputOperatorHarness,
    TwoInputOperatorHarness,
)
from penstock.testing.mini_cluster import ManualClock, MiniCluster, MiniClusterJob

__all__ = [
    "KeyedOneInputOperatorHarness",
    "KeyedTwoInputOperatorHarness",
    "ManualClock",
    "MiniCluster",
    "MiniClusterJob",
    "OneInputOperatorHarness",
    "TwoInputOperatorHarness",
]
