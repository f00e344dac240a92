"""Killing the driver: state and output are exactly those of an undisturbed run, and no process is left behind."""

import contextlib
import json
import os
import random
import signal
import time

import pytest
from counting_job import KEYS
from processes import alive, descendants, kill, start, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

START_SECONDS = 240  # a busy machine starts a JVM slowly
RECORDS = 2_100


class Program:
    """A run of the counting job, and everything it has started."""

    def __init__(self, directory, records, mode="micro-batch"):
        self.output = directory / "output"
        self.output.mkdir(exist_ok=True)
        self.said, self.complained = directory / "stdout", directory / "stderr"
        with self.said.open("w") as stdout, self.complained.open("w") as stderr:
            self.process = start(
                "counting_job.py", directory / "checkpoint", self.output, records, mode, stdout=stdout, stderr=stderr
            )
        self.children = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Whatever happens in a test, its processes end with it."""
        left = {**self.children, **descendants(self.process.pid)}
        self.process.kill()
        self.process.wait()
        kill(pid for pid, _ in alive(left))

    @property
    def files(self):
        """What is committed: the records of each checkpoint."""
        return {int(path.stem): json.loads(path.read_text()) for path in self.output.glob("*.json")}

    def wait_for(self, commits):
        wait_until(lambda: self.process.poll() is not None or len(self.files) >= commits, START_SECONDS, "a commit")
        self.assert_running()

    def assert_running(self):
        assert self.process.poll() is None, self.said.read_text() + self.complained.read_text()

    def note_children(self):
        self.assert_running()
        self.children = descendants(self.process.pid)
        assert any("java" in command for command in self.children.values())

    def signal(self, number):
        """To everybody in the foreground, as the terminal does it."""
        os.killpg(self.process.pid, number)


def test_a_keyed_job_killed_again_and_again_counts_as_if_nothing_had_happened(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)
    for _ in range(3):
        with Program(tmp_path, RECORDS) as program:
            program.wait_for(len(program.files) + moments.randint(1, 8))
            time.sleep(moments.uniform(0, 0.3))  # any moment of a batch
            program.note_children()
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            wait_until(lambda: not alive(program.children), 60, "the end of the JVM and its workers")
    with Program(tmp_path, RECORDS) as program:
        program.process.wait(timeout=400)
    assert (program.process.returncode, program.said.read_text()) == (0, "finished\n"), program.complained.read_text()
    assert program.complained.read_text() == ""
    files = program.files
    assert sorted(files) == list(range(1, max(files) + 1))  # no checkpoint is missing
    found = sorted(tuple(record) for records in files.values() for record in records)
    counts = {key: len(range(key or KEYS, RECORDS + 1, KEYS)) for key in range(KEYS)}
    assert found == sorted((key, n) for key, total in counts.items() for n in range(1, total + 1))


def test_ctrl_c_ends_a_running_job_and_leaves_no_process(tmp_path):
    with Program(tmp_path, 10_000_000) as program:
        program.wait_for(2)
        program.note_children()
        program.signal(signal.SIGINT)
        program.process.wait(timeout=300)
        assert alive(program.children) == {}  # gone already when the program returns
    assert_interrupted(program, "java", "Py4J", "StreamingQueryException", "Exception in thread")


def test_a_jvm_that_is_killed_ends_the_job_with_a_clear_error(tmp_path):
    """Though the job would be restarted after any other failure. As the system does it when memory runs out."""
    with Program(tmp_path, 10_000_000) as program:
        program.wait_for(2)
        program.note_children()
        (jvm,) = [pid for (pid, _), command in program.children.items() if "PythonGatewayServer" in command]
        kill([jvm])
        assert program.process.wait(timeout=300) == 1
        assert alive(program.children) == {}
    complained = program.complained.read_text()
    assert "SparkEndedError: Spark's JVM was killed (SIGKILL)" in complained
    assert "resumes from its last checkpoint" in complained
    assert complained.count("Traceback") == 1
    noises = ("Py4J", "Exception in thread", "RuntimeWarning", "sending command", "During handling")
    assert [noise for noise in noises if noise in complained] == []


@pytest.mark.parametrize("second", [0.5, 1.5])  # before the JVM answers, and about then
def test_ctrl_c_pressed_twice_while_spark_starts_leaves_no_process(tmp_path, second):
    moments = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    with Program(tmp_path, 10_000_000) as program:
        wait_until(lambda: "java" in str(descendants(program.process.pid)), START_SECONDS, "the start of a JVM")
        time.sleep(second + moments.uniform(-0.4, 0.4))
        program.note_children()
        program.signal(signal.SIGINT)
        time.sleep(moments.uniform(0, 0.2))
        with contextlib.suppress(ProcessLookupError):  # gone already
            program.signal(signal.SIGINT)
        program.process.wait(timeout=300)
        wait_until(lambda: not alive(program.children), 60, "the end of the JVM")
    assert_interrupted(program, "Py4JError", "StreamingQueryException", "Exception in thread", "\tat ")


def assert_interrupted(program, *noises):
    assert program.process.returncode != 0
    assert program.said.read_text() == ""
    complained = program.complained.read_text()
    assert "KeyboardInterrupt" in complained
    assert [noise for noise in noises if noise in complained] == []
