"""Cassandra behind a job on Spark: first Cassandra is killed, then the driver, and every row is right in the end."""

import os
import random
import time

import pytest
from cassandra_job import KEYS, NUMBERS
from processes import alive, descendants, kill, start, wait_until

from penstock.testing.server import ServerUnavailableError

pytest.importorskip("cassandra")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]


@pytest.fixture
def server():
    from penstock.testing.cassandra_server import CassandraServer

    try:
        running = CassandraServer().start()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    running.execute("CREATE KEYSPACE example WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    running.execute("CREATE TABLE example.counts (key int PRIMARY KEY, count int)")
    running.execute("CREATE TABLE example.events (id text PRIMARY KEY, key int, count int)")
    yield running
    running.stop()


def test_a_job_whose_cassandra_and_then_whose_driver_is_killed_writes_every_row_once(tmp_path, server):
    moments = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails

    def run():
        with (tmp_path / "stdout").open("w") as stdout, (tmp_path / "stderr").open("w") as stderr:
            return start("cassandra_job.py", tmp_path / "checkpoint", server.port, stdout=stdout, stderr=stderr)

    def events():
        return server.execute("SELECT count(*) FROM example.events").one()[0]

    def wait_for_events(process, count):
        wait_until(lambda: process.poll() is not None or events() >= count, 240, f"{count} rows")
        assert process.poll() is None, (tmp_path / "stderr").read_text()
        time.sleep(moments.uniform(0, 0.2))  # any moment of a batch

    process, children = run(), {}
    try:
        wait_for_events(process, 80)
        server.kill()
        server.resume()
        wait_for_events(process, events() + 80)
        children = descendants(process.pid)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not alive(children), 60, "the end of the JVM and its workers")
    assert events() < NUMBERS, "the kill came too late"

    process = run()
    try:
        process.wait(timeout=300)
    finally:
        children = descendants(process.pid)
        process.kill()
        kill(pid for pid, _ in alive(children))
    assert (process.returncode, (tmp_path / "stdout").read_text()) == (0, "finished\n"), (
        tmp_path / "stderr"
    ).read_text()
    expected = {key: len(range(key, NUMBERS, KEYS)) for key in range(KEYS)}
    assert {row.key: row.count for row in server.execute("SELECT * FROM example.counts")} == expected
    found = sorted((row.key, row.count) for row in server.execute("SELECT * FROM example.events"))
    assert found == [(key, count) for key in range(KEYS) for count in range(1, expected[key] + 1)]
