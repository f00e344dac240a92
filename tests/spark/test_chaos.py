"""Chaos on one machine: kill -9 of Python workers and of drivers, while the job saves and rescales itself.

See chaos.py; `make chaos` makes many runs. Executors are killed in test_cluster.py.
"""

import contextlib
import json
import os
import random
import signal

import pytest
from chaos import (
    PYTHON_PROCESSES,
    TOGETHER,
    Run,
    assert_everything_was_hit,
    group_name,
    groups,
    live_together,
    need_enough,
    undisturbed,
    written_down,
)
from chaos_job import TAKE_OVER, committed, state_in
from chaos_log import LOG
from chaos_phases import BATCH, RESCALE_HANDOVER, RESCALE_RESTORING, RESCALE_SAVING, SAVEPOINT, Hit
from processes import alive, descendants, kill, start, wait_until

from penstock.runtime.savepoint.manifest import METADATA, verify

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

LIFE_SECONDS = 700


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("group", groups("workers"), ids=group_name)
def test_chaos_workers_killed_nothing_is_lost_and_nothing_comes_twice(group, spark, expected, tmp_path):
    number = group[0] // TOGETHER["workers"]
    runs = [Run(spark, tmp_path / str(seed), seed, PYTHON_PROCESSES, number=number) for seed in group]
    with contextlib.ExitStack() as stack:
        for seed, run in zip(group, runs, strict=True):
            stack.enter_context(written_down("workers", seed, run.hits))
        assert live_together(runs) == [expected] * len(group)


DRIVER_AIMS = [
    (SAVEPOINT, RESCALE_RESTORING),
    (BATCH, RESCALE_SAVING),
    (SAVEPOINT, RESCALE_HANDOVER),
    (None, RESCALE_RESTORING),
]


class Drivers:
    """One driver after the other runs the same jobs, until one is not killed. That one gets company by another."""

    def __init__(self, directory, group):
        self.directory = directory
        self.group = group
        self.chance = random.Random(group[0])
        self.hits = {seed: [] for seed in group}

    def live(self):
        for aim in DRIVER_AIMS[self.group[0] // TOGETHER["drivers"] % len(DRIVER_AIMS)]:
            doomed = self.chance.choice(self.group)
            assert self._run(aim or "", doomed) == -signal.SIGKILL, self.complained
            left = self._read_last_words()
            wait_until(lambda left=left: not alive(left), 60, "the end of the JVM and its workers")
        if self.group[0] // TOGETHER["drivers"] % 2:
            self._live_with_an_intruder()
        else:
            self._be_replaced()

    def _live_with_an_intruder(self):
        """A second driver is refused by the first of the jobs that run."""
        with self._started("", "-") as driver:
            self._wait_for_lease(driver)
            with self._started("", "-", output="intruder") as intruder:
                assert self._end_of(intruder) == 1
            assert "is in use by job 'chaos" in self._file("intruder-stderr").read_text()
            assert self._end_of(driver) == 0, self.complained

    def _be_replaced(self):
        """A second driver takes the jobs from the first one, which may also have come to its end just before."""
        with self._started("", "-") as driver:
            self._wait_for_lease(driver)
            with self._started(TAKE_OVER, "-", output="successor") as successor:
                if self._end_of(driver) != 0:
                    assert "another driver has taken over the checkpoint directory" in self.complained
                assert self._end_of(successor) == 0, self._file("successor-stderr").read_text()

    def _wait_for_lease(self, driver):
        """Until the driver holds the lease of the first of its jobs."""
        lease = self.directory / str(self.group[0]) / "checkpoint" / "lease"
        owned = f'"pid": {driver.pid},'
        wait_until(
            lambda: driver.poll() is not None or any(owned in path.read_text() for path in lease.glob("epoch-*")),
            LIFE_SECONDS,
            "the lease",
        )

    def _run(self, aim, doomed):
        """One life; how it ended."""
        with self._started(aim, doomed) as process:
            return self._end_of(process)

    def _end_of(self, process):
        wait_until(lambda: process.poll() is not None, LIFE_SECONDS, "the end of a driver")
        return process.returncode

    @contextlib.contextmanager
    def _started(self, aim, doomed, output=""):
        arguments = (self.directory, self.chance.randrange(1 << 32), aim, doomed, *self.group)
        prefix = f"{output}-" if output else ""
        with self._file(f"{prefix}stdout").open("w") as stdout, self._file(f"{prefix}stderr").open("w") as stderr:
            process = start("chaos_job.py", *arguments, stdout=stdout, stderr=stderr)
        try:
            yield process
        finally:
            if process.poll() is None:
                kill(pid for pid, _ in alive(descendants(process.pid)))
                process.kill()
                process.wait()

    def _read_last_words(self):
        words = json.loads(self._file("last-words").read_text())
        self._file("last-words").unlink()
        for seed, hit in words["hits"].items():
            self.hits[int(seed)].append(Hit(**hit))
        return {tuple(process): "" for process in words["left"]}

    def _file(self, name):
        return self.directory / name

    @property
    def complained(self):
        return self._file("stderr").read_text()

    def found(self, seed):
        """What the sink of a job shows, and its state."""
        own = self.directory / str(seed)
        for metadata in (own / "savepoints").rglob(METADATA):  # what is complete is whole
            verify(str(metadata.parent))
        return committed(own / "output"), state_in((own / "finished").read_text())


@pytest.mark.parametrize("group", groups("drivers"), ids=group_name)
def test_chaos_drivers_killed_nothing_is_lost_and_nothing_comes_twice(group, expected, tmp_path):
    drivers = Drivers(tmp_path, group)
    with contextlib.ExitStack() as stack:
        for seed in group:
            stack.enter_context(written_down("drivers", seed, drivers.hits[seed]))
        drivers.live()
        for seed in group:
            assert drivers.found(seed) == expected, seed


@pytest.mark.parametrize("kind", ["workers", "drivers"])
def test_chaos_hit_savepoints_and_rescalings_and_caused_restarts(kind):
    assert_everything_was_hit(kind)


def test_chaos_hit_every_kind_of_python_process():
    need_enough("workers")
    assert {hit["target"] for hit in LOG.hits("workers")} == set(PYTHON_PROCESSES)
