"""The Kafka connector, based on confluent-kafka: ``pip install 'penstock[kafka]'``."""

from __future__ import annotations

from penstock.connectors.kafka.client import KafkaError
from penstock.connectors.kafka.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from penstock.connectors.kafka.legacy import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    Semantic,
)
from penstock.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.connectors.kafka.serialization import (
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkContext,
    KafkaTopicSelector,
    ProducerRecord,
)
from penstock.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from penstock.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from penstock.core.sink import DeliveryGuarantee

__all__ = [
    "ConsumerRecord",
    "DeliveryGuarantee",
    "FlinkFixedPartitioner",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaPartitioner",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "KafkaError",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSinkContext",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "ProducerRecord",
    "Semantic",
]
