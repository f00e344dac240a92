"""The Kafka job as a Bytewax dataflow; `python -m bytewax.testing benchmarks.systems.bytewax_count` runs it.

Bytewax has no transactions with Kafka: at least once is the most it offers.
"""

from __future__ import annotations

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow


def parse(message: object) -> tuple[str, str]:
    """`key,moment sent`."""
    key, _, sent = message.value.decode().partition(",")  # type: ignore[attr-defined]
    return key, sent


def count(seen: int | None, sent: str) -> tuple[int, tuple[int, str]]:
    """One more."""
    now = (seen or 0) + 1
    return now, (now, sent)


def answer(record: tuple[str, tuple[int, str]]) -> KafkaSinkMessage[None, bytes]:
    """`key,count,moment sent`."""
    key, (seen, sent) = record
    return KafkaSinkMessage(None, f"{key},{seen},{sent}".encode())


_brokers = [os.environ["BENCH_KAFKA"]]
_source, _target = os.environ["BENCH_TOPICS"].split(",")

flow = Dataflow("count")
_records = kafka.input(
    "records", flow, brokers=_brokers, topics=[_source], tail=os.environ["BENCH_TAIL"] == "1", batch_size=5_000
)
_keyed = op.map("parse", _records.oks, parse)
_counts = op.stateful_map("count", _keyed, count)
kafka.output("answers", op.map("answer", _counts, answer), brokers=_brokers, topic=_target)
