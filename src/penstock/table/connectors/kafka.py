"""The connectors ``kafka`` and ``upsert-kafka``: topics as tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.connectors.kafka.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from penstock.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.connectors.kafka.serialization import (
    FlinkFixedPartitioner,
    KafkaRecordSerializationSchema,
    KafkaSinkContext,
    ProducerRecord,
)
from penstock.connectors.kafka.sink import KafkaSink
from penstock.connectors.kafka.source import KafkaSource
from penstock.core.sink import DeliveryGuarantee, Sink
from penstock.core.source import Source
from penstock.core.table.types import DataTypes
from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSink, TableSource, connector
from penstock.table.formats.base import Change, TableFormat, batch_of_changes, create_format
from penstock.table.plan.nodes.base import ALL_CHANGES, Field
from penstock.util.exceptions import ValidationException

_METADATA: dict[str, Any] = {
    "topic": (DataTypes.STRING(nullable=False), lambda record: record.topic),
    "partition": (DataTypes.INT(nullable=False), lambda record: record.partition),
    "offset": (DataTypes.BIGINT(nullable=False), lambda record: record.offset),
    "timestamp": (
        DataTypes.TIMESTAMP_LTZ(3, nullable=False),
        lambda record: None if record.timestamp is None else _instant(record.timestamp),
    ),
    "headers": (
        DataTypes.MAP(DataTypes.STRING(), DataTypes.BYTES(), nullable=False),
        lambda record: dict(record.headers),
    ),
}


def _instant(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)


class TopicColumns:
    """The columns in the key and in the value of a record, and the formats of both."""

    def __init__(self, table: ResolvedTable, *, upsert: bool) -> None:
        options = table.options
        names = [field.name for field in table.fields]
        if upsert:
            key_names = [names[place] for place in table.primary_key]
        else:
            key_names = [name.strip() for name in options.get("key.fields", "").split(";") if name.strip()]
        for name in key_names:
            if name not in names:
                raise ValidationException(f"'key.fields' of table '{table.name}' names no physical column: '{name}'")
        include = options.get("value.fields-include", "ALL").upper()
        if include not in ("ALL", "EXCEPT_KEY"):
            raise ValidationException(f"'value.fields-include' must be ALL or EXCEPT_KEY, got '{include}'")
        prefix = options.get("key.fields-prefix", "")
        if bool(key_names) != ("key.format" in options):
            missing = "key.format" if key_names else "key.fields"
            raise ValidationException(f"Table '{table.name}' also needs the option '{missing}'.")
        self.key_places = [names.index(name) for name in key_names]
        value_names = [name for name in names if include == "ALL" or name not in key_names]
        self.value_places = [names.index(name) for name in value_names]
        fields = table.fields
        key_fields = [Field(fields[place].name.removeprefix(prefix), fields[place].type) for place in self.key_places]
        value_fields = [fields[place] for place in self.value_places]
        self.key = create_format(table.name, options, key_fields, prefix="key.") if key_names else None
        value = create_format(table.name, options, value_fields, prefix="value.")
        assert value is not None
        self.value: TableFormat = value
        self.width = len(fields)
        self.upsert = upsert

    def decode(self, record: ConsumerRecord) -> Sequence[Change]:
        """Return the changes in a record."""
        key: Sequence[Any] = ()
        if self.key is not None:
            decoded = () if record.key is None else self.key.decode(record.key)
            key = decoded[0][1] if decoded else [None] * len(self.key_places)
        if record.value is None:
            return [(DELETE, self._row(key, None))] if self.upsert else ()
        kind_of = UPDATE_AFTER if self.upsert else None
        return [
            (kind if kind_of is None else kind_of, self._row(key, values))
            for kind, values in self.value.decode_all([record.value])
        ]

    def _row(self, key: Sequence[Any], values: Sequence[Any] | None) -> list[Any]:
        row: list[Any] = [None] * self.width
        for place, value in zip(self.value_places, values or (), strict=values is not None):
            row[place] = value
        for place, value in zip(self.key_places, key, strict=True):
            row[place] = value
        return row

    def encode_key(self, row: Any) -> bytes | None:
        """Return the key of a record."""
        return None if self.key is None else self.key.encode(INSERT, [row[place] for place in self.key_places])

    def encode_value(self, kind: int, row: Any) -> bytes | None:
        """Return the value of a record. In an upsert table, it is None for a deleted row."""
        if self.upsert and kind in (UPDATE_BEFORE, DELETE):
            return None
        return self.value.encode(kind, [row[place] for place in self.value_places])


class _ToColumns(KafkaRecordDeserializationSchema):
    """Converts records to column batches."""

    def __init__(self, table: ResolvedTable, columns: TopicColumns) -> None:
        self._columns = columns
        self._metadata = [_METADATA[key][1] for key, _ in table.metadata]
        self._fields = [*table.fields, *(Field(key, type_) for key, type_ in table.metadata)]

    def deserialize(self, record: ConsumerRecord) -> Sequence[Change]:
        changes = self._columns.decode(record)
        if not self._metadata:
            return changes
        extra = [read(record) for read in self._metadata]
        return [(kind, [*row, *extra]) for kind, row in changes]

    def deserialize_messages(self, messages: Sequence[Any]) -> Any:
        changes, _ = super().deserialize_messages(messages)
        return batch_of_changes(changes, self._fields), None


class _FromRows(KafkaRecordSerializationSchema):
    """Converts rows with row kinds to records."""

    def __init__(self, topic: str, columns: TopicColumns, *, fixed: bool) -> None:
        self._topic = topic
        self._columns = columns
        self._partitioner = FlinkFixedPartitioner() if fixed else None

    def open(self, context: KafkaSinkContext) -> None:
        if self._partitioner is not None:
            self._partitioner.open(context.parallel_instance_id, context.number_of_parallel_instances)

    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> ProducerRecord | None:
        kind = element.get_row_kind().value
        key, value = self._columns.encode_key(element), self._columns.encode_value(kind, element)
        partition = None
        if self._partitioner is not None:
            partition = self._partitioner.partition(
                element, key, value, self._topic, context.partitions_for_topic(self._topic)
            )
        return ProducerRecord(self._topic, value, key, partition, None, None)


class TopicSource(TableSource):
    """A topic as a source."""

    def __init__(self, table: ResolvedTable, *, upsert: bool) -> None:
        self._table = table
        self._columns = TopicColumns(table, upsert=upsert)
        self.upsert = upsert
        self.changelog = ALL_CHANGES if upsert else self._columns.value.changelog

    def create(self) -> Source:
        """Create the source."""
        options = self._table.options
        builder = KafkaSource.builder().set_properties(_properties(options))
        if "topic-pattern" in options:
            builder.set_topic_pattern(options["topic-pattern"])
        else:
            builder.set_topics(*(topic.strip() for topic in options["topic"].split(";")))
        builder.set_starting_offsets(_earliest() if self.upsert else _start(self._table))
        end = _end(self._table)
        if end is not None:
            builder.set_bounded(end)
        return builder.set_deserializer(_ToColumns(self._table, self._columns)).build()


class TopicSink(TableSink):
    """A topic as a sink."""

    rows = True

    def __init__(self, table: ResolvedTable, *, upsert: bool) -> None:
        self._table = table
        self._columns = TopicColumns(table, upsert=upsert)
        self.accepts = "upsert" if upsert else "insert" if self._columns.value.changelog.insert_only else "all"

    def create(self) -> Sink:
        """Create the sink."""
        options = self._table.options
        word = options.get("sink.delivery-guarantee", "at-least-once").lower()
        guarantees = {one.name.lower().replace("_", "-"): one for one in DeliveryGuarantee}
        if word not in guarantees:
            raise ValidationException(f"'sink.delivery-guarantee' must be one of {', '.join(guarantees)}, got '{word}'")
        partitioner = options.get("sink.partitioner", "default").lower()
        if partitioner not in ("default", "fixed", "round-robin"):
            raise ValidationException(f"'sink.partitioner' must be default, fixed or round-robin, got '{partitioner}'")
        if ";" in options["topic"]:
            raise ValidationException(f"Table '{self._table.name}' has several topics: a sink needs a single topic.")
        builder = (
            KafkaSink.builder()
            .set_bootstrap_servers(options["properties.bootstrap.servers"])
            .set_record_serializer(_FromRows(options["topic"], self._columns, fixed=partitioner == "fixed"))
            .set_delivery_guarantee(guarantees[word])
        )
        for key, value in _properties(options).items():
            builder.set_property(key, value)
        if "sink.transactional-id-prefix" in options:
            builder.set_transactional_id_prefix(options["sink.transactional-id-prefix"])
        elif guarantees[word] is DeliveryGuarantee.EXACTLY_ONCE:
            raise ValidationException("'sink.delivery-guarantee' = 'exactly-once' needs 'sink.transactional-id-prefix'")
        return builder.build()


def _properties(options: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix("properties."): value for key, value in options.items() if key.startswith("properties.")}


def _earliest() -> KafkaOffsetsInitializer:
    return KafkaOffsetsInitializer.earliest()


def _start(table: ResolvedTable) -> KafkaOffsetsInitializer:
    """Return the starting offsets by ``scan.startup.mode``."""
    options = table.options
    mode = options.get("scan.startup.mode", "group-offsets")
    match mode:
        case "earliest-offset":
            return _earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            if "properties.group.id" not in options:
                raise ValidationException(
                    f"Table '{table.name}' starts at the offsets of its group: set 'properties.group.id', or "
                    "'scan.startup.mode' = 'earliest-offset'"
                )
            return KafkaOffsetsInitializer.committed_offsets()
        case "timestamp":
            return KafkaOffsetsInitializer.timestamp(_required_number(table, "scan.startup.timestamp-millis"))
        case "specific-offsets":
            return KafkaOffsetsInitializer.offsets(_offsets(table, "scan.startup.specific-offsets"))
    raise ValidationException(
        "'scan.startup.mode' must be earliest-offset, latest-offset, group-offsets, timestamp or specific-offsets, "
        f"got '{mode}'"
    )


def _end(table: ResolvedTable) -> KafkaOffsetsInitializer | None:
    """Return the stopping offsets by ``scan.bounded.mode``."""
    mode = table.options.get("scan.bounded.mode", "unbounded")
    match mode:
        case "unbounded":
            return None
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            return KafkaOffsetsInitializer.committed_offsets()
        case "timestamp":
            return KafkaOffsetsInitializer.timestamp(_required_number(table, "scan.bounded.timestamp-millis"))
        case "specific-offsets":
            return KafkaOffsetsInitializer.offsets(_offsets(table, "scan.bounded.specific-offsets"))
    raise ValidationException(
        "'scan.bounded.mode' must be unbounded, latest-offset, group-offsets, timestamp or specific-offsets, "
        f"got '{mode}'"
    )


def _required_number(table: ResolvedTable, key: str) -> int:
    text = table.option(key)
    if text is None or not text.strip().isdigit():
        raise ValidationException(f"Table '{table.name}' needs the option '{key}', a number of milliseconds.")
    return int(text)


def _offsets(table: ResolvedTable, key: str) -> dict[KafkaTopicPartition, int]:
    """Parse ``partition:0,offset:42;partition:1,offset:300``."""
    found: dict[KafkaTopicPartition, int] = {}
    for part in (table.option(key) or "").split(";"):
        pairs = dict(one.strip().partition(":")[::2] for one in part.split(",") if one.strip())
        if pairs.keys() != {"partition", "offset"} or not all(value.isdigit() for value in pairs.values()):
            raise ValidationException(f"'{key}' must look like 'partition:0,offset:42;partition:1,offset:300'")
        found[KafkaTopicPartition(table.options["topic"], int(pairs["partition"]))] = int(pairs["offset"])
    return found


_COMMON: dict[str, str | None] = {
    "topic": None,
    "properties....": None,
    "key.format": None,
    "key.fields-prefix": "",
    "value.fields-include": "ALL",
    "scan.bounded.mode": "unbounded",
    "scan.bounded.timestamp-millis": None,
    "scan.bounded.specific-offsets": None,
    "sink.delivery-guarantee": "at-least-once",
    "sink.transactional-id-prefix": None,
}


@connector("kafka")
class KafkaFactory(ConnectorFactory):
    """``'connector' = 'kafka'``"""

    required: ClassVar[Sequence[str]] = ("properties.bootstrap.servers",)
    options: ClassVar[dict[str, str | None]] = {
        **_COMMON,
        "topic-pattern": None,
        "key.fields": None,
        "scan.startup.mode": "group-offsets",
        "scan.startup.timestamp-millis": None,
        "scan.startup.specific-offsets": None,
        "scan.topic-partition-discovery.interval": "5 min",
        "sink.partitioner": "default",
    }
    formats: ClassVar[bool] = True
    metadata: ClassVar[dict[str, Any]] = {key: type_ for key, (type_, _) in _METADATA.items()}

    def check(self, table: ResolvedTable) -> None:
        """Check the options and the topic."""
        super().check(table)
        if ("topic" in table.options) == ("topic-pattern" in table.options):
            raise ValidationException(f"Table '{table.name}' needs either 'topic' or 'topic-pattern'.")

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source."""
        return TopicSource(table, upsert=False)

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        if "topic" not in table.options:
            raise ValidationException(f"Table '{table.name}' has a 'topic-pattern': a sink needs a 'topic'.")
        return TopicSink(table, upsert=False)


@connector("upsert-kafka")
class UpsertKafkaFactory(ConnectorFactory):
    """``'connector' = 'upsert-kafka'``"""

    required: ClassVar[Sequence[str]] = ("topic", "properties.bootstrap.servers", "key.format", "value.format")
    options: ClassVar[dict[str, str | None]] = _COMMON
    formats: ClassVar[bool] = True
    metadata: ClassVar[dict[str, Any]] = {key: type_ for key, (type_, _) in _METADATA.items()}

    def check(self, table: ResolvedTable) -> None:
        """Check the options and the key."""
        super().check(table)
        if not table.primary_key:
            raise ValidationException(
                f"'upsert-kafka' tables require to define a PRIMARY KEY constraint: table '{table.name}' has none. "
                "The PRIMARY KEY specifies which columns should be read from or write to the Kafka message key."
            )

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source of upserts."""
        return TopicSource(table, upsert=True)

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink of upserts."""
        return TopicSink(table, upsert=True)
