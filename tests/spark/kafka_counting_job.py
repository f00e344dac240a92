"""A program to be killed: Kafka -> count by key -> Kafka, exactly once.

python kafka_counting_job.py CHECKPOINT_DIRECTORY BOOTSTRAP_SERVERS SOURCE_TOPIC TARGET_TOPIC PREFIX [STEP FILE]

With a step of the transaction it stops behind that step of its second commit forever, and says so by making the file.
"""

import sys
import threading
from pathlib import Path

from penstock.common import Configuration, SimpleStringSchema, WatermarkStrategy
from penstock.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.connectors.kafka.committer import CheckpointTransaction
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

KEYS = 7
BATCH = 60


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield f"{ctx.get_current_key()} {self.count.value()}"


class Stopping:
    """A client that stops behind a step."""

    def __init__(self, client, step, file):
        self._client, self._step, self._file = client, step, file

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if name != self._step:
            return method

        def stop(*arguments):
            method(*arguments)
            Path(self._file).touch()
            threading.Event().wait()

        return stop


def stop_behind(step, file):
    original, commits = CheckpointTransaction.write, []

    def write(self, chunks, checkpoint_id):
        commits.append(checkpoint_id)
        if len(commits) == 2:
            self.producer.client = Stopping(self.producer.client, step, file)
        original(self, chunks, checkpoint_id)

    CheckpointTransaction.write = write


def main(checkpoint, bootstrap_servers, source_topic, target_topic, prefix, *stop):
    if stop:
        stop_behind(*stop)
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(bootstrap_servers)
        .set_topics(source_topic)
        .set_group_id(f"group-{source_topic}")
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic(target_topic)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(bootstrap_servers)
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(prefix)
        .set_property("transaction.timeout.ms", "900000")
        .build()
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    numbers.key_by(lambda n: int(n) % KEYS).process(Count()).uid("count").sink_to(sink).uid("kafka")
    env.execute("count")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
