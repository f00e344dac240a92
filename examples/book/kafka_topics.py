"""Kafka topics as source and as sink (ch. 8). A broker is started for it, unless KAFKA names one; that needs Maven."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any

from showcase import Showcase

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

book = Showcase(__doc__)

READINGS = ["sensor_1,68.5", "sensor_2,71.0", "sensor_1,69.0", "sensor_3,74.5"]


def readings_from_kafka(env: StreamExecutionEnvironment, servers: str, topic: str) -> DataStream:
    """8-1: all partitions of a topic, each in its order, from the earliest message to the latest there is now."""
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id("examples")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())  # without it the job goes on forever
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings")
    return lines.map(lambda line: (line.split(",")[0], float(line.split(",")[1])))


def celsius_to_kafka(stream: DataStream, servers: str, topic: str) -> None:
    """8-2: one message a record; with transactions, so that readers with `read_committed` see each once."""
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("celsius")
        .build()
    )
    stream.map(lambda one: f"{one[0]} {(one[1] - 32) * 5 / 9:.1f} °C").sink_to(sink)


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
    """8-1, a source, and 8-2, a sink: °F in one topic, °C in another, exactly once.

    Kafka's own consumer groups play no part in that: where to go on is in the checkpoint.
    """
    servers = servers_of_broker()
    readings = readings_from_kafka(env, servers, "fahrenheit")
    celsius_to_kafka(readings, servers, "celsius")
    return {"read": readings, "written": lambda: messages(servers, "celsius", len(READINGS))}


if __name__ == "__main__":
    raise SystemExit(book.main())
