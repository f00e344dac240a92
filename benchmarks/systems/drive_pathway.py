"""Runs the jobs on Pathway, with its own expressions, which run outside of Python: one process, one thread per unit of
parallelism.

Numbers come from a Python connector. Pathway computes tables that change, not records that follow each other: a
running average for every record, (b) and (c), cannot be said, because what is emitted is the average of each key after
each of its own batches. Tumbling and sliding windows are emitted once, when they close; sessions and joins are updated
as records come, and what remains is their result.

python -m benchmarks.systems.drive_pathway --job d
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pathway as pw
from pathway.internals.parse_graph import G as GRAPH

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.options import Options, Workload
from benchmarks.harness.report import digest, hand_over
from benchmarks.harness.slope import measure_slope

SCATTER = 2_654_435_761
OPTIONS = Options.parse()


class _Numbers(pw.io.python.ConnectorSubject):
    """The numbers of a range."""

    def __init__(self, numbers: range) -> None:
        super().__init__()
        self.numbers = numbers

    def run(self) -> None:
        """Push them, one by one: a connector has no other way."""
        for number in self.numbers:
            self.next(n=number)


class _Schema(pw.Schema):
    n: int


def numbers(values: range) -> Any:
    """A table of one column, n."""
    return pw.io.python.read(_Numbers(values), schema=_Schema, autocommit_duration_ms=100)


def map_filter(load: Workload) -> Any:
    """(a)."""
    return numbers(range(1, load.records + 1)).select(result=2 * pw.this.n + 1).filter(pw.this.result % 3 != 0)


def readings(load: Workload, events_per_ms: int = 10) -> Any:
    """key, time, value, in order of event time: there is one source, hence one part."""
    return numbers(range(load.records)).select(
        key=pw.this.n * SCATTER % load.keys,
        time=pw.this.n // events_per_ms,
        value=pw.cast(float, pw.this.n),
    )


def averages(table: Any, window: Any, behavior: Any = None) -> Any:
    """The average of each key and window."""
    windows = table.windowby(table.time, window=window, behavior=behavior, instance=table.key)
    return windows.reduce(result=pw.reducers.avg(pw.this.value))


def tumbling(load: Workload) -> Any:
    """(d)."""
    once = pw.temporal.exactly_once_behavior(shift=5)
    return averages(readings(load), pw.temporal.tumbling(duration=1_000), once)


def sliding(load: Workload) -> Any:
    """(e)."""
    once = pw.temporal.exactly_once_behavior(shift=5)
    return averages(readings(load), pw.temporal.sliding(hop=1_000, duration=60_000), once)


def sessions(load: Workload) -> Any:
    """(f)."""
    active = readings(load).select(
        pw.this.time, pw.this.value, key=pw.this.key - pw.this.key % 3 + pw.this.time // 1_000 % 3
    )
    return averages(active, pw.temporal.session(max_gap=501))  # a gap of 501 ms ends a session, one of 500 does not


def join(load: Workload) -> Any:
    """(g)."""
    half = replace(load, records=load.records // 2)
    left, right = readings(half, 2), readings(half, 2)
    return left.window_join(
        right, left.time, right.time, pw.temporal.tumbling(duration=1_000), left.key == right.key
    ).select(result=pw.make_tuple(left.key, left.value, right.value))


BUILDERS: dict[str, Callable[[Workload], Any]] = {
    "a": map_filter,
    "d": tumbling,
    "e": sliding,
    "f": sessions,
    "g": join,
}


def execute() -> None:
    """Run what was built to its end."""
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)


def prepare(records: int) -> Callable[[], object]:
    """Define the job; the call returned runs it to its end."""
    GRAPH.clear()
    pw.io.null.write(BUILDERS[OPTIONS.job](OPTIONS.workload(records)))
    return execute


def collect() -> dict[str, object]:
    """What remains when everything that was taken back is gone."""
    rows: dict[Any, Any] = {}

    def change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            rows[key] = row["result"]
        elif rows.get(key) == row["result"]:  # an update may tell the new value first
            del rows[key]

    pw.io.subscribe(BUILDERS[OPTIONS.job](OPTIONS.workload(OPTIONS.records)), change)
    execute()
    return digest(rows.values())


def run() -> dict[str, object]:
    """Do what the options ask for."""
    if OPTIONS.mode == "collect":
        return collect()
    return measure_slope(prepare, expected=OPTIONS.expected, seconds=OPTIONS.seconds).as_json()


if __name__ == "__main__":
    adopt_orphans()
    os.environ["PATHWAY_THREADS"] = str(OPTIONS.parallelism)
    hand_over(run())
