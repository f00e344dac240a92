"""Spark's sources and sinks around a stream: exactly once where Spark's are, also when the driver is killed."""

import json
import os
import random
import time

import pytest
from interop_job import KEYS
from processes import alive, descendants, start, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

FILES = 12
PER_FILE = 40


@pytest.mark.parametrize("sink", ["parquet", "foreachBatch"])
def test_a_streaming_dataframe_to_a_sink_of_sparks_is_exactly_once_though_the_driver_is_killed(tmp_path, sink):
    source, target, result = tmp_path / "in", tmp_path / "out", tmp_path / "result"
    source.mkdir()
    for file in range(FILES):
        numbers = range(file * PER_FILE, (file + 1) * PER_FILE)
        (source / f"{file:02}.json").write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
    moments = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    arguments = (tmp_path / "checkpoint", source, target, sink, FILES * PER_FILE, result)
    for kill in (True, False):
        with (tmp_path / "output").open("w") as output:
            process = start("interop_job.py", *arguments, stdout=output, stderr=output)
        children = {}
        try:
            if kill:
                batches = moments.randint(1, 4)
                committed = tmp_path / "checkpoint" / "commits" / str(batches)
                wait_until(
                    lambda committed=committed, process=process: committed.exists() or process.poll() is not None,
                    240,
                    "batches",
                )
                time.sleep(moments.uniform(0, 0.3))  # any moment of a batch
                children = descendants(process.pid)
                assert process.poll() is None, (tmp_path / "output").read_text()
                process.kill()
            process.wait(timeout=400)
            wait_until(lambda children=children: not alive(children), 60, "the end of the JVM and its workers")
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, (tmp_path / "output").read_text()) == (0, "finished\n")
    each = FILES * PER_FILE // KEYS
    expected = [[key, number] for key in range(KEYS) for number in range(1, each + 1)]
    assert json.loads(result.read_text()) == expected
