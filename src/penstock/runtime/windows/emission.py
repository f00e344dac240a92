"""Pass the results of windows to the collector."""

from __future__ import annotations

from itertools import chain
from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.records.isolation import IMMUTABLE


def collect_list(collector: Collector, results: list[Any], timestamp: int) -> None:
    """Collect all results of a window: together if all of them are immutable, otherwise as one snapshot each.

    In a batch job, a window may end after the largest timestamp. Its results may not.
    """
    timestamp = min(timestamp, MAX_WATERMARK)
    kinds = set(map(type, results))
    if kinds <= IMMUTABLE or (kinds == {tuple} and IMMUTABLE.issuperset(map(type, chain.from_iterable(results)))):
        append_results(collector, results, timestamp)
    else:
        collect_results(collector, results, timestamp)


def append_results(collector: Collector, results: list[Any], timestamp: int) -> None:
    """Collect results that have no other references and no side outputs."""
    timestamp = min(timestamp, MAX_WATERMARK)
    if collector.timestamps is None:
        collector.timestamps = [None] * len(collector.values)
    collector.values += results
    collector.timestamps += [timestamp] * len(results)
