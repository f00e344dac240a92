"""Steady-state throughput of a bounded job: the slope between a run of N records and one of 3N.

Starting a job, its workers and its first compiled code costs the same in both runs, so the difference is 2N records
at full speed. N follows from a guess of the rate, such that the two runs shall lie `seconds` apart. One process does
all: a run of N records as the warm-up, whose time corrects a bad guess, then N and 3N. Where these do not lie far
enough apart after all, the longer one becomes the shorter one of the next pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from benchmarks.harness.cpu import machine_cpu_seconds, tree_cpu_seconds
from benchmarks.harness.heartbeat import Heartbeat

GROWTH = 3
_APART = 1.5  # how much longer the longer run takes at least: else the noise of the start would be measured
_ENOUGH = 0.6  # of the time asked for between the two
_SHORTEST, _LONGEST = 0.4, 3.0  # of that time: a warm-up outside of this shows a bad guess
_FASTER = 3.0  # a guess that was too low grows so much at least


@dataclass(slots=True, frozen=True)
class Run:
    """One execution of the job."""

    records: int
    seconds: float
    cpu_seconds: float
    machine_cpu_seconds: float


@dataclass(slots=True, frozen=True)
class Slope:
    """Two runs of one process and what follows from them."""

    short: Run
    long: Run

    def is_clear(self, seconds: float) -> bool:
        """Whether the two runs lie far enough apart, by time and by at least so many seconds.

        >>> Slope(Run(100, 5.0, 4.0, 4.0), Run(300, 5.1, 4.1, 4.1)).is_clear(1.0)
        False
        >>> Slope(Run(100, 5.0, 4.0, 4.0), Run(300, 11.0, 9.0, 9.0)).is_clear(1.0)
        True
        """
        more = self.long.seconds - self.short.seconds
        return more >= seconds and self.long.seconds >= _APART * self.short.seconds

    @property
    def records_per_second(self) -> float:
        """Records per second of wall-clock time between the two runs."""
        return (self.long.records - self.short.records) / (self.long.seconds - self.short.seconds)

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


def measure_slope(
    prepare: Callable[[int], Callable[[], object]], *, expected: float, seconds: float, unit: int = 1
) -> Slope:
    """Run the job a few times, in whole units of records, until two runs lie about `seconds` apart.

    `prepare` makes the job for a record count ready and returns the call that is timed.
    """

    def run(records: float) -> Run:
        whole = max(1, round(records / unit)) * unit
        return _timed(prepare(whole), whole)

    rate = expected
    while True:  # warm up
        first = run(rate * seconds / 2)
        seen = first.records / first.seconds  # slower than the rate, because of the start
        if first.seconds >= _SHORTEST * seconds:
            break
        rate = max(seen, _FASTER * rate)
    if first.seconds > _LONGEST * seconds:
        rate = seen
    short = run(rate * seconds / 2)
    records: float = GROWTH * short.records
    while True:
        slope = Slope(short, run(records))
        if slope.is_clear(_ENOUGH * seconds):
            return slope
        short = slope.long
        rate = slope.records_per_second if slope.is_clear(_ENOUGH) else GROWTH * rate
        records = max(short.records + rate * seconds, 2 * short.records)


def _timed(execute: Callable[[], object], records: int) -> Run:
    tree, machine, start = tree_cpu_seconds(), machine_cpu_seconds(), time.perf_counter()
    with Heartbeat():
        execute()
    seconds = time.perf_counter() - start
    run = Run(records, seconds, tree_cpu_seconds() - tree, machine_cpu_seconds() - machine)
    print(run, flush=True)  # how far it came, should the process run out of time
    return run
