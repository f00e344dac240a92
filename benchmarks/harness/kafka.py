"""The broker of the Kafka jobs, and what happens at the other end of it.

The runner starts one broker for the session and tells the measured processes where it is by environment variables.
Topics are made, filled and read by this module, in the runner's own interpreter: the systems' environments need not
have a client for it.

    python -m benchmarks.harness.kafka fill --records 1000 --keys 100 --partitions 2     prints the two topics' names
    python -m benchmarks.harness.kafka digest --topic T                                  prints what was read
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.report import digest

_ROOT = Path(__file__).resolve().parent.parent.parent
BOOTSTRAP = "BENCH_KAFKA"
PYTHON = "BENCH_PYTHON"
_SCATTER = 7919
_SCATTER_NUMBERS = 2_654_435_761
_EVENTS_PER_MS = 10
_MOST_PARTITIONS = 8


@dataclass(slots=True, frozen=True)
class KafkaLoad:
    """What a job reads and writes."""

    bootstrap_servers: str
    source: str
    target: str
    bounded: bool = True
    records_per_partition: int = 0


@contextmanager
def broker() -> Iterator[None]:
    """A broker for the session; measured processes find it by their environment."""
    from penstock.testing.kafka_broker import KafkaBroker

    with KafkaBroker(heap="1g", fast_start=False) as running:
        os.environ[BOOTSTRAP] = running.bootstrap_servers
        os.environ[PYTHON] = sys.executable
        yield


def fill(records: int, keys: int, partitions: int, job: str = "k") -> KafkaLoad:
    """New topics, the first with records in it, about as many in every partition.

    Runs in the runner's interpreter, wherever it is called.
    """
    words = ("fill", "--records", records, "--keys", keys, "--partitions", partitions, "--job", job)
    source, target, each = _ask(*words).split()
    return KafkaLoad(os.environ[BOOTSTRAP], source, target, records_per_partition=int(each))


def digest_of(load: KafkaLoad, *, parse: bool = False) -> dict[str, object]:
    """Count and fingerprint of what a job wrote, as a reader of committed records sees it.

    Where the values are Python literals, `parse` compares them as such.
    """
    result: dict[str, object] = json.loads(_ask("digest", "--topic", load.target, *(("--parse",) if parse else ())))
    return result


def _ask(*words: object) -> str:
    paths = os.pathsep.join((str(_ROOT), str(_ROOT / "src")))
    command = [os.environ[PYTHON], "-m", "benchmarks.harness.kafka", *map(str, words)]
    done = subprocess.run(
        command, cwd=_ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


# -- in the runner's interpreter -------------------------------------------------------------------------------------


def new_topics(partitions: int) -> tuple[str, str]:
    """A source and a target."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = uuid.uuid4().hex[:12]
    topics = (f"in-{name}", f"out-{name}")
    admin = AdminClient({"bootstrap.servers": os.environ[BOOTSTRAP]})
    for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
        future.result()
    return topics


Record = tuple[int, str, int, int]  # key, value, time in ms or 0 for now, what its partition follows from


def _counted(records: int, keys: int) -> Iterator[Record]:
    """(k): `key,moment sent`, where a number does as the moment."""
    for n in range(records):
        key = n * _SCATTER % keys
        yield key, f"{key},{n}", 0, key


def _numbers(records: int, keys: int) -> Iterator[Record]:
    """(a) to (c): the numbers from 1 on."""
    for n in range(1, records + 1):
        key = n * _SCATTER_NUMBERS % keys
        yield key, str(n), 0, key


def _timed_numbers(records: int, keys: int, *, sessions: bool) -> Iterator[Record]:
    """(d) to (f): the numbers from 0 on with their event time, as benchmarks/jobs/windows.py makes them.

    Event time begins at a full hour, because a broker thinks a time around 0 long expired.
    """
    hour = 3_600_000
    begin = (int(time.time() * 1_000) // hour - 3) * hour
    for n in range(records):
        key, moment = n * _SCATTER_NUMBERS % keys, n // _EVENTS_PER_MS
        shard = key
        if sessions:  # a key is active for one second in every three
            key, shard = key - key % 3 + moment // 1_000 % 3, key // 3
        yield key, str(n), begin + moment, shard
    for shard in range(_MOST_PARTITIONS):  # closes the windows of its partition
        yield 2 * keys + shard, "0", begin + hour, shard


def _records_of(job: str, records: int, keys: int) -> Iterator[Record]:
    if job in ("k", "m"):
        return _counted(records, keys)
    if job in ("a", "b", "c"):
        return _numbers(records, keys)
    return _timed_numbers(records, keys, sessions=job == "f")


def _fill(job: str, records: int, keys: int, partitions: int) -> None:
    from confluent_kafka import Producer

    source, target = new_topics(partitions)
    producer = Producer({"bootstrap.servers": os.environ[BOOTSTRAP], "linger.ms": 20})
    written = [0] * partitions
    for key, value, moment, shard in _records_of(job, records, keys):
        partition = shard % partitions
        written[partition] += 1
        while True:
            try:
                producer.produce(source, value, key=str(key), partition=partition, timestamp=moment)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()
    print(source, target, min(written))


def committed_values(topic: str) -> list[str]:
    """What a reader of committed records finds from the beginning to the end."""
    import confluent_kafka as package

    consumer = new_reader()
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([package.TopicPartition(topic, number, 0) for number in partitions])
    found: list[str] = []
    unfinished = set(partitions)
    while unfinished:
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                found.append(message.value().decode())
            elif message.error().code() == package.KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise RuntimeError(message.error())
    consumer.close()
    return found


def new_reader() -> Any:
    """A consumer of committed records."""
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": os.environ[BOOTSTRAP],
            "group.id": "benchmarks",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def measure_latency(
    load: KafkaLoad,
    directory: Path,
    *,
    rate: int,
    seconds: float,
    keys: int,
    partitions: int,
    is_running: Callable[[], bool],
) -> None:
    """Send at a steady rate and write down `sent_ns arrived_ns` of every answer as a reader sees it."""
    import threading

    import confluent_kafka as package

    done = threading.Event()

    def read() -> None:
        reader = new_reader()
        reader.assign([package.TopicPartition(load.target, number, 0) for number in range(partitions)])
        with (directory / "samples-reader.txt").open("w") as file:
            while not done.is_set():
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    sent = message.value().decode().rpartition(",")[2]
                    file.write(f"{sent} {time.time_ns()}\n")
        reader.close()

    reading = threading.Thread(target=read)
    reading.start()
    try:
        producer = package.Producer({"bootstrap.servers": load.bootstrap_servers, "linger.ms": 0})
        start = time.perf_counter()
        for n in range(int(rate * seconds)):
            wait = start + n / rate - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            key = n * _SCATTER % keys
            producer.produce(load.source, f"{key},{time.time_ns()}", key=str(key), partition=key % partitions)
            producer.poll(0)
            if n % rate == 0 and not is_running():
                break
        producer.flush()
        time.sleep(5)  # the last answers
    finally:  # an interrupt must not leave the reader behind, which would keep the process alive
        done.set()
        reading.join()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("fill", "digest"))
    parser.add_argument("--records", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--topic")
    parser.add_argument("--job", default="k")
    parser.add_argument("--parse", action="store_true")
    args = parser.parse_args()
    if args.what == "fill":
        _fill(args.job, args.records, args.keys, args.partitions)
    else:
        values = committed_values(args.topic)
        print(json.dumps(digest(map(ast.literal_eval, values) if args.parse else values)))


if __name__ == "__main__":
    main()
