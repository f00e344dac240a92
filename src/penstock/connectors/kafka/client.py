"""The interface to confluent-kafka, which is imported on demand and configured with the names of Flink programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from penstock.common.errors import InvalidProgramError, PenstockError

LOG = logging.getLogger("penstock.kafka")

# Settings of the Java client with another name in librdkafka.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
}
# Settings of the Java client or of Flink without a meaning in librdkafka: classes to load, threads, buffers.
_WITHOUT_MEANING = {
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "max.poll.records",
    "buffer.memory",
    "max.block.ms",
    "register.consumer.metrics",
    "client.id.prefix",
    "commit.offsets.on.checkpoint",
    "partition.discovery.interval.ms",
}


class KafkaError(PenstockError):
    """An error of Kafka, described by the message."""


def confluent_kafka() -> Any:
    """Return the package, or raise an error that explains how to install it."""
    try:
        import confluent_kafka as package
        import confluent_kafka.admin
    except ImportError:
        raise PenstockError(
            "the Kafka connector needs the package confluent-kafka: pip install 'penstock[kafka]'"
        ) from None
    return package


def client_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Convert the user's properties to librdkafka's names.

    >>> client_settings({"fetch.max.wait.ms": "20", "max.poll.records": "500", "linger.ms": "5"})
    {'fetch.wait.max.ms': '20', 'linger.ms': '5'}
    """
    return {_RENAMED.get(name, name): value for name, value in properties.items() if name not in _WITHOUT_MEANING}


def new_consumer(settings: Mapping[str, Any]) -> Any:
    """Create a consumer. Wrong settings are the user's error."""
    package = confluent_kafka()
    try:
        return package.Consumer(dict(settings), logger=LOG)
    except package.KafkaException as error:
        raise InvalidProgramError(f"wrong property of a Kafka source: {reason(error)}") from None


def new_producer(settings: Mapping[str, Any]) -> Any:
    """Create a producer. Wrong settings are the user's error."""
    package = confluent_kafka()
    try:
        return package.Producer(dict(settings), logger=LOG)
    except package.KafkaException as error:
        raise InvalidProgramError(f"wrong property of a Kafka sink: {reason(error)}") from None


def new_admin(settings: Mapping[str, Any]) -> Any:
    """Create a client for requests about topics and offsets."""
    return confluent_kafka().admin.AdminClient(dict(settings), logger=LOG)


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the connection settings of a client, which are the only ones that an admin client accepts."""
    prefixes = ("bootstrap.", "security.", "ssl.", "sasl.", "socket.", "broker.address", "client.")
    return {name: value for name, value in settings.items() if name.startswith(prefixes)}


def reason(error: Any) -> str:
    """Return the message of a KafkaException on one line."""
    inner = error.args[0] if getattr(error, "args", None) else error
    text = inner.str() if hasattr(inner, "str") else str(inner)
    return " ".join(text.split())
