"""Chaos on one machine: kill -9 of Python workers and of drivers, while the job saves and rescales itself.

See chaos.py; `make chaos` makes many runs. Executors are killed in test_cluster.py.
"""

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from chaos import Run, any_python, say, seeds, undisturbed
from chaos_job import committed, state_in
from processes import alive, descendants, start, wait_until

from penstock.runtime.savepoint.manifest import METADATA, verify

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

START_SECONDS = 240


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("seed", seeds("workers"))
def test_chaos_workers_killed_nothing_is_lost_and_nothing_comes_twice(seed, spark, expected, tmp_path):
    say("workers", seed)
    assert Run(spark, tmp_path, seed, any_python).live() == expected


class Program:
    """One life of a driver."""

    def __init__(self, directory, seed):
        self.output = directory / "output"
        self.output.mkdir(exist_ok=True)
        self.said, self.complained = directory / "stdout", directory / "stderr"
        arguments = (directory / "checkpoint", self.output, seed)
        with self.said.open("w") as stdout, self.complained.open("w") as stderr:
            self.process = start("chaos_job.py", *arguments, stdout=stdout, stderr=stderr)

    @property
    def commits(self):
        return len(list(self.output.glob("*.json")))

    @property
    def ended(self):
        return self.process.poll() is not None

    def wait_for(self, commits):
        wait_until(lambda: self.ended or self.commits >= commits, START_SECONDS, "a commit")

    def kill(self):
        children = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not alive(children), 60, "the end of the JVM and its workers")

    def end(self):
        for pid, _ in alive(descendants(self.process.pid)):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def live_through(directory, seed):
    """Start the program until it finishes, killing it once or twice; where its last savepoint is."""
    chance = random.Random(seed)
    kills = chance.choice((1, 1, 1, 2))
    while True:
        program = Program(directory, chance.randrange(1 << 32))
        try:
            if kills:
                program.wait_for(program.commits + chance.randint(1, 5))
                killed = not program.ended
                if killed:
                    kills -= 1
                    program.kill()
                    continue
            assert program.process.wait(timeout=600) == 0, program.complained.read_text()
            finished, path = program.said.read_text().split()
            assert finished == "finished"
            return path
        finally:
            program.end()


def check_drivers(directory, seed, expected):
    directory.mkdir()
    path = live_through(directory, seed)
    assert (committed(directory / "output"), state_in(path)) == expected
    for metadata in (directory / "output-savepoints").rglob(METADATA):  # what is complete is whole
        verify(str(metadata.parent))


@pytest.mark.parametrize("pair", [seeds("drivers")[i : i + 2] for i in range(0, len(seeds("drivers")), 2)], ids=str)
def test_chaos_drivers_killed_nothing_is_lost_and_nothing_comes_twice(pair, expected, tmp_path):
    for seed in pair:
        say("drivers", seed)
    with ThreadPoolExecutor(2) as both:  # a JVM mostly waits while it starts
        runs = [both.submit(check_drivers, tmp_path / str(seed), seed, expected) for seed in pair]
        for run in runs:
            run.result()
