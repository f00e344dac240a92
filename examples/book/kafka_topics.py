"""Kafka topics as source and as sink (ch. 8). A broker is started for it, unless KAFKA names one; that needs Maven."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any

from showcase import Showcase

from penstock.common import SimpleStringSchema
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetsInitializer,
    Semantic,
)

book = Showcase(__doc__)

READINGS = ["sensor_1,68.5", "sensor_2,71.0", "sensor_1,69.0", "sensor_3,74.5"]


def readings_from_kafka(env: StreamExecutionEnvironment, servers: str, topic: str) -> DataStream:
    """8-1: all partitions of a topic, each in its order, from the earliest message to the latest there is now."""
    properties = {"bootstrap.servers": servers, "group.id": "examples"}
    consumer = FlinkKafkaConsumer(topic, SimpleStringSchema(), properties)
    consumer.set_start_from_earliest()
    consumer.set_bounded(KafkaOffsetsInitializer.latest())
    lines = env.add_source(consumer, "readings")
    return lines.map(lambda line: (line.split(",")[0], float(line.split(",")[1])))


def celsius_to_kafka(stream: DataStream, servers: str, topic: str) -> None:
    """8-2: one message a record; with transactions, so that readers with `read_committed` see each once."""
    producer = FlinkKafkaProducer(
        topic, SimpleStringSchema(), {"bootstrap.servers": servers}, semantic=Semantic.EXACTLY_ONCE
    )
    producer.set_transactional_id_prefix("celsius")
    stream.map(lambda one: f"{one[0]} {(one[1] - 32) * 5 / 9:.1f} °C").add_sink(producer)


def servers_of_broker() -> str:
    """The address of a broker that has the readings."""
    from confluent_kafka import Producer

    servers = os.environ.get("KAFKA")
    if servers is None:
        from penstock.testing.kafka_broker import KafkaBroker

        broker = KafkaBroker().__enter__()
        atexit.register(broker.__exit__, None, None, None)
        broker.create_topic("fahrenheit", partitions=2)
        broker.create_topic("celsius")
        servers = broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    for line in READINGS:
        producer.produce("fahrenheit", line, key=line.split(",")[0])
    producer.flush(30)
    return servers


def messages(servers: str, topic: str, count: int) -> list[str]:
    """The first messages a reader sees that waits for the ends of transactions."""
    from confluent_kafka import Consumer

    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "group.id": "look"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe([topic])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
    consumer.close()
    return sorted(found)


@book.example("8-2", "From Kafka to Kafka", own_job=True)
def kafka_to_kafka(env: StreamExecutionEnvironment) -> dict[str, DataStream | Callable[[], list[Any]]]:
    """8-1, a consumer, and 8-2, a producer: °F in one topic, °C in another, exactly once.

    Kafka's own consumer groups play no part in that: where to go on is in the checkpoint.
    """
    servers = servers_of_broker()
    readings = readings_from_kafka(env, servers, "fahrenheit")
    celsius_to_kafka(readings, servers, "celsius")
    return {"read": readings, "written": lambda: messages(servers, "celsius", len(READINGS))}


if __name__ == "__main__":
    raise SystemExit(book.main())
