"""What one measured process is asked to do."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Workload:
    """The size of one execution of a job."""

    records: int
    keys: int
    parallelism: int
    events_per_second: int = 10_000  # of event time, in Nexmark


@dataclass(slots=True, frozen=True)
class Options:
    """The command line of a driver: `python -m benchmarks.systems.<driver> ...`."""

    package: str
    job: str
    variant: str
    keys: int
    parallelism: int
    records: int
    expected: float
    seconds: float
    mode: str
    port: int
    directory: str

    def workload(self, records: int) -> Workload:
        """The workload of one execution with so many records."""
        if self.mode == "collect":  # few records, which shall span many windows all the same
            return Workload(records, self.keys, self.parallelism, events_per_second=max(1, records // 100))
        return Workload(records, self.keys, self.parallelism)

    def arguments(self) -> list[str]:
        """The command line that `parse` turns into these options again."""
        words: list[str] = []
        for name in self.__slots__:
            words += [f"--{name}", str(getattr(self, name))]
        return words

    @staticmethod
    def parse() -> Options:
        """Read the options of this process."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--package", default="penstock", help="penstock or pyflink")
        parser.add_argument("--job", required=True, help="module under benchmarks/jobs")
        parser.add_argument("--variant", default="default", help="set of configuration values")
        parser.add_argument("--keys", type=int, default=1_000)
        parser.add_argument("--parallelism", type=int, default=2)
        parser.add_argument("--records", type=int, default=20_000, help="how many (collect)")
        parser.add_argument("--expected", type=float, default=10_000, help="records per second, a guess (slope)")
        parser.add_argument("--seconds", type=float, default=8.0, help="time between the two runs measured (slope)")
        parser.add_argument("--mode", choices=("slope", "collect", "latency"), default="slope")
        parser.add_argument("--port", type=int, default=0, help="the feeder's port (latency)")
        parser.add_argument("--directory", default=".", help="where a latency run writes its samples")
        return Options(**vars(parser.parse_args()))
