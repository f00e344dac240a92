"""Runs of the chaos job in which something is killed with kill -9, and what has to come out of them.

Every run has a seed, which decides what is done and killed, and when, counted in commits; a failing test prints it.
``PENSTOCK_CHAOS_RUNS`` says how many runs there are in all kinds of tests together, ``PENSTOCK_CHAOS_SEED`` where to
begin: with both, and ``-k``, one run is repeated.
"""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from chaos_job import build, committed, environment, everything_seen, state_in, stop
from processes import descendants, wait_until

from penstock.common.errors import PenstockError
from penstock.testing import MiniCluster

RUNS = int(os.environ.get("PENSTOCK_CHAOS_RUNS", "50"))
# Processes that share a test run must name its tests alike.
_TODAY = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID")).randrange(1 << 32)
SEED = int(os.environ.get("PENSTOCK_CHAOS_SEED", _TODAY))
# What a run costs differs: most of the runs kill the workers of one long-lived Spark.
SHARES = {"workers": 0.5, "executors": 0.36, "drivers": 0.14}


def seeds(kind):
    """The seeds of the runs of one kind."""
    count = max(1, round(RUNS * SHARES[kind]))
    return range(SEED, SEED + count)


def say(kind, seed):
    """How to repeat a run; pytest shows it if the test fails."""
    print(f"repeat with: PENSTOCK_CHAOS_SEED={seed} PENSTOCK_CHAOS_RUNS=1 pytest tests/spark -k 'chaos and {kind}'")  # noqa: T201


def undisturbed(directory):
    """Output and state of a run without any trouble, in this process."""
    output = directory / "output"
    output.mkdir()
    cluster = MiniCluster()
    env = environment(directory / "checkpoint", executor=cluster)
    build(env, output)
    job = cluster.start(list(env._sinks), env._job_settings("undisturbed"))
    while not everything_seen(output):
        job.run_batch()
    found = committed(output), state_in(job.stop_with_savepoint(str(directory)))
    assert {kind for kind, *_ in found[0]} == {"seen", "timer", "window"}
    assert all(found[1].values())
    return found


def python_processes():
    """Spark's Python processes below this one: {process id: command}."""
    below = descendants(os.getpid())
    return {pid: command for (pid, _), command in below.items() if "pyspark" in command and "java" not in command}


def forked_workers(chance=None):
    """The processes that Spark's daemon has forked: they run the tasks."""
    below = python_processes()
    return sorted(pid for pid in below if "pyspark.daemon" in below.get(_parent(pid), ""))


def planners(chance=None):
    """The processes in which Spark plans the batches of a query: without one the query fails."""
    return sorted(pid for pid, command in python_processes().items() if "pyspark.daemon" not in command)


def any_python(chance):
    """Mostly a worker; sometimes whatever there is, also Spark's daemon."""
    return forked_workers() if chance.random() < 0.6 else sorted(python_processes())


def _parent(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return 0
    return int(status.rpartition(")")[2].split()[1])


class Run:
    """One job on a Spark that stays alive, disturbed until everything was seen."""

    def __init__(self, spark, directory, seed, victims, moments=None):
        self.chance = random.Random(seed)
        self.output = directory / "output"
        self.savepoints = str(directory / "savepoints")
        self.output.mkdir()
        self.victims = victims
        self.kills = 0
        self.moments = moments or sorted(self.chance.sample(range(1, 9), self.chance.randint(1, 2)))
        env = environment(directory / "checkpoint", spark=spark)
        build(env, self.output)
        self.client = env.execute_async(f"chaos {seed}")

    @property
    def commits(self):
        return len(list(self.output.glob("*.json")))

    @property
    def over(self):
        return self.client.get_job_execution_result().done()

    def live(self):
        """To the end; what the sink shows, and the state."""
        for moment in self.moments:
            wait_until(lambda wanted=moment: self.over or self.commits >= wanted, 240, f"commit {moment}")
            if self.over:
                break
            self._disturb()
        path = stop(self.client, self.output, self.savepoints)
        self.client.get_job_execution_result().result(240)
        assert self.kills, "nothing was killed"
        return committed(self.output), state_in(path)

    def _disturb(self):
        act = self.chance.random()
        with contextlib.suppress(PenstockError):  # one that comes too early or too late changes nothing
            if act < 0.3:
                self.client.trigger_savepoint(self.savepoints)
            elif act < 0.6:
                self.client.rescale(self.chance.randint(1, 3))
        time.sleep(self.chance.uniform(0, 0.4))  # any moment of a batch, of a savepoint, of a rescaling
        victims = self.victims(self.chance)
        if victims and self.chance.random() < 0.5:  # else all of them, so that those with work are among them
            victims = [self.chance.choice(victims)]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.kills += 1
