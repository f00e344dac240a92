"""Kafka to Kafka on Spark: the driver is killed again and again, a read_committed consumer sees every record once."""

import os
import random
import time
from functools import partial

import pytest
from processes import alive, descendants, kill, start, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

START_SECONDS = 240  # a busy machine starts a JVM slowly
RECORDS = 1_800
KEYS = 7

# Behind which step of a transaction the driver is killed, if not at any moment: the number of the checkpoint
# with some of its records, all of them but no commit, a commit that Spark does not know of.
KILLS = ("any", "send_offsets_to_transaction", "flush", "commit_transaction")


def test_a_job_from_kafka_to_kafka_killed_again_and_again_delivers_every_record_once(kafka, tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)
    source, target = kafka.topic(3), kafka.topic(2)
    for partition in range(3):
        kafka.send(source, range(partition, RECORDS, 3), partition=partition)
    arguments = (tmp_path / "checkpoint", kafka.bootstrap_servers, source, target)
    prefix = f"count-{target}"
    for step in KILLS:
        reached = tmp_path / step
        stop = () if step == "any" else (step, reached)
        process, children = run(tmp_path, (*arguments, prefix, *stop)), {}
        try:
            if stop:
                arrived = reached.exists
            else:
                arrived = partial(has_written, kafka, target, len(kafka.values(target)) + 60 * moments.randint(1, 5))
            wait_until(partial(has_ended_or, process, arrived), START_SECONDS, "a commit")
            assert process.poll() is None, said(tmp_path)
            if not stop:
                time.sleep(moments.uniform(0, 0.4))  # any moment of a batch
            children = descendants(process.pid)
        finally:
            process.kill()
            process.wait()
        wait_until(lambda children=children: not alive(children), 60, "the end of the JVM and its workers")
        prefix = f"{step}-{target}"  # the next one goes on under another id
    process = run(tmp_path, (*arguments, prefix))
    try:
        process.wait(timeout=400)
    finally:
        left = descendants(process.pid)
        process.kill()
        kill(pid for pid, _ in alive(left))
    assert (process.returncode, said(tmp_path)) == (0, "finished\n")
    counts = {key: len(range(key, RECORDS, KEYS)) for key in range(KEYS)}
    expected = sorted(f"{key} {n}" for key, total in counts.items() for n in range(1, total + 1))
    assert sorted(kafka.values(target)) == expected
    assert kafka.committed(f"group-{source}", source, 3) == [RECORDS // 3] * 3


def has_ended_or(process, condition):
    return process.poll() is not None or condition()


def has_written(kafka, topic, count):
    return len(kafka.values(topic)) >= count


def run(directory, arguments):
    with (directory / "output").open("w") as output:
        return start("kafka_counting_job.py", *arguments, stdout=output, stderr=output)


def said(directory):
    return (directory / "output").read_text()
