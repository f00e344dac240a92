"""The Kafka sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import SerializationSchema
from penstock.connectors.kafka.client import (
    KafkaError,
    client_settings,
    confluent_kafka,
    connection_settings,
    new_admin,
    reason,
)
from penstock.connectors.kafka.committer import KafkaCommittable, KafkaCommitter
from penstock.connectors.kafka.producer import RecordProducer
from penstock.connectors.kafka.serialization import (
    KafkaRecordSerializationSchema,
    KafkaSinkContext,
    RecordChunk,
)
from penstock.core.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterInitContext
from penstock.runtime.operators.fields import FieldPath

__all__ = ["KafkaSink", "KafkaSinkBuilder"]

_ANSWER_SECONDS = 30.0


class KafkaSink(Sink):
    """Writes records to topics of Kafka.

    ``NONE`` does not wait for acknowledgements. ``AT_LEAST_ONCE``, the default, waits at the end of each micro-batch.
    ``EXACTLY_ONCE`` writes a micro-batch in one transaction (see ``penstock.connectors.kafka.committer``); consumers
    must then read with ``isolation.level=read_committed``.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("averages")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(schema)
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("averages-job")
    ...     .build()
    ... )

    The constructor is equivalent to the builder.

    >>> from penstock.formats.records import Json
    >>> sink = KafkaSink(
    ...     servers="localhost:9092", topic="averages", value=Json(), key="sensor", exactly_once="averages-job"
    ... )
    """

    def __init__(
        self,
        *,
        servers: str | Sequence[str],
        topic: str | Callable[[Any], str] | None = None,
        value: SerializationSchema | None = None,
        key: str | int | Callable[[Any], Any] | SerializationSchema | None = None,
        record: KafkaRecordSerializationSchema | None = None,
        exactly_once: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """:param servers: ``host:port`` of brokers
        :param topic: the topic, or a function that returns the topic of a record
        :param value: the format of values, such as ``Json()`` or any SerializationSchema
        :param key: a field or a function of the record, whose text is the key, or a SerializationSchema
        :param record: a schema for whole records instead of topic, value and key
        :param exactly_once: write in transactions with this name, which must be unique and never change
        :param properties: properties of the producer
        """
        builder = KafkaSinkBuilder().set_properties(properties or {})
        builder.set_bootstrap_servers(servers if isinstance(servers, str) else ",".join(servers))
        builder.set_record_serializer(_record_serializer(topic, value, key) if record is None else record)
        if exactly_once is not None:
            if not isinstance(exactly_once, str):
                raise InvalidProgramError(
                    "exactly_once must be a name for the sink's transactions, such as 'totals-job': use another name "
                    f"for each sink, and keep it when you restart the job; got {exactly_once!r}"
                )
            builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(exactly_once)
        self.configure(*builder.settings())

    def configure(
        self,
        properties: Mapping[str, str],
        serializer: KafkaRecordSerializationSchema,
        guarantee: DeliveryGuarantee,
        transactional_id_prefix: str | None,
    ) -> None:
        """Apply all settings. For builders and subclasses."""
        self._settings = client_settings(properties)
        self._serializer = serializer
        self._guarantee = guarantee
        self._transactional_id_prefix = transactional_id_prefix
        self._only_log_failures = False

    @staticmethod
    def of(*settings: Any) -> KafkaSink:
        """Create a sink with the settings of a builder."""
        sink = KafkaSink.__new__(KafkaSink)
        sink.configure(*settings)
        return sink

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Create a builder."""
        return KafkaSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that produces records, or one that leaves this to the committer."""
        sink_context = KafkaSinkContext(context.subtask_id, context.parallelism, _Partitions(self._settings))
        self._serializer.open(sink_context)
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return _CollectingWriter(self._serializer, sink_context, f"{context.job_id}-{context.sink_id}")
        wait = self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE
        return _ProducingWriter(self._serializer, sink_context, self._new_producer(), wait=wait)

    def get_transformer(self) -> None:
        """Return None: the stream is not changed."""
        return

    def _new_producer(self) -> RecordProducer:
        return RecordProducer(self._settings, only_log_failures=self._only_log_failures)

    def create_committer(self) -> Committer | None:
        """Create the committer, for exactly-once only."""
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        assert self._transactional_id_prefix is not None
        return KafkaCommitter(self._settings, self._transactional_id_prefix)


class _KeyText(SerializationSchema):
    """Writes the text of a field, or of a function's result. Bytes stay unchanged."""

    def __init__(self, key: str | int | Callable[[Any], Any]) -> None:
        self._read = key if callable(key) else FieldPath(key).get

    def serialize(self, value: Any) -> bytes:
        key = self._read(value)
        return key if isinstance(key, bytes) else str(key).encode()


def _record_serializer(
    topic: str | Callable[[Any], str] | None,
    value: SerializationSchema | None,
    key: str | int | Callable[[Any], Any] | SerializationSchema | None,
) -> KafkaRecordSerializationSchema:
    if topic is None or value is None:
        raise InvalidProgramError("a Kafka sink needs topic=... and value=Json(), or record=...")
    builder = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(value)
    if isinstance(topic, str):
        builder.set_topic(topic)
    else:
        builder.set_topic_selector(topic)
    if key is not None:
        builder.set_key_serialization_schema(key if isinstance(key, SerializationSchema) else _KeyText(key))
    return builder.build()


class _Partitions:
    """The partitions of topics, looked up once per task and topic."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._known: dict[str, list[int]] = {}

    def __call__(self, topic: str) -> list[int]:
        if topic not in self._known:
            package = confluent_kafka()
            try:
                metadata = new_admin(connection_settings(self._settings)).list_topics(topic, timeout=_ANSWER_SECONDS)
            except package.KafkaException as error:
                raise KafkaError(f"no answer from Kafka about topic {topic}: {reason(error)}") from None
            found = sorted(metadata.topics[topic].partitions)
            if not found:
                raise KafkaError(f"Kafka has no topic {topic}: create it, or correct the name")
            self._known[topic] = found
        return self._known[topic]


class _ProducingWriter(SinkWriter):
    """Writes records immediately."""

    def __init__(
        self,
        serializer: KafkaRecordSerializationSchema,
        context: KafkaSinkContext,
        producer: RecordProducer,
        *,
        wait: bool,
    ) -> None:
        self._serializer = serializer
        self._context = context
        self._producer = producer
        self._wait = wait

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._producer.produce(self._serializer.serialize_batch(values, timestamps, self._context))
        self._producer.check()

    def flush(self, end_of_input: bool) -> None:
        if self._wait or end_of_input:
            self._producer.flush()
        else:
            self._producer.client.poll(0)
            self._producer.check()

    def close(self) -> None:
        self._producer.client.flush(_ANSWER_SECONDS)


class _CollectingWriter(SinkWriter):
    """Serializes records for the committer, which writes them."""

    def __init__(self, serializer: KafkaRecordSerializationSchema, context: KafkaSinkContext, line: str) -> None:
        self._serializer = serializer
        self._context = context
        self._line = line
        self._chunks: list[RecordChunk] = []

    def begin(self, checkpoint_id: int) -> None:
        self._chunks = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._chunks.append(self._serializer.serialize_batch(values, timestamps, self._context))

    def prepare_commit(self) -> list[Any]:
        chunks, self._chunks = self._chunks, []
        return [KafkaCommittable.of(self._line, chunks)] if chunks else []


class KafkaSinkBuilder:
    """Builds a :class:`KafkaSink`."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._prefix: str | None = None

    def build(self) -> KafkaSink:
        """Build the sink, or raise an error that names missing settings."""
        return KafkaSink.of(*self.settings())

    def settings(self) -> tuple[Any, ...]:
        """Return the current settings, or raise an error that names missing ones."""
        if "bootstrap.servers" not in self._properties:
            raise InvalidProgramError("a Kafka sink needs set_bootstrap_servers()")
        if self._serializer is None:
            raise InvalidProgramError("a Kafka sink needs set_record_serializer()")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self._prefix:
            raise InvalidProgramError(
                "an exactly-once Kafka sink needs set_transactional_id_prefix(): a name that no other sink has, "
                "and that stays the same when the program is started again"
            )
        return self._properties, self._serializer, self._guarantee, self._prefix

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set the brokers: ``host:port``, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set the delivery guarantee. The default is at-least-once."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise InvalidProgramError(f"expected a DeliveryGuarantee, got {shorten(delivery_guarantee)}")
        self._guarantee = delivery_guarantee
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> Self:
        """Set the serializer of records."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise InvalidProgramError(
                f"set_record_serializer() takes a KafkaRecordSerializationSchema, got {shorten(record_serializer)}"
            )
        self._serializer = record_serializer
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Set the name of the sink's transactions. Required for exactly-once."""
        self._prefix = transactional_id_prefix
        return self

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the producer."""
        self._properties[key] = str(value)
        return self

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Set several properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self
