"""Kinesis to files on Spark: the driver is killed, a shard is split; every record is in the files once."""

import os
import random
import signal
import time

import pytest
from processes import alive, descendants, start, wait_until
from tests.connectors.kinesis_server import kinesis_server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

RECORDS = 800


def test_a_stream_read_by_a_job_that_is_killed_counts_every_record_once_also_of_a_shard_that_is_split(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)
    output = tmp_path / "out"
    with kinesis_server() as server:
        server.create("numbers", shards=2)
        server.put("numbers", [str(number) for number in range(RECORDS // 2)])
        arguments = (tmp_path / "checkpoint", server.endpoint, "numbers", output)
        enough = 40 * moments.randint(1, 5)
        until(tmp_path, arguments, lambda: len(found(output)) >= enough, moments.uniform(0, 0.3))
        server.split("numbers", 0)
        server.put("numbers", [str(number) for number in range(RECORDS // 2, RECORDS)])
        until(tmp_path, arguments, lambda: len(found(output)) >= RECORDS, 0)
    assert sorted(found(output)) == list(range(RECORDS))


def until(directory, arguments, condition, seconds):
    """Run the job until then, and a moment longer; then kill it and everything it has started."""
    with (directory / "output").open("w") as log:
        process, children = start("kinesis_job.py", *arguments, stdout=log, stderr=log), {}
    try:
        wait_until(lambda: process.poll() is not None or condition(), 240, "a commit")
        assert process.poll() is None, (directory / "output").read_text()
        time.sleep(seconds)  # any moment of a batch
        children = descendants(process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not alive(children), 60, "the end of the JVM and its workers")


def found(directory):
    return [int(line) for path in directory.glob("part-*") for line in path.read_text().splitlines()]
