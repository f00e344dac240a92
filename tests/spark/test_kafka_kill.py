"""Kafka to Kafka on Spark: the driver is killed again and again, a read_committed consumer sees every record once."""

import os
import random
import signal
import time

import pytest
from processes import alive, descendants, start, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

START_SECONDS = 240  # a busy machine starts a JVM slowly
RECORDS = 1_800
KEYS = 7
KILLS = 3


def test_a_job_from_kafka_to_kafka_killed_again_and_again_delivers_every_record_once(kafka, tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)
    source, target = kafka.topic(3), kafka.topic(2)
    for partition in range(3):
        kafka.send(source, range(partition, RECORDS, 3), partition=partition)
    arguments = (tmp_path / "checkpoint", kafka.bootstrap_servers, source, target)
    for _ in range(KILLS):
        process, children = run(tmp_path, arguments), {}
        try:
            seen = len(kafka.values(target)) + 60 * moments.randint(1, 5)
            wait_until(
                lambda process=process, seen=seen: process.poll() is not None or len(kafka.values(target)) >= seen,
                START_SECONDS,
                "a commit",
            )
            assert process.poll() is None, said(tmp_path)
            time.sleep(moments.uniform(0, 0.4))  # any moment of a batch
            children = descendants(process.pid)
        finally:
            process.kill()
            process.wait()
        wait_until(lambda children=children: not alive(children), 60, "the end of the JVM and its workers")
    process = run(tmp_path, arguments)
    try:
        process.wait(timeout=400)
    finally:
        left = descendants(process.pid)
        process.kill()
        for pid, _ in alive(left):
            os.kill(pid, signal.SIGKILL)
    assert (process.returncode, said(tmp_path)) == (0, "finished\n")
    counts = {key: len(range(key, RECORDS, KEYS)) for key in range(KEYS)}
    expected = sorted(f"{key} {n}" for key, total in counts.items() for n in range(1, total + 1))
    assert sorted(kafka.values(target)) == expected
    assert kafka.committed(f"group-{source}", source, 3) == [RECORDS // 3] * 3


def run(directory, arguments):
    with (directory / "output").open("w") as output:
        return start("kafka_counting_job.py", *arguments, stdout=output, stderr=output)


def said(directory):
    return (directory / "output").read_text()
