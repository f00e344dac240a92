"""Runs of the chaos job in which something is killed with kill -9, and what has to come out of them.

Every run has a seed, which decides what is done and killed, and in which phase; a failing test prints it.
``PENSTOCK_CHAOS_RUNS`` says how many runs there are in all kinds of tests together, ``PENSTOCK_CHAOS_SEED`` where to
begin: with both, and ``-k``, one run is repeated. ``PENSTOCK_CHAOS_LOG`` names a file in which runs are written down.
"""

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from chaos_job import build, committed, environment, everything_seen, state_in, stop
from chaos_log import LOG
from chaos_phases import AIMS, RESCALES, SAVEPOINT, Blow, Hit, strike
from processes import descendants, wait_until

from penstock.testing import MiniCluster

RUNS = int(os.environ.get("PENSTOCK_CHAOS_RUNS", "50"))
SEED = int(os.environ.get("PENSTOCK_CHAOS_SEED", "1"))
# What a run costs differs: most of the runs kill the workers of one long-lived Spark.
SHARES = {"workers": 0.5, "executors": 0.36, "drivers": 0.14}
MOST_COMMITS = 6  # of a job that has eight batches
# So many jobs are run at a time: what is killed hits all of them. Each kill is aimed at a phase of one of them, so
# where there are few runs there are few jobs at a time.
TOGETHER = {"workers": 1, "executors": 3, "drivers": 5} if RUNS < 200 else {"workers": 4, "executors": 3, "drivers": 10}
ENOUGH = {"workers": 24, "executors": 16, "drivers": 7}
"""With so many runs everything is aimed at: each phase with each target."""


def asked_for(kind):
    """How many runs of one kind there are."""
    return max(1, round(RUNS * SHARES[kind]))


def seeds(kind):
    """The seeds of the runs of one kind, except those that have passed before."""
    done = LOG.passed(kind)
    return [seed for seed in range(SEED, SEED + asked_for(kind)) if seed not in done]


def groups(kind):
    """The seeds of runs that are made together."""
    wanted, size = seeds(kind), TOGETHER[kind]
    return [wanted[start : start + size] for start in range(0, len(wanted), size)]


def group_name(group):
    """For the names of tests; there is none if all runs were made before."""
    return f"{group[0]}-{group[-1]}" if isinstance(group, list) else "none"


def say(kind, seed):
    """How to repeat a run; pytest shows it if the test fails."""
    print(f"repeat with: PENSTOCK_CHAOS_SEED={seed} PENSTOCK_CHAOS_RUNS=1 pytest tests/spark -k 'chaos and {kind}'")  # noqa: T201


@contextlib.contextmanager
def written_down(kind, seed, hits) -> Iterator[None]:
    """The run in this block is logged, whatever becomes of it."""
    say(kind, seed)
    began, passed = time.monotonic(), False
    try:
        yield
        passed = True
    except KeyboardInterrupt:
        began = None  # it neither passed nor failed
        raise
    finally:
        if began is not None:
            LOG.add(kind, seed, hits, passed=passed, seconds=time.monotonic() - began)


def need_enough(kind):
    """Skips a test that looks at what all runs together have hit, if only some were asked for or none were made."""
    if asked_for(kind) < ENOUGH[kind]:
        pytest.skip(f"only {asked_for(kind)} runs were asked for")
    made = len({run["seed"] for run in LOG.runs if run["kind"] == kind})
    if not made:
        pytest.skip("no runs were made in this process")
    assert made >= ENOUGH[kind], f"only {made} runs were made in this process: all of a kind belong into one"


def assert_everything_was_hit(kind):
    """Kills that hit nothing prove nothing."""
    need_enough(kind)
    hits = LOG.hits(kind)
    phases = Counter(hit["sure"] for hit in hits)
    assert phases[SAVEPOINT], f"no kill hit a savepoint: {phases}"
    assert sum(phases[phase] for phase in RESCALES), f"no kill hit a rescaling: {phases}"
    assert any(hit["tasks"] for hit in hits), f"no kill came while tasks ran: {phases}"
    if kind != "executors":  # a cluster gives tasks to another executor, and seldom has the job to be restarted
        assert sum(hit["restarts"] for hit in hits), f"no kill caused a restart: {phases}"


def undisturbed(directory):
    """Output and state of a run without any trouble, in this process."""
    output = directory / "output"
    output.mkdir()
    cluster = MiniCluster()
    env = environment(directory / "checkpoint", executor=cluster)
    build(env, output)
    job = cluster.start(list(env.sinks), env.job_settings("undisturbed"))
    while not everything_seen(output):
        job.run_batch()
    found = committed(output), state_in(job.stop_with_savepoint(str(directory)))
    assert {kind for kind, *_ in found[0]} == {"seen", "timer", "window", "match", "timeout"}
    assert all(found[1].values())
    return found


def python_processes():
    """Spark's Python processes below this one: {process id: command}."""
    below = descendants(os.getpid())
    return {pid: command for (pid, _), command in below.items() if "pyspark" in command and "java" not in command}


def forked_workers():
    """The processes that Spark's daemon has forked: they run the tasks."""
    below = python_processes()
    return sorted(pid for pid in below if "pyspark.daemon" in below.get(_parent(pid), ""))


def planners():
    """The processes in which Spark plans the batches of a query: without one the query fails."""
    return sorted(pid for pid, command in python_processes().items() if "pyspark.daemon" not in command)


def all_python():
    """Whatever there is, also Spark's daemon."""
    return sorted(python_processes())


PYTHON_PROCESSES = {"Python workers": forked_workers, "planners": planners, "all Python processes": all_python}


def _parent(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return 0
    return int(status.rpartition(")")[2].split()[1])


class Run:
    """One job on a Spark that stays alive, disturbed until everything was seen.

    :param targets: what is killed, by name; the number of the run says which
    :param number: what the run aims at; its seed unless told
    """

    def __init__(self, spark, directory, seed, targets: dict[str, Callable[[], list[int]]], blows=None, *, number=None):
        number = seed if number is None else number
        self.output = directory / "output"
        self.savepoints = str(directory / "savepoints")
        self.output.mkdir(parents=True)
        names = sorted(targets)
        self.target = names[number // len(AIMS) % len(names)]
        self.victims = targets[self.target]
        self.hits: list[Hit] = []
        self._restarts: list[int] = []
        self.blows = blows or [Blow.of(number, count) for count in range(random.Random(seed).randint(1, 2))]
        env = environment(directory / "checkpoint", spark=spark)
        build(env, self.output)
        self.client: Any = env.execute_async(f"chaos {seed}")

    @property
    def commits(self):
        return len(list(self.output.glob("*.json")))

    @property
    def over(self):
        return self.client.get_job_execution_result().done()

    def live(self):
        """To the end; what the sink shows, and the state."""
        self.suffer()
        return self.finish()

    def suffer(self, beside: "list[Run] | None" = None):
        """All blows. They hit runs beside this one, too."""
        runs = [self, *(beside or [])]
        for blow in self.blows:
            wanted = min(self.commits + blow.commits, MOST_COMMITS)
            wait_until(lambda: self.over or self.commits >= wanted, 240, f"commit {wanted}")  # noqa: B023
            restarts = [run.client.progress.restarts for run in runs]
            hits = strike(
                self.client, blow, self.savepoints, self.target, self.victims, [run.client for run in runs[1:]]
            )
            for run, hit, before in zip(runs, hits, restarts, strict=False):
                run.hits.append(hit)
                run._restarts.append(before)

    def finish(self):
        """Wait until everything was seen; what the sink shows, and the state."""
        path = stop(self.client, self.output, self.savepoints)
        self.client.get_job_execution_result().result(240)
        counts = [*self._restarts, self.client.progress.restarts]
        for hit, (before, after) in zip(self.hits, pairwise(counts), strict=True):
            hit.restarts = after - before
        assert any(hit.processes for hit in self.hits), "nothing was killed"
        return committed(self.output), state_in(path)


def live_together(runs):
    """Several jobs at once: what is killed for the sake of the first one hits all of them."""
    runs[0].suffer(runs[1:])
    return [run.finish() for run in runs]
