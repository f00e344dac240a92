"""Chaos on Spark: kill -9 of the driver and of Python workers, while the job saves and rescales itself.

Seeded: ``PENSTOCK_CHAOS_SEED`` repeats the choices of a run (not the moments the machine makes of them).
``make chaos`` makes many runs.
"""

import json
import os
import random
import signal

import pytest
from chaos_job import build
from processes import alive, descendants, start, wait_until

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.sinks import CollectSink
from penstock.runtime.savepoint.manifest import METADATA, verify
from penstock.testing import MiniCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

RUNS = int(os.environ.get("PENSTOCK_CHAOS_KILLS", "1"))
SEED = int(os.environ.get("PENSTOCK_CHAOS_SEED", random.randrange(1 << 32)))
RECORDS = 1_500
START_SECONDS = 240


@pytest.fixture(scope="module")
def undisturbed():
    sink = CollectSink()
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    build(env, RECORDS, sink)
    env.execute()
    found = [record for _ in range(sink.records.qsize()) for record in sink.records.get_nowait()]
    sink.release()
    assert found
    return sorted(map(tuple, found))


class Program:
    """One life of the driver."""

    def __init__(self, directory, seed):
        self.output = directory / "output"
        self.output.mkdir(exist_ok=True)
        self.said, self.complained = directory / "stdout", directory / "stderr"
        arguments = (directory / "checkpoint", self.output, RECORDS, seed)
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

    def kill_driver(self):
        children = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not alive(children), 60, "the end of the JVM and its workers")

    def kill_worker(self, chance):
        workers = [pid for (pid, _), command in descendants(self.process.pid).items() if "pyspark.daemon" in command]
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)

    def end(self):
        for pid, _ in alive(descendants(self.process.pid)):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def live_through(directory, seed):
    """Start the program again and again until it finishes, killing something now and then."""
    chance = random.Random(seed)
    kills = chance.randint(2, 3)
    while True:
        program = Program(directory, chance.randrange(1 << 32))
        try:
            before = program.commits
            while kills:
                wanted = before + chance.randint(1, 5)
                program.wait_for(wanted)
                if program.ended:
                    break
                kills -= 1
                before = program.commits
                if chance.random() < 0.5:
                    program.kill_driver()
                    break
                program.kill_worker(chance)
            else:
                program.process.wait(timeout=600)
            if program.said.read_text() == "finished\n":
                return program
            assert program.process.returncode in (-signal.SIGKILL, 0), program.complained.read_text()
        finally:
            program.end()


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_saved_and_rescaled_the_results_are_those_of_an_undisturbed_run(run, undisturbed, tmp_path):
    seed = SEED + run
    print(f"PENSTOCK_CHAOS_SEED={seed} PENSTOCK_CHAOS_KILLS=1")  # noqa: T201 - shown if the test fails
    program = live_through(tmp_path, seed)
    records = [record for path in program.output.glob("*.json") for record in json.loads(path.read_text())]
    assert sorted(map(tuple, records)) == undisturbed
    for metadata in (tmp_path / "output-savepoints").rglob(METADATA):  # what is complete is whole
        verify(str(metadata.parent))
