"""RabbitMQ to files on Spark: the driver is killed again and again, every message is in the files once."""

import os
import random
import time

import pytest
from processes import alive, descendants, kill, start, wait_until
from tests.connectors.servers import rabbitmq

pytestmark = [
    pytest.mark.spark,
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc"),  # noqa: PTH112
]

MESSAGES = 1_200
KILLS = 2


def test_a_queue_read_by_a_job_that_is_killed_again_and_again_counts_every_message_once(tmp_path):
    pika = pytest.importorskip("pika")
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)
    output = tmp_path / "out"
    with rabbitmq() as port:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        channel = connection.channel()
        channel.queue_declare("numbers", durable=True)
        for number in [*range(MESSAGES), "end"]:
            properties = pika.BasicProperties(correlation_id=f"id {number}", delivery_mode=2)
            channel.basic_publish("", "numbers", str(number).encode(), properties)
        connection.close()
        arguments = (tmp_path / "checkpoint", port, "numbers", output)
        for _ in range(KILLS):
            process, children = run(tmp_path, arguments), {}
            try:
                enough = len(found(output)) + 40 * moments.randint(1, 5)
                wait_until(
                    lambda process=process, enough=enough: process.poll() is not None or len(found(output)) >= enough,
                    240,
                    "a commit",
                )
                assert process.poll() is None, said(tmp_path)
                time.sleep(moments.uniform(0, 0.3))  # any moment of a batch
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
            kill(pid for pid, _ in alive(left))
    assert (process.returncode, said(tmp_path)) == (0, "finished\n")
    assert sorted(found(output)) == list(range(MESSAGES))


def found(directory):
    return [int(line) for path in directory.glob("part-*") for line in path.read_text().splitlines()]


def run(directory, arguments):
    with (directory / "output").open("w") as output:
        return start("rabbitmq_job.py", *arguments, stdout=output, stderr=output)


def said(directory):
    return (directory / "output").read_text()
