"""Pass the records that a user function returned or yielded to a collector, as snapshots.

`records/isolation.py` explains the snapshots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core.cpython import ALONE, UNSHARED, getrefcount
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.collector import Collector
from penstock.runtime.records.isolation import IMMUTABLE, copy_of, protect


def collect_results(collector: Collector, results: Any, timestamp: int | None) -> None:
    """Collect a snapshot of every record of `results`. None means no records; `(tag, value)` goes to a side output.

    A record with other references is copied, because the function may change it before the batch is emitted.
    """
    if results is None:
        return
    collect = collector.collect
    holders = ALONE
    if type(results) is list and getrefcount(results) <= UNSHARED:  # a list that only this call holds
        holders += 1  # the list also holds its items
    for item in results:
        kind = type(item)
        if kind in IMMUTABLE:
            collect(item, timestamp)
        elif kind is tuple:
            if len(item) == 2 and type(item[0]) is OutputTag:
                collector.side(item[0], item[1], timestamp)
            else:
                collect(protect(item), timestamp)
        else:
            collect(copy_of(item) if getrefcount(item) > holders else item, timestamp)


def collect_result(collector: Collector, function: Callable[[Any], Any], argument: Any, timestamp: int | None) -> None:
    """Collect a snapshot of the record that a function returns. None is a record, too."""
    result = function(argument)
    if timestamp is None or collector.timestamps is None or (type(result) is tuple and len(result) == 2):
        collector.collect(protect(result), timestamp)
    else:
        collector.timestamps.append(timestamp)
        collector.values.append(result if type(result) in IMMUTABLE else protect(result))
