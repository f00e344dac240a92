"""A program to be killed: Kafka -> count by key -> Kafka, exactly once.

python kafka_counting_job.py CHECKPOINT_DIRECTORY BOOTSTRAP_SERVERS SOURCE_TOPIC TARGET_TOPIC
"""

import sys
from pathlib import Path

from penstock.common import Configuration, SimpleStringSchema, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.state import ValueStateDescriptor

KEYS = 7
BATCH = 60


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield f"{ctx.get_current_key()} {self.count.value()}"


def main(checkpoint, bootstrap_servers, source_topic, target_topic):
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
        .set_transactional_id_prefix(f"count-{target_topic}")
        .build()
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    numbers.key_by(lambda n: int(n) % KEYS).process(Count()).uid("count").sink_to(sink).uid("kafka")
    env.execute("count")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
