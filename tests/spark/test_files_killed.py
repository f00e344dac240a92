"""Files -> windowed counts -> Parquet on Spark, killed in the middle: every window once, and nothing left behind."""

import os
import random
import signal
import time

import pyarrow.parquet as pq
import pytest
from file_job import WINDOW
from processes import alive, descendants, start, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

SENSORS = 5
FILES = 6
PER_FILE = 450


def reading(number):
    """Two readings a sensor and window on average, in order of time."""
    return f"sensor {number % SENSORS}", number * WINDOW // (2 * SENSORS)


def write_input(directory):
    """One file after the other in time; all of the readings of a window lie in one file."""
    directory.mkdir()
    for file in range(FILES):
        numbers = range(file * PER_FILE, (file + 1) * PER_FILE)
        path = directory / f"{file}.csv"
        path.write_text("".join(f"{sensor},{at}\n" for sensor, at in map(reading, numbers)))
        os.utime(path, (1_000_000 + file, 1_000_000 + file))


def expected():
    counts = {}
    for number in range(FILES * PER_FILE):
        sensor, at = reading(number)
        key = sensor, at - at % WINDOW
        counts[key] = counts.get(key, 0) + 1
    return sorted((*key, count) for key, count in counts.items())


def visible(directory):
    return sorted(path for path in directory.glob("*.parquet") if not path.name.startswith("."))


def wait_for_files(directory, process, count):
    """Until so many new files, hidden ones included, were there, or the process has ended."""
    seen = all_files(directory)
    new = set()

    def enough():
        new.update(all_files(directory) - seen)
        return len(new) >= count or process.poll() is not None

    wait_until(enough, 240, "new files")


def all_files(directory):
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


def test_file_to_parquet_killed_and_restarted_has_every_window_once(tmp_path):
    write_input(tmp_path / "in")
    out = tmp_path / "out"
    moments = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    arguments = (tmp_path / "checkpoint", tmp_path / "in", out)
    for kill in (True, False):
        with (tmp_path / "stdout").open("w") as stdout, (tmp_path / "stderr").open("w") as stderr:
            process = start("file_job.py", *arguments, stdout=stdout, stderr=stderr)
        children = {}
        try:
            if kill:
                wait_for_files(out, process, moments.randint(2, 5))
                time.sleep(moments.uniform(0, 0.3))  # any moment of a batch
                children = descendants(process.pid)
                assert process.poll() is None, (tmp_path / "stderr").read_text()
                os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=400)
            wait_until(lambda: not alive(children), 60, "the end of the JVM and its workers")  # noqa: B023
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, (tmp_path / "stderr").read_text()
    assert (tmp_path / "stdout").read_text() == "finished\n"
    rows = [tuple(row.values()) for path in visible(out) for row in pq.read_table(path).to_pylist()]
    assert sorted(rows) == expected()
    assert [name for name in all_files(out) if name.startswith(".")] == []
    assert 1 < len(visible(out)) < 40  # compacted: a batch is not a file
