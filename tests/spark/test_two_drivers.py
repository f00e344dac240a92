"""Two drivers of one job on Spark: the second one is refused, or takes over; the output is right in either case.

What happens behind each single check of the lease: tests/connectors/test_two_drivers.py.
"""

import os
import random
import re
import signal

import pytest
from processes import alive, descendants, wait_until
from tests.connectors.servers import postgresql
from tests.connectors.test_jdbc import execute
from two_drivers import Job, Outside, expected, lines_in

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

SEED = int(os.environ.get("PENSTOCK_TWO_DRIVERS_SEED", random.randrange(1 << 32)))
REPETITIONS = int(os.environ.get("PENSTOCK_TWO_DRIVERS_RUNS", "10"))  # with each sink
BATCH_LINES = 40


@pytest.fixture
def files(tmp_path):
    directory = tmp_path / "files"
    directory.mkdir()
    return Outside("files", str(directory), lambda: lines_in(directory, "part-*"))


@pytest.fixture
def two_phase_commit(tmp_path):
    directory = tmp_path / "transactions"
    directory.mkdir()
    return Outside("two-phase-commit", str(directory), lambda: lines_in(directory, "*.committed"))


@pytest.fixture(scope="module")
def postgres_url():
    with postgresql() as url:
        yield url


@pytest.fixture
def postgres(postgres_url):
    for statement in ("DROP TABLE IF EXISTS lines", "CREATE TABLE lines (line VARCHAR(20))"):
        execute(postgres_url, statement)
    return Outside(
        "postgresql", postgres_url, lambda: [line for (line,) in execute(postgres_url, "SELECT line FROM lines")]
    )


@pytest.fixture
def kafka_topic(kafka):
    topic = kafka.topic(2)
    return Outside("kafka", f"{kafka.bootstrap_servers}/{topic}", lambda: kafka.values(topic))


def test_a_second_driver_is_refused_at_once_and_touches_nothing(tmp_path, files):
    with Job(tmp_path, files) as job:
        first = job.start()
        first.wait(lambda: job.epoch == 1, "the lease")
        second = job.start()
        assert second.end() == 1
        who = rf"is in use by job 'count' \(\w{{8}}\) in process {first.process.pid} on \S+ since \S+ \S+ UTC"
        assert re.search(who, second.said), second.said
        assert "--take-over" in second.said
        assert "Spark" not in second.said  # it was not even started
        detached = job.start("-d", "--log", str(tmp_path / "log"))
        assert detached.end() == 1
        assert f"in process {first.process.pid} on " in detached.said
        assert first.end() == 0, first.said
        assert first.said.endswith("finished\n")
        assert job.epoch == 1
    assert sorted(files.lines()) == expected()
    assert [path.name for path in (tmp_path / "files").iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_of_drivers_that_are_started_at_once_one_runs_and_the_others_are_refused(tmp_path, two_phase_commit):
    with Job(tmp_path, two_phase_commit) as job:
        drivers = [job.start() for _ in range(3)]
        codes = [driver.end() for driver in drivers]
        assert sorted(codes) == [0, 1, 1], [driver.said for driver in drivers]
        for driver, code in zip(drivers, codes, strict=True):
            assert ("is in use by" in driver.said) == (code == 1)
    assert sorted(two_phase_commit.lines()) == expected()


@pytest.mark.slow
def test_a_driver_that_was_killed_is_replaced_at_once(tmp_path, files):
    with Job(tmp_path, files) as job:
        first = job.start()
        first.wait_for_lines(BATCH_LINES)
        below = descendants(first.process.pid)
        first.process.kill()
        first.process.wait()
        second = job.start()  # though the JVM of the first may still be there
        assert second.end() == 0, second.said
        assert job.epoch == 2
        wait_until(lambda: not alive(below), 60, "the end of the JVM and its workers")
    assert sorted(files.lines()) == expected()


def take_over(outside, directory, seed):
    """A driver is paused, replaced, and wakes up; another one is late and slow."""
    print(f"PENSTOCK_TWO_DRIVERS_SEED={seed}")  # noqa: T201 - shown if the test fails
    with Job(directory, outside) as job:
        _take_over(job, random.Random(seed))


def _take_over(job, chance):
    first = job.start()
    first.wait(lambda: job.epoch == 1, "the lease")
    late = job.start()
    late.signal(signal.SIGSTOP, everything=False)  # so slow that it gets to the directory after all the others
    first.wait_for_lines(BATCH_LINES * chance.randint(1, 4))
    suspended = chance.random() < 0.5
    first.signal(signal.SIGSTOP, everything=suspended)
    second = job.start("--take-over")
    second.wait(lambda: job.epoch == 2, "the takeover")
    if chance.random() < 0.7:
        second.wait_for_lines(len(job.outside.lines()) + BATCH_LINES * chance.randint(1, 6))
    first.signal(signal.SIGCONT, everything=suspended)
    late.signal(signal.SIGCONT, everything=False)
    assert (first.end(), late.end(), second.end()) == (1, 1, 0), [driver.said for driver in job.drivers]
    assert "another driver has taken over the checkpoint directory" in first.said
    assert f"in process {second.process.pid} on " in first.said
    assert "is in use by" in late.said
    assert "finished" not in first.said
    assert second.said.endswith("finished\n")
    assert sorted(job.outside.lines()) == expected()


SINKS = ["files", "two_phase_commit", "postgres", pytest.param("kafka_topic", marks=pytest.mark.kafka)]


@pytest.mark.parametrize("sink", ["files", "two_phase_commit"])
def test_a_paused_driver_that_was_replaced_wakes_up_and_ends_without_a_commit(request, tmp_path, sink):
    take_over(request.getfixturevalue(sink), tmp_path, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(REPETITIONS))
@pytest.mark.parametrize("sink", SINKS)
def test_again_and_again_a_paused_driver_is_replaced_and_every_record_is_there_once(
    request, tmp_path, sink, repetition
):
    take_over(request.getfixturevalue(sink), tmp_path, SEED + repetition)
