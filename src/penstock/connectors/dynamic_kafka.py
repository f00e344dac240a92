"""Kafka sources by stream id: a metadata service maps a stream to topics of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
)

__all__ = [
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]


class KafkaMetadataService:
    """Locates streams. There is one implementation: :class:`SingleClusterTopicMetadataService`."""


class SingleClusterTopicMetadataService(KafkaMetadataService):
    """Maps each stream to the topic of the same name in one cluster.

    :param properties: of the cluster: ``bootstrap.servers``, and other settings of the connection
    :param starting_offsets_initializer: where to start in this cluster; overrides the source's
    :param stopping_offsets_initializer: where to stop in this cluster; overrides the source's
    """

    def __init__(
        self,
        kafka_cluster_id: str,
        properties: Mapping[str, str],
        starting_offsets_initializer: KafkaOffsetsInitializer | None = None,
        stopping_offsets_initializer: KafkaOffsetsInitializer | None = None,
    ) -> None:
        if "bootstrap.servers" not in properties:
            raise InvalidProgramError(f"the properties of the cluster {kafka_cluster_id!r} need bootstrap.servers")
        self.kafka_cluster_id = kafka_cluster_id
        self.properties = dict(properties)
        self.starting_offsets_initializer = starting_offsets_initializer
        self.stopping_offsets_initializer = stopping_offsets_initializer


class KafkaStreamSubscriber:
    """Selects the streams to read."""

    def subscribe(self, builder: KafkaSourceBuilder) -> None:
        """Subscribe the source to the streams."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} is not a subscriber: use KafkaStreamSetSubscriber or StreamPatternSubscriber"
        )


class KafkaStreamSetSubscriber(KafkaStreamSubscriber):
    """Selects streams by their ids."""

    def __init__(self, stream_ids: Iterable[str]) -> None:
        if isinstance(stream_ids, str):
            raise InvalidProgramError(f"stream ids must be a set, got the string {stream_ids!r}")
        self.stream_ids = sorted(set(stream_ids))

    def subscribe(self, builder: KafkaSourceBuilder) -> None:
        builder.set_topics(*self.stream_ids)


class StreamPatternSubscriber(KafkaStreamSubscriber):
    """Selects streams whose whole id matches a regular expression, including those created later."""

    def __init__(self, stream_pattern: str) -> None:
        self.stream_pattern = stream_pattern

    def subscribe(self, builder: KafkaSourceBuilder) -> None:
        builder.set_topic_pattern(self.stream_pattern)


class DynamicKafkaSource(KafkaSource):
    """Reads streams of Kafka. Topics and partitions that are added while the job runs are discovered.

    >>> from penstock.common import SimpleStringSchema
    >>> service = SingleClusterTopicMetadataService("main", {"bootstrap.servers": "localhost:9092"})
    >>> builder = DynamicKafkaSource.builder().set_stream_ids({"readings"}).set_kafka_metadata_service(service)
    >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    >>> source.is_bounded
    False
    """

    @staticmethod
    def builder() -> DynamicKafkaSourceBuilder:  # type: ignore[override]
        """Create a builder."""
        return DynamicKafkaSourceBuilder()


class DynamicKafkaSourceBuilder:
    """Builds a :class:`DynamicKafkaSource`."""

    def __init__(self) -> None:
        self._builder = KafkaSourceBuilder()
        self._service: SingleClusterTopicMetadataService | None = None
        self._subscriber: KafkaStreamSubscriber | None = None
        self._properties: dict[str, str] = {}

    def build(self) -> DynamicKafkaSource:
        """Build the source, or raise an error that names missing settings."""
        if self._service is None:
            raise InvalidProgramError("a dynamic Kafka source needs set_kafka_metadata_service()")
        if self._subscriber is None:
            raise InvalidProgramError(
                "a dynamic Kafka source needs set_stream_ids(), set_stream_pattern() or set_kafka_stream_subscriber()"
            )
        self._builder.set_properties({**self._properties, **self._service.properties})  # the cluster's own win
        self._subscriber.subscribe(self._builder)
        start, stop = self._service.starting_offsets_initializer, self._service.stopping_offsets_initializer
        if start is not None:  # the cluster's own take precedence over the source's, as in Flink
            self._builder.set_starting_offsets(start)
        if stop is not None:
            self._builder.set_bounded(stop)
        plain = self._builder.build()
        source = DynamicKafkaSource.__new__(DynamicKafkaSource)
        source.__dict__.update(plain.__dict__)
        return source

    def set_kafka_metadata_service(self, kafka_metadata_service: KafkaMetadataService) -> Self:
        """Set the service that locates the streams."""
        if not isinstance(kafka_metadata_service, SingleClusterTopicMetadataService):
            raise UnsupportedFeatureError(
                f"{shorten(kafka_metadata_service)} is not supported as a metadata service: use "
                "SingleClusterTopicMetadataService; for streams in several clusters, union a source for each"
            )
        self._service = kafka_metadata_service
        return self

    def set_stream_ids(self, stream_ids: Iterable[str]) -> Self:
        """Read the streams with these ids."""
        return self.set_kafka_stream_subscriber(KafkaStreamSetSubscriber(stream_ids))

    def set_stream_pattern(self, stream_pattern: str) -> Self:
        """Read the streams whose whole id matches a regular expression."""
        return self.set_kafka_stream_subscriber(StreamPatternSubscriber(stream_pattern))

    def set_kafka_stream_subscriber(self, kafka_stream_subscriber: KafkaStreamSubscriber) -> Self:
        """Set the subscriber that selects the streams."""
        if not isinstance(kafka_stream_subscriber, KafkaStreamSubscriber):
            raise InvalidProgramError(f"expected a KafkaStreamSubscriber, got {shorten(kafka_stream_subscriber)}")
        if self._subscriber is not None:
            raise InvalidProgramError("a dynamic Kafka source takes one of ids, pattern and subscriber, only once")
        self._subscriber = kafka_stream_subscriber
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where a job without a checkpoint starts. The default is the earliest record."""
        self._builder.set_starting_offsets(starting_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where the source stops, which makes it bounded."""
        self._builder.set_bounded(stopping_offsets_initializer)
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> Self:
        """Deserialize only the values, with a schema."""
        self._builder.set_value_only_deserializer(deserialization_schema)
        return self

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> Self:
        """Set the deserializer of whole records: key, value, headers, timestamp and offset."""
        self._builder.set_deserializer(record_deserializer)
        return self

    def set_group_id(self, group_id: str) -> Self:
        """Set the consumer group to which offsets are committed."""
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Set the prefix of the client id in the brokers' logs."""
        return self.set_property("client.id", prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the client for all clusters."""
        self._properties[key] = str(value)
        return self

    def set_properties(self, properties: Mapping[str, str]) -> Self:
        """Set several properties."""
        for key, value in properties.items():
            self.set_property(key, value)
        return self
