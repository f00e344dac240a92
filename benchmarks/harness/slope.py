"""Steady-state throughput of a bounded job: the slope between a run of N records and one of 3N.

Starting a job, its workers and its first compiled code costs the same in both runs, so the difference is 2N records
at full speed. Before that the job has run with growing counts, in the same process, until N was found: that is the
warm-up, and it is the same for every system.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from benchmarks.harness.cpu import machine_cpu_seconds, tree_cpu_seconds

_FIRST = 1_000
_GROWTH = 10


@dataclass(slots=True)
class Run:
    """One execution of the job."""

    records: int
    seconds: float
    cpu_seconds: float
    machine_cpu_seconds: float


@dataclass(slots=True)
class Slope:
    """The two measured runs of one process and what follows from them."""

    short: Run
    long: Run

    @property
    def records_per_second(self) -> float:
        """Records per second of wall-clock time between the two runs."""
        return (self.long.records - self.short.records) / max(self.long.seconds - self.short.seconds, 1e-9)

    @property
    def cpu_seconds_per_million(self) -> float:
        """CPU seconds of the process tree per million records between the two runs."""
        more = self.long.records - self.short.records
        return (self.long.cpu_seconds - self.short.cpu_seconds) / more * 1e6

    @property
    def neighbour_cores(self) -> float:
        """Cores used by everything else on the machine during both runs: 0 on an idle one."""
        runs = (self.short, self.long)
        foreign = sum(run.machine_cpu_seconds - run.cpu_seconds for run in runs)
        return max(0.0, foreign / sum(run.seconds for run in runs))

    def as_json(self) -> dict[str, object]:
        """Everything, for the results file."""
        return {
            "records_per_second": self.records_per_second,
            "cpu_seconds_per_million": self.cpu_seconds_per_million,
            "neighbour_cores": self.neighbour_cores,
            "short": asdict(self.short),
            "long": asdict(self.long),
        }


def measure_slope(execute: Callable[[int], object], *, records: int | None, seconds: float) -> Slope:
    """Warm up, then run N and 3N records. N is `records`, or the first count whose run lasts `seconds` longer than an
    empty one.
    """
    execute(_FIRST)
    if records is None:
        records = _find_count(execute, seconds)
    else:
        execute(records)
    return Slope(short=_timed(execute, records), long=_timed(execute, 3 * records))


def _find_count(execute: Callable[[int], object], seconds: float) -> int:
    empty = _timed(execute, _FIRST).seconds
    count = _FIRST * _GROWTH
    while True:
        extra = _timed(execute, count).seconds - empty
        if extra >= seconds:
            return count
        # Grow by what is missing, but never by more than the early, still cold, runs can be trusted for.
        count = int(count * min(_GROWTH, max(1.5, 1.2 * seconds / max(extra, 1e-3))))


def _timed(execute: Callable[[int], object], records: int) -> Run:
    tree, machine, start = tree_cpu_seconds(), machine_cpu_seconds(), time.perf_counter()
    execute(records)
    seconds = time.perf_counter() - start
    return Run(records, seconds, tree_cpu_seconds() - tree, machine_cpu_seconds() - machine)
