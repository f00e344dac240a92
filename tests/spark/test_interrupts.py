"""Ctrl-C in the middle of things: the job ends in seconds, whatever its functions do, and the program may go on.

While Spark starts, and between batches: see test_kill.py.
"""

import os
import signal
import subprocess
import sys

import pytest
from processes import alive, descendants, kill, start

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
]


@pytest.fixture
def program(tmp_path):
    with (tmp_path / "stderr").open("w") as stderr:
        running = start("interrupted_jobs.py", tmp_path / "savepoints", stdout=subprocess.PIPE, stderr=stderr)
    with running.stdout:
        yield running
        left = descendants(running.pid)
        running.kill()
        running.wait()
    kill(pid for pid, _ in alive(left))


def test_ctrl_c_ends_a_job_in_the_middle_of_a_function_a_savepoint_or_its_end_and_leaves_no_process(program, tmp_path):
    """Functions sleep for an hour: nothing here waits for them."""
    said, children = [], {}
    for line in program.stdout:
        said.append(line.strip())
        if line.startswith("now"):
            children |= descendants(program.pid)
            os.killpg(program.pid, signal.SIGINT)
    program.wait(timeout=300)
    assert said == [
        "now in a function",
        "a function was interrupted, short traceback",
        "now in a batch job",
        "a batch job was interrupted, short traceback",
        "now in a savepoint",
        "the job is CANCELED",
        "a savepoint was interrupted, short traceback",
        "now twice",
        "an impatient user was interrupted, short traceback",
        "[2, 4, 6]",
        "now and for the last time",
    ]
    assert any("java" in command for command in children.values())
    assert alive(children) == {}  # gone already when the program has ended
    complained = (tmp_path / "stderr").read_text()
    assert complained.count("Traceback") == 1
    assert complained.splitlines()[-1] == "KeyboardInterrupt"
    assert [noise for noise in ("java", "Py4J", "Exception in thread", "During handling") if noise in complained] == []
