"""Drivers of one job as processes: started twice, stopped, woken up, and what has to come out of it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fenced_job import KEYS
from processes import SOURCES, alive, descendants, kill, wait_until

RECORDS = 800
START_SECONDS = 240  # a busy machine starts a JVM slowly
END_SECONDS = 240


@dataclass
class Outside:
    """A system to write to."""

    kind: str
    target: str
    lines: Callable[[], list[str]]


def expected():
    counts = {key: sum(n % KEYS == key for n in range(1, RECORDS + 1)) for key in range(KEYS)}
    return sorted(f"{key} {n}" for key, total in counts.items() for n in range(1, total + 1))


def lines_in(directory: Path, pattern: str):
    """The lines of files that a reader sees; they may be renamed while we look."""
    found = []
    for path in directory.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            found += path.read_text().splitlines()
    return found


class Job:
    """One job, and the drivers that were started for it."""

    def __init__(self, directory: Path, outside: Outside):
        self.directory, self.outside = directory, outside
        self.drivers: list[Driver] = []

    def start(self, *options):
        driver = Driver(self, len(self.drivers), options)
        self.drivers.append(driver)
        return driver

    @property
    def checkpoint(self):
        return self.directory / "checkpoint"

    @property
    def epoch(self):
        """That of the driver that holds the lease."""
        names = [path.name for path in (self.checkpoint / "lease").glob("epoch-*")]
        return max((int(name.rpartition("-")[2]) for name in names), default=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for driver in self.drivers:
            driver.kill()


class Driver:
    """``penstock run``."""

    def __init__(self, job, number, options):
        self.job = job
        self.output = job.directory / f"driver-{number}"
        program = Path(__file__).parent / "fenced_job.py"
        arguments = (program, job.checkpoint, job.outside.kind, job.outside.target, RECORDS)
        command = [sys.executable, "-m", "penstock.cli", "run", *options, *map(str, arguments)]
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                command,
                env={
                    **os.environ,
                    "PYTHONPATH": str(SOURCES),
                    "PYTHONUNBUFFERED": "1",
                    "PENSTOCK_JOBS": str(job.directory / "jobs"),
                },
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def said(self):
        return self.output.read_text()

    @property
    def ended(self):
        return self.process.poll() is not None

    def wait_for_lines(self, count):
        self.wait(lambda: len(self.job.outside.lines()) >= count, f"{count} lines")

    def wait(self, condition, what):
        wait_until(lambda: self.ended or condition(), START_SECONDS, what)
        assert not self.ended, self.said

    def end(self):
        """Wait for its end; its exit code."""
        wait_until(lambda: self.ended, END_SECONDS, f"the end of a driver, which said: {self.said}")
        return self.process.returncode

    def signal(self, number, *, everything):
        """To the driver alone, or also to its JVM and the workers, as when a machine is suspended."""
        below = [pid for pid, _ in descendants(self.process.pid)] if everything else []
        kill([self.process.pid, *below], number)

    def kill(self):
        below = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        kill(pid for pid, _ in alive(below))
