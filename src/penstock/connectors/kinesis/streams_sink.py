"""A sink for Kinesis data streams."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import SerializationSchema
from penstock.connectors.kinesis.buffering import (
    BufferedBuilder,
    BufferedWriter,
    Buffering,
    Entry,
    Refused,
)
from penstock.connectors.kinesis.client import KinesisError, new_client
from penstock.connectors.kinesis.shards import stream_argument
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["KinesisStreamsSink", "KinesisStreamsSinkBuilder", "PartitionKeyGenerator"]

_LONGEST_KEY = 256


class PartitionKeyGenerator:
    """Chooses the partition key of a record. Subclass it, or pass a function of the record.

    >>> PartitionKeyGenerator(lambda reading: reading[0]).apply(("sensor-7", 23.5))
    'sensor-7'
    """

    def __init__(self, function: Callable[[Any], str] | None = None) -> None:
        if function is not None and not callable(function):
            raise InvalidProgramError(
                f"a partition key generator must be a function of a record, got {shorten(function)}"
            )
        self._function = function

    def open(self, subtask_index: int, parallelism: int) -> None:
        """Called once per task before the first record."""
        return

    def apply(self, element: Any) -> str:
        """Return the partition key of a record."""
        if self._function is None:
            raise NotImplementedError(f"{type(self).__name__} must define apply()")
        return self._function(element)

    @staticmethod
    def fixed() -> PartitionKeyGenerator:
        """Use the index of the task: all its records go to one shard."""
        return _Fixed()

    @staticmethod
    def random() -> PartitionKeyGenerator:
        """Use a random key for each record: all shards get the same load."""
        return PartitionKeyGenerator(_random_key)


class _Fixed(PartitionKeyGenerator):
    def open(self, subtask_index: int, parallelism: int) -> None:
        self._key = str(subtask_index)

    def apply(self, element: Any) -> str:
        return self._key


def _random_key(element: Any) -> str:
    return str(uuid.uuid4())


class KinesisStreamsSink(Sink):
    """Writes to a stream, at-least-once. It sends records in batches and retries rejected ones.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> sink = (
    ...     KinesisStreamsSink.builder()
    ...     .set_kinesis_client_properties({"aws.region": "eu-west-1"})
    ...     .set_stream_name("averages")
    ...     .set_serialization_schema(SimpleStringSchema())
    ...     .set_partition_key_generator(PartitionKeyGenerator.random())
    ...     .build()
    ... )
    """

    def __init__(
        self,
        stream: str,
        keys: PartitionKeyGenerator,
        schema: SerializationSchema,
        properties: Mapping[str, str],
        buffering: Buffering,
    ) -> None:
        self.stream = stream
        self.keys = keys
        self.schema = schema
        self.properties = dict(properties)
        self.buffering = buffering

    @staticmethod
    def builder() -> KinesisStreamsSinkBuilder:
        """Create a builder."""
        return KinesisStreamsSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _StreamsWriter(self, context)


class _StreamsWriter(BufferedWriter):
    def __init__(self, sink: KinesisStreamsSink, context: WriterInitContext) -> None:
        self._sink = sink
        sink.schema.open()
        sink.keys.open(context.subtask_id, context.parallelism)
        client, stream = new_client("kinesis", sink.properties), stream_argument(sink.stream)

        def send(entries: list[Entry]) -> list[Refused]:
            answer = client.put_records(**stream, Records=entries)
            return Refused.among(answer["Records"]) if answer.get("FailedRecordCount") else []

        super().__init__(context, f"stream '{sink.stream}'", sink.buffering, send)

    def entry(self, value: Any) -> tuple[Entry, int]:
        key = self._sink.keys.apply(value)
        if type(key) is not str or not 0 < len(key) <= _LONGEST_KEY:
            raise KinesisError(
                f"a partition key must have 1 to {_LONGEST_KEY} characters, but the generator returned {shorten(key)} "
                f"[record {shorten(value)}]"
            )
        data = self._sink.schema.serialize(value)
        return {"Data": data, "PartitionKey": key}, len(data) + len(key.encode())


class KinesisStreamsSinkBuilder(BufferedBuilder):
    """Builds a :class:`KinesisStreamsSink`."""

    def __init__(self) -> None:
        super().__init__(Buffering())
        self._stream: str | None = None
        self._keys: PartitionKeyGenerator | None = None

    def set_stream_name(self, stream_name: str) -> Self:
        """Set the name of the stream, or its ARN."""
        if type(stream_name) is not str or not stream_name:
            raise InvalidProgramError(f"set_stream_name() takes the name of a stream, got {shorten(stream_name)}")
        self._stream = stream_name
        return self

    def set_partition_key_generator(self, partition_key_generator: PartitionKeyGenerator) -> Self:
        """Set the function that returns the partition key of a record."""
        if not isinstance(partition_key_generator, PartitionKeyGenerator):
            raise InvalidProgramError(f"expected a PartitionKeyGenerator, got {shorten(partition_key_generator)}")
        self._keys = partition_key_generator
        return self

    def set_kinesis_client_properties(self, kinesis_client_properties: Mapping[str, Any]) -> Self:
        """Set region, endpoint and credentials."""
        return self._set_properties(kinesis_client_properties)

    def build(self) -> KinesisStreamsSink:
        """Build the sink, or raise an error that names missing settings."""
        schema, properties, buffering = self._checked("KinesisStreamsSink")
        if self._stream is None:
            raise InvalidProgramError("a KinesisStreamsSink needs set_stream_name()")
        if self._keys is None:
            raise InvalidProgramError("a KinesisStreamsSink needs set_partition_key_generator()")
        return KinesisStreamsSink(self._stream, self._keys, schema, properties, buffering)
