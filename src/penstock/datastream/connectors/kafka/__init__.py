"""Kafka, through confluent-kafka: ``pip install 'penstock[kafka]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.sink import DeliveryGuarantee
from penstock.datastream.connectors.kafka.client import KafkaError
from penstock.datastream.connectors.kafka.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from penstock.datastream.connectors.kafka.legacy import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    Semantic,
)
from penstock.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.kafka.serialization import (
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkContext,
    KafkaTopicSelector,
    ProducerRecord,
)
from penstock.datastream.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from penstock.datastream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from penstock.datastream.pyflink_imports import imported_names

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


if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
