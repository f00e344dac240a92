"""Kafka to Kafka, exactly once: the hottest reading of each sensor in every second.

    python examples/kafka_windows.py                                      # with a broker of its own (needs Maven)
    python examples/kafka_windows.py --bootstrap-servers localhost:9092   # topics "readings" and "hottest" must exist

Kill it with kill -9 and start it again with the same --checkpoints: the topic "hottest", read with
isolation.level=read_committed, has every result once.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.common import Duration, SimpleStringSchema, Time, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import (
    ConsumerRecord,
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import TumblingEventTimeWindows

MAX_DELAY = Duration.of_millis(500)


class Hottest(ProcessWindowFunction):
    """The hottest reading of a window, as JSON."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Any) -> list[str]:
        hottest = max(temperature for _, temperature in elements)
        return [json.dumps({"sensor": key, "until": context.window().end, "hottest": hottest})]


def parse(record: ConsumerRecord) -> tuple[str, float]:
    """The sensor is the record's key, the temperature its value; the time is Kafka's."""
    assert record.key is not None
    assert record.value is not None
    return record.key.decode(), float(record.value)


def readings(bootstrap_servers: str) -> KafkaSourceBuilder:
    """The source, but for where it ends."""
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(bootstrap_servers)
        .set_topics("readings")
        .set_group_id("kafka-windows")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_deserializer(KafkaRecordDeserializationSchema.of(parse))
    )


def hottest(env: StreamExecutionEnvironment, source: KafkaSource) -> DataStream:
    """The job: a window per sensor and second.

    Each partition has its own watermark. A silent partition does not hold back the others.
    """
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(MAX_DELAY).with_idleness(Duration.of_seconds(2))
    return (
        env.from_source(source, strategy, "readings")
        .uid("readings")
        .key_by(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Hottest())
        .uid("hottest")
    )


def results(bootstrap_servers: str) -> KafkaSink:
    """The sink: results become visible with the checkpoint they belong to."""
    schema = KafkaRecordSerializationSchema.builder().set_topic("hottest")
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(bootstrap_servers)
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("kafka-windows")
        .build()
    )


def send_readings(bootstrap_servers: str, stop: threading.Event) -> None:
    """Five sensors, ten readings a second each."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers})
    while not stop.wait(0.1):
        for sensor in range(5):
            producer.produce("readings", f"{random.gauss(20, 5):.1f}", key=f"sensor_{sensor}")
        producer.poll(0)


def show_results(bootstrap_servers: str, stop: threading.Event) -> None:
    """Print what becomes visible."""
    from confluent_kafka import Consumer

    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "show", **settings})
    consumer.subscribe(["hottest"])
    while not stop.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            print(message.value().decode(), flush=True)
    consumer.close()


def main() -> None:
    """Run the job, with a producer that sends and a consumer that prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-servers", help="a Kafka that is there; without it, one is started")
    parser.add_argument("--checkpoints", type=Path, help="directory for checkpoints (default: a temporary one)")
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    with ExitStack() as stack:
        bootstrap_servers = args.bootstrap_servers
        if bootstrap_servers is None:
            from penstock.testing.kafka_broker import KafkaBroker

            broker = stack.enter_context(KafkaBroker())
            broker.create_topic("readings", partitions=3)
            broker.create_topic("hottest")
            bootstrap_servers = broker.bootstrap_servers
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        checkpoints = args.checkpoints or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env.get_checkpoint_config().set_checkpoint_storage(checkpoints.resolve().as_uri())
        hottest(env, readings(bootstrap_servers).build()).sink_to(results(bootstrap_servers)).uid("results")
        stop = threading.Event()
        threads = [
            threading.Thread(target=run, args=(bootstrap_servers, stop)) for run in (send_readings, show_results)
        ]
        for thread in threads:
            thread.start()
        try:
            client = env.execute_async("hottest reading per second")
            time.sleep(args.seconds)
            client.cancel().result()
        finally:
            stop.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    main()
