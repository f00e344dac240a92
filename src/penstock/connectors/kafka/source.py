"""The Kafka source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Self, TypeVar, overload

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.common.time import Instant
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.kafka.client import client_settings
from penstock.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from penstock.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from penstock.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.connectors.kafka.reader import KafkaReader
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

__all__ = ["KafkaSource", "KafkaSourceBuilder"]

T = TypeVar("T")

Topics = str | Sequence[str] | re.Pattern[str]
Position = str | int | datetime | KafkaOffsetsInitializer

_DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
_DISCOVERY_DEFAULT_MS = 300_000
_COMMIT_OFFSETS = "commit.offsets.on.checkpoint"

_DEFAULTS = {
    "isolation.level": "read_uncommitted",  # as in the Java client
    "auto.offset.reset": "error",  # the user must decide what to do about a gap in the data
    "group.id": "penstock",  # required by the client; unused unless the user sets it
    "fetch.queue.backoff.ms": 10,  # otherwise the client checks a full queue only once per second
    # By default a broker may answer for each single record: at 1,000 records per second that took it half a core. It
    # takes longer than this from the plan of a batch to its reading, so this delays no records.
    "fetch.min.bytes": 65_536,
    "fetch.wait.max.ms": 20,
}
# Required by the reader.
_FIXED = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True}


class KafkaSource(Source[T], Generic[T]):
    """Reads topics of Kafka. Positions are part of the job's checkpoint.

    Each partition is a split with its own watermarks. The timestamp of a record is Kafka's unless the watermark
    strategy has an assigner.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("readings")
    ...     .set_group_id("averages")
    ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source.is_bounded
    False

    The constructor is equivalent to the builder.

    >>> from penstock.formats.records import Text
    >>> source = KafkaSource(servers="localhost:9092", topics="readings", group="averages", value=Text())
    """

    @overload
    def __init__(
        self,
        *,
        servers: str | Sequence[str],
        topics: Topics,
        value: DeserializationSchema[T],
        start: Position = "earliest",
        stop: Position | None = None,
        group: str | None = None,
        bounded: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: KafkaSource[Any],
        *,
        servers: str | Sequence[str],
        topics: Topics,
        record: KafkaRecordDeserializationSchema,
        start: Position = "earliest",
        stop: Position | None = None,
        group: str | None = None,
        bounded: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None: ...
    def __init__(
        self,
        *,
        servers: str | Sequence[str],
        topics: Topics,
        value: DeserializationSchema[Any] | None = None,
        record: KafkaRecordDeserializationSchema | None = None,
        start: Position = "earliest",
        stop: Position | None = None,
        group: str | None = None,
        bounded: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """:param servers: ``host:port`` of brokers
        :param topics: names of topics, or a compiled pattern for whole names
        :param value: the format of values, such as ``Json(Order)`` or any DeserializationSchema
        :param record: a schema for whole records, with key, headers and timestamp, instead of ``value``
        :param start: where a job without a checkpoint starts: "earliest", "latest", "committed" (by the group), a
            datetime, ms since the epoch, or a KafkaOffsetsInitializer
        :param stop: where the source stops, if it does
        :param group: the consumer group to which offsets are committed
        :param bounded: whether a source with a ``stop`` can be read by a batch job
        :param properties: properties of the client
        """
        builder = KafkaSourceBuilder().set_properties(properties or {})
        builder.set_bootstrap_servers(servers if isinstance(servers, str) else ",".join(servers))
        if isinstance(topics, re.Pattern):
            builder.set_topic_pattern(topics.pattern)
        else:
            builder.set_topics(*([topics] if isinstance(topics, str) else topics))
        if group is not None:
            builder.set_group_id(group)
        builder.set_starting_offsets(_position(start))
        if stop is not None:
            (builder.set_bounded if bounded else builder.set_unbounded)(_position(stop))
        if (value is None) is (record is None):
            raise InvalidProgramError("a Kafka source takes one of value=Json(...) and record=...")
        if value is not None:
            builder.set_value_only_deserializer(value)
        if record is not None:
            builder.set_deserializer(record)
        self.configure(*builder.settings())

    def configure(
        self,
        properties: Mapping[str, str],
        subscription: Subscription,
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        boundedness: Boundedness,
        deserializer: KafkaRecordDeserializationSchema,
    ) -> None:
        """Apply all settings. For builders and subclasses."""
        self._properties = dict(properties)
        self._settings = {**_DEFAULTS, **client_settings(properties), **_FIXED}
        self._subscription = subscription
        self._starting = starting
        self._stopping = stopping
        self._boundedness = boundedness
        self._deserializer = deserializer
        self._keep_restored: bool | None = None

    @staticmethod
    def of(*settings: Any) -> KafkaSource[Any]:
        """Create a source with the settings of a builder."""
        source: KafkaSource[Any] = KafkaSource.__new__(KafkaSource)
        source.configure(*settings)
        return source

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Create a builder."""
        return KafkaSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        return self._boundedness

    @property
    def may_end(self) -> bool:
        return self._stopping is not None

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the schema."""
        return self._deserializer.get_produced_type()

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        interval = int(self._properties.get(_DISCOVERY_INTERVAL, _DISCOVERY_DEFAULT_MS))
        wants_commits = str(self._properties.get(_COMMIT_OFFSETS, "true")).lower() != "false"
        return KafkaEnumerator(
            self._settings,
            self._subscription,
            self._starting,
            self._stopping,
            discovery_interval_ms=interval if self._stopping is None else 0,
            commit_group_offsets=wants_commits and "group.id" in self._properties,
            keep_restored=self._keep_restored,
        )

    def create_reader(self) -> SourceReader:
        return KafkaReader(self._settings, self._deserializer)

    def initial_offset(self, split: SourceSplit) -> Any:
        raise AssertionError("the enumerator knows where a partition begins")


class KafkaSourceBuilder:
    """Builds a :class:`KafkaSource`."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._subscription: Subscription | None = None
        self._starting: KafkaOffsetsInitializer = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._deserializer: KafkaRecordDeserializationSchema | None = None

    def build(self) -> KafkaSource[Any]:
        """Build the source, or raise an error that names missing settings."""
        return KafkaSource.of(*self.settings())

    def settings(self) -> tuple[Any, ...]:
        """Return the current settings, or raise an error that names missing ones."""
        if "bootstrap.servers" not in self._properties:
            raise InvalidProgramError("a Kafka source needs set_bootstrap_servers()")
        if self._subscription is None:
            raise InvalidProgramError("a Kafka source needs set_topics(), set_topic_pattern() or set_partitions()")
        if self._deserializer is None:
            raise InvalidProgramError("a Kafka source needs set_value_only_deserializer() or set_deserializer()")
        for initializer in (self._starting, self._stopping):
            if initializer is not None and initializer.needs_group and "group.id" not in self._properties:
                raise InvalidProgramError(
                    "committed offsets need a consumer group: pass group=... or call set_group_id()"
                )
        return (
            self._properties,
            self._subscription,
            self._starting,
            self._stopping,
            self._boundedness,
            self._deserializer,
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set the brokers: ``host:port``, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> Self:
        """Set the consumer group to which offsets are committed, for tools that show the lag."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> Self:
        """Read all partitions of these topics."""
        if not topics or not all(type(topic) is str and topic for topic in topics):
            raise InvalidProgramError(f"set_topics() takes names of topics, got {shorten(topics)}")
        return self._subscribe(Subscription(topics=tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> Self:
        """Read all topics whose whole name matches a regular expression, including those created later."""
        try:
            pattern = re.compile(topic_pattern)
        except (re.error, TypeError) as error:
            raise InvalidProgramError(f"the topic pattern {topic_pattern!r} is not valid: {error}") from None
        return self._subscribe(Subscription(pattern=pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> Self:
        """Read these partitions only."""
        chosen = tuple(dict.fromkeys(partitions))
        if not chosen or not all(isinstance(one, KafkaTopicPartition) for one in chosen):
            raise InvalidProgramError(f"set_partitions() takes KafkaTopicPartitions, got {shorten(chosen)}")
        return self._subscribe(Subscription(partitions=chosen))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where a job without a checkpoint starts. The default is the earliest record."""
        self._starting = _initializer(starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where the source stops, although the job is a streaming job."""
        self._stopping = _initializer(stopping_offsets_initializer)
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where the source stops. It is then bounded, and a batch job can read it."""
        self._stopping = _initializer(stopping_offsets_initializer)
        self._boundedness = Boundedness.BOUNDED
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> Self:
        """Deserialize only the values, with a schema."""
        return self.set_deserializer(KafkaRecordDeserializationSchema.value_only(deserialization_schema))

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> Self:
        """Set the deserializer of whole records: key, value, headers, timestamp and offset."""
        if not isinstance(record_deserializer, KafkaRecordDeserializationSchema):
            raise InvalidProgramError(
                f"set_deserializer() takes a KafkaRecordDeserializationSchema, got {shorten(record_deserializer)}"
            )
        self._deserializer = record_deserializer
        return self

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Set the prefix of the client id in the brokers' logs."""
        return self.set_property("client.id", prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the client or of Flink (partition.discovery.interval.ms, commit.offsets.on.checkpoint)."""
        self._properties[key] = str(value)
        return self

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Set several properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def _subscribe(self, subscription: Subscription) -> Self:
        if self._subscription is not None:
            raise InvalidProgramError("a Kafka source takes one of topics, topic pattern and partitions, only once")
        self._subscription = subscription
        return self


def _position(position: Any) -> KafkaOffsetsInitializer:
    if position == "committed":
        return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    if position in ("earliest", "latest"):
        return KafkaOffsetsInitializer.earliest() if position == "earliest" else KafkaOffsetsInitializer.latest()
    if isinstance(position, datetime):
        return KafkaOffsetsInitializer.timestamp(Instant.from_datetime(position).to_epoch_milli())
    if is_int(position):
        return KafkaOffsetsInitializer.timestamp(position)
    if isinstance(position, KafkaOffsetsInitializer):
        return position
    raise InvalidProgramError(
        "start and stop must be 'earliest', 'latest', 'committed', a datetime, milliseconds since the epoch or a "
        f"KafkaOffsetsInitializer, got {shorten(position)}"
    )


def _initializer(initializer: Any) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise InvalidProgramError(f"expected a KafkaOffsetsInitializer, got {shorten(initializer)}")
    return initializer
