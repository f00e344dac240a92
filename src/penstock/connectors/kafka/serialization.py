"""Converts the stream's records to Kafka's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import SerializationSchema, SimpleStringSchema
from penstock.connectors.kafka.client import KafkaError
from penstock.runtime.operators.user_errors import user_traceback

__all__ = [
    "FlinkFixedPartitioner",
    "FlinkKafkaPartitioner",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSinkContext",
    "KafkaTopicSelector",
    "ProducerRecord",
]

Headers = Mapping[str, bytes] | Sequence[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple):
    """A record for Kafka. Without a partition, the key decides. Without a timestamp, it is the current time."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None


@dataclass(slots=True)
class RecordChunk:
    """Records for Kafka as columns. A column is None if it has no values. It holds many records, so it pickles fast."""

    topics: str | list[str]
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    timestamps: list[int | None] | None = None
    partitions: list[int | None] | None = None
    headers: list[Headers | None] | None = None


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic's name."""


class FlinkKafkaPartitioner(ABC):
    """Chooses the partition of a record."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        """Return one of the partitions."""


class FlinkFixedPartitioner(FlinkKafkaPartitioner):
    """Each task of the sink writes to one partition. If there are fewer tasks than partitions, some stay empty.

    >>> partitioner = FlinkFixedPartitioner()
    >>> partitioner.open(5, 8)
    >>> partitioner.partition("record", None, b"record", "topic", [0, 1, 2])
    2
    """

    _task = 0

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        self._task = parallel_instance_id

    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        return partitions[self._task % len(partitions)]


@dataclass(slots=True)
class KafkaSinkContext:
    """The context of a serializer: the task in which it runs."""

    parallel_instance_id: int
    number_of_parallel_instances: int
    partitions_for_topic: Callable[[str], Sequence[int]]
    """The current partitions of a topic."""


class KafkaRecordSerializationSchema(ABC):
    """Converts a record of the stream to a Kafka record: use :meth:`builder`, or define :meth:`serialize`.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("averages")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema.serialize("sensor_1: 20.5", KafkaSinkContext(0, 1, lambda topic: [0]), 1000)
    ProducerRecord(topic='averages', value=b'sensor_1: 20.5', key=None, partition=None, timestamp=1000, headers=None)
    """

    def open(self, context: KafkaSinkContext) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> ProducerRecord | None:
        """Return Kafka's record, or ``None`` to skip the element."""

    def serialize_batch(
        self, elements: Sequence[Any], timestamps: Sequence[int | None] | None, context: KafkaSinkContext
    ) -> RecordChunk:
        """Serialize many records."""
        stamps = timestamps if timestamps is not None else [None] * len(elements)
        records: list[ProducerRecord] = []
        for element, timestamp in zip(elements, stamps, strict=True):
            try:
                record = self.serialize(element, context, timestamp)
            except Exception as error:
                raise serialization_error(element, error) from None
            if record is not None:
                records.append(record)
        return _columns(records)

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Create a builder."""
        return KafkaRecordSerializationSchemaBuilder()


def _columns(records: list[ProducerRecord]) -> RecordChunk:
    def column(name: str) -> list[Any] | None:
        found = [getattr(record, name) for record in records]
        return found if any(value is not None for value in found) else None

    return RecordChunk(
        [record.topic for record in records],
        [record.value for record in records],
        column("key"),
        column("timestamp"),
        column("partition"),
        column("headers"),
    )


class KafkaRecordSerializationSchemaBuilder:
    """Collects the topic, key, value, partition and headers of records.

    The timestamp written to Kafka is the record's event timestamp, if it has one.
    """

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None
        self._partitioner: FlinkKafkaPartitioner | None = None
        self._headers: Callable[[Any], Headers | None] | None = None

    def build(self) -> KafkaRecordSerializationSchema:
        """Build the schema, or raise an error that names missing settings."""
        if self._topic is None:
            raise InvalidProgramError("a Kafka serialization schema needs set_topic() or set_topic_selector()")
        if self._value is None:
            raise InvalidProgramError("a Kafka serialization schema needs set_value_serialization_schema()")
        return _BuiltSchema(self._topic, self._key, self._value, self._partitioner, self._headers)

    def set_topic(self, topic: str) -> Self:
        """Write all records to this topic."""
        if not topic:
            raise InvalidProgramError(f"set_topic() takes the name of a topic, got {topic!r}")
        return self._set_topic(topic)

    def set_topic_selector(self, topic_selector: KafkaTopicSelector | Callable[[Any], str]) -> Self:
        """Set the function that selects the topic of each record."""
        if isinstance(topic_selector, KafkaTopicSelector):
            return self._set_topic(topic_selector.apply)
        return self._set_topic(_function(topic_selector, "set_topic_selector() takes a KafkaTopicSelector"))

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> Self:
        """Set the schema of the key. Records with the same key go to the same partition."""
        self._key = _schema(key_serialization_schema)
        return self

    def set_value_serialization_schema(self, value_serialization_schema: SerializationSchema) -> Self:
        """Set the schema of the value."""
        self._value = _schema(value_serialization_schema)
        return self

    def set_partitioner(self, partitioner: FlinkKafkaPartitioner) -> Self:
        """Set the partitioner. Without one, Kafka uses the hash of the key, and distributes records without a key."""
        if not isinstance(partitioner, FlinkKafkaPartitioner):
            raise InvalidProgramError(f"set_partitioner() takes a FlinkKafkaPartitioner, got {shorten(partitioner)}")
        self._partitioner = partitioner
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers | None]) -> Self:
        """Set the function that returns the headers: a dict, or a list of (name, bytes)."""
        self._headers = _function(header_provider, "set_header_provider() takes a function of the record")
        return self

    def _set_topic(self, topic: str | Callable[[Any], str]) -> Self:
        if self._topic is not None:
            raise InvalidProgramError("a Kafka serialization schema takes one topic or one topic selector")
        self._topic = topic
        return self


def _schema(schema: Any) -> SerializationSchema:
    if not isinstance(schema, SerializationSchema):
        raise InvalidProgramError(f"expected a SerializationSchema, got {shorten(schema)}")
    return schema


def _function(function: Any, label: str) -> Any:
    if not callable(function):
        raise InvalidProgramError(f"{label}, got {shorten(function)}")
    return function


class _BuiltSchema(KafkaRecordSerializationSchema):
    def __init__(
        self,
        topic: str | Callable[[Any], str],
        key: SerializationSchema | None,
        value: SerializationSchema,
        partitioner: FlinkKafkaPartitioner | None,
        headers: Callable[[Any], Headers | None] | None,
    ) -> None:
        self._topic = topic
        self._key = key
        self._value = value
        self._partitioner = partitioner
        self._headers = headers

    def open(self, context: KafkaSinkContext) -> None:
        for schema in (self._key, self._value):
            if schema is not None:
                schema.open()
        if self._partitioner is not None:
            self._partitioner.open(context.parallel_instance_id, context.number_of_parallel_instances)

    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> ProducerRecord:
        topic = self._topic if isinstance(self._topic, str) else self._topic(element)
        key = None if self._key is None else self._key.serialize(element)
        value = self._value.serialize(element)
        partition = None
        if self._partitioner is not None:
            partitions = context.partitions_for_topic(topic)
            partition = self._partitioner.partition(element, key, value, topic, partitions)
        headers = None if self._headers is None else self._headers(element)
        return ProducerRecord(topic, value, key, partition, timestamp, headers)

    def serialize_batch(
        self, elements: Sequence[Any], timestamps: Sequence[int | None] | None, context: KafkaSinkContext
    ) -> RecordChunk:
        if self._partitioner is not None or self._headers is not None or not isinstance(self._topic, str):
            return super().serialize_batch(elements, timestamps, context)
        try:  # one topic, key and value: the common case, column by column
            values = _serialize_all(self._value, elements)
            keys = None if self._key is None else _serialize_all(self._key, elements)
        except Exception:
            return super().serialize_batch(elements, timestamps, context)  # finds the broken record
        return RecordChunk(self._topic, values, keys, None if timestamps is None else list(timestamps))


def _serialize_all(schema: SerializationSchema, elements: Sequence[Any]) -> list[bytes | None]:
    if type(schema) is SimpleStringSchema:
        charset = schema.charset
        return [str(element).encode(charset) for element in elements]
    return list(map(schema.serialize, elements))


def serialization_error(element: Any, error: Exception) -> KafkaError:
    """Return the error for a record that cannot be written."""
    return KafkaError(
        f"record {shorten(element)} cannot be serialized for Kafka: {type(error).__name__}: {error}\n"
        f"{user_traceback(error)}"
    )
