"""Kafka, through confluent-kafka: ``pip install 'penstock[kafka]'``."""

from __future__ import annotations

from penstock.datastream.connectors.kafka.client import KafkaError
from penstock.datastream.connectors.kafka.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from penstock.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "ConsumerRecord",
    "KafkaError",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordDeserializationSchema",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
]
