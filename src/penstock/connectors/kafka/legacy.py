"""The legacy connectors: ``add_source(FlinkKafkaConsumer(...))`` and ``add_sink(FlinkKafkaProducer(...))``.

They are the new source and sink, with the defaults of the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from penstock.connectors.kafka.enumerator import Subscription
from penstock.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.connectors.kafka.serialization import (
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaSinkContext,
    ProducerRecord,
)
from penstock.connectors.kafka.sink import KafkaSink
from penstock.connectors.kafka.source import KafkaSource
from penstock.core.sink import Committer, DeliveryGuarantee
from penstock.core.source import Boundedness

__all__ = [
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "Semantic",
]

_OLD_INTERVAL = "flink.partition-discovery.interval-millis"
_INTERVAL = "partition.discovery.interval.ms"
_COMMITS = "commit.offsets.on.checkpoint"


class Semantic(Enum):
    """The delivery guarantee of a producer."""

    NONE = 0
    AT_LEAST_ONCE = 1
    EXACTLY_ONCE = 2


class FlinkKafkaConsumer(KafkaSource):
    """Reads topics, by default from the offsets of the consumer group.

    New partitions are discovered only if you set ``flink.partition-discovery.interval-millis``.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if not names or "bootstrap.servers" not in properties:
            raise InvalidProgramError("a FlinkKafkaConsumer needs topics, and the property bootstrap.servers")
        known = {key: str(value) for key, value in properties.items() if key != _OLD_INTERVAL}
        known.setdefault(_INTERVAL, str(properties.get(_OLD_INTERVAL, -1)))
        self.configure(
            known,
            Subscription(topics=names),
            _group_offsets(known),
            None,
            Boundedness.CONTINUOUS_UNBOUNDED,
            KafkaRecordDeserializationSchema.value_only(deserialization_schema),
        )
        self._keep_restored = False

    def set_start_from_group_offsets(self) -> Self:
        """Start at the group's offsets, or at ``auto.offset.reset`` if there are none. The default."""
        self._starting = _group_offsets(self._properties)
        return self

    def set_start_from_earliest(self) -> Self:
        """Start at the earliest record."""
        self._starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> Self:
        """Start at the end: read new records only."""
        self._starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> Self:
        """Start at the first records with this timestamp or a later one."""
        self._starting = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        return self

    def set_start_from_specific_offsets(self, offsets: Mapping[KafkaTopicPartition, int]) -> Self:
        """Start at these offsets; other partitions start at ``auto.offset.reset``."""
        self._starting = KafkaOffsetsInitializer.offsets(offsets, _reset_strategy(self._properties))
        return self

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> Self:
        """Set whether to commit offsets to the consumer group."""
        self._properties[_COMMITS] = str(commit_on_checkpoints).lower()
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> Self:
        """Keep reading partitions of the checkpoint whose topics are no longer subscribed."""
        self._keep_restored = True
        return self


def _group_offsets(properties: Mapping[str, str]) -> KafkaOffsetsInitializer:
    reset = _reset_strategy(properties)
    if "group.id" in properties:
        return KafkaOffsetsInitializer.committed_offsets(reset)
    earliest = reset is KafkaOffsetResetStrategy.EARLIEST
    return KafkaOffsetsInitializer.earliest() if earliest else KafkaOffsetsInitializer.latest()


def _reset_strategy(properties: Mapping[str, str]) -> KafkaOffsetResetStrategy:
    """Return the reset strategy. Kafka's own default is the end."""
    try:
        return KafkaOffsetResetStrategy[properties.get("auto.offset.reset", "latest").upper()]
    except KeyError:
        raise InvalidProgramError(
            f"auto.offset.reset must be earliest, latest or none, not {properties['auto.offset.reset']!r}"
        ) from None


class FlinkKafkaProducer(KafkaSink):
    """Writes to a topic. By default each task writes to one partition; with None, Kafka's partitioner decides."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
        partitioner: FlinkKafkaPartitioner | None = FlinkFixedPartitioner(),  # noqa: B008 - copied before it is used
    ) -> None:
        if "bootstrap.servers" not in producer_config:
            raise InvalidProgramError("a FlinkKafkaProducer needs the property bootstrap.servers")
        if not isinstance(semantic, Semantic):
            raise InvalidProgramError(f"expected a Semantic, got {shorten(semantic)}")
        builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
        builder.set_value_serialization_schema(serialization_schema)
        if partitioner is not None:
            builder.set_partitioner(partitioner)
        self._schema = _OldSchema(builder.build())
        properties = {key: str(value) for key, value in producer_config.items()}
        prefix = properties.pop("transactional.id", None)
        self.configure(properties, self._schema, DeliveryGuarantee[semantic.name], prefix)

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Set the name of the sink's transactions. Required for exactly-once."""
        self._transactional_id_prefix = transactional_id_prefix
        return self

    def set_log_failures_only(self, log_failures_only: bool) -> Self:
        """Set whether to log failed deliveries and lose the records, instead of failing the job."""
        self._only_log_failures = log_failures_only
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> Self:
        """Set whether batches wait for acknowledgements. If they do not, at-least-once is not guaranteed."""
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE if flush_on_checkpoint else DeliveryGuarantee.NONE
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> Self:
        """Set whether to write the event timestamp. By default, Kafka uses the time of writing."""
        self._schema.write_timestamps = write_timestamp_to_kafka
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Accepted without effect: here, a transaction that times out is written again."""
        return self

    def create_committer(self) -> Committer | None:
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self._transactional_id_prefix:
            raise InvalidProgramError(
                "an exactly-once FlinkKafkaProducer needs set_transactional_id_prefix(): a name that no other sink "
                "has, and that stays the same when the program is started again"
            )
        return super().create_committer()


class _OldSchema(KafkaRecordSerializationSchema):
    """Lets Kafka set the timestamp by default."""

    def __init__(self, schema: KafkaRecordSerializationSchema) -> None:
        self._schema = schema
        self.write_timestamps = False

    def open(self, context: KafkaSinkContext) -> None:
        self._schema.open(context)

    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> ProducerRecord | None:
        return self._schema.serialize(element, context, timestamp if self.write_timestamps else None)


# PyFlink defines the methods in base classes.
FlinkKafkaConsumerBase = FlinkKafkaConsumer
FlinkKafkaProducerBase = FlinkKafkaProducer
