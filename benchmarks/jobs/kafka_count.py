"""(k), (m) Kafka -> count by key -> Kafka, exactly once: every record is answered with how often its key was seen.

(m1) is (m), delivered at least once. A record is `key,moment sent`; the answer is `key,count,moment sent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import SimpleStringSchema, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.kafka import KafkaLoad
    from penstock.datastream import StreamExecutionEnvironment


class Count(KeyedProcessFunction):
    """Emits `key,count,moment sent` for every record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[str, str], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        """Count one record."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value[0]},{count},{value[1]}"


def parse(line: str) -> tuple[str, str]:
    """`key,moment sent`."""
    key, _, sent = line.partition(",")
    return key, sent


def build(env: StreamExecutionEnvironment, load: KafkaLoad) -> None:
    """The whole job, its sink included."""
    _build(env, load, DeliveryGuarantee.EXACTLY_ONCE)


def build_at_least_once(env: StreamExecutionEnvironment, load: KafkaLoad) -> None:
    """The same without transactions: answers are visible before the checkpoint."""
    _build(env, load, DeliveryGuarantee.AT_LEAST_ONCE)


def _build(env: StreamExecutionEnvironment, load: KafkaLoad, guarantee: DeliveryGuarantee) -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(load.bootstrap_servers)
        .set_topics(load.source)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
    )
    if load.bounded:
        source.set_bounded(KafkaOffsetsInitializer.latest())
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(load.target)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(load.bootstrap_servers)
        .set_record_serializer(schema)
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(load.target)
        .set_property("transaction.timeout.ms", "600000")
        .build()
    )
    (
        env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "records")
        .map(parse, output_type=Types.TUPLE([Types.STRING(), Types.STRING()]))
        .key_by(lambda record: record[0], key_type=Types.STRING())
        .process(Count(), output_type=Types.STRING())
        .sink_to(sink)
    )
