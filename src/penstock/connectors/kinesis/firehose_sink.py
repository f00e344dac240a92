"""A sink for delivery streams of Data Firehose."""

from __future__ import annotations

from collections.abc import Mapping
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
from penstock.connectors.kinesis.client import new_client
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["KinesisFirehoseSink", "KinesisFirehoseSinkBuilder"]

_DEFAULTS = Buffering(max_batch_size_in_bytes=4 << 20, max_record_size_in_bytes=1000 << 10)


class KinesisFirehoseSink(Sink):
    """Writes to a delivery stream, at-least-once. It sends records in batches and retries rejected ones.

    Firehose puts nothing between records. To write lines, use a schema that ends records with a newline.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> sink = (
    ...     KinesisFirehoseSink.builder()
    ...     .set_firehose_client_properties({"aws.region": "eu-west-1"})
    ...     .set_delivery_stream_name("archive")
    ...     .set_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    """

    def __init__(
        self,
        delivery_stream: str,
        schema: SerializationSchema,
        properties: Mapping[str, str],
        buffering: Buffering,
    ) -> None:
        self.delivery_stream = delivery_stream
        self.schema = schema
        self.properties = dict(properties)
        self.buffering = buffering

    @staticmethod
    def builder() -> KinesisFirehoseSinkBuilder:
        """Create a builder."""
        return KinesisFirehoseSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _FirehoseWriter(self, context)


class _FirehoseWriter(BufferedWriter):
    def __init__(self, sink: KinesisFirehoseSink, context: WriterInitContext) -> None:
        sink.schema.open()
        self._serialize = sink.schema.serialize
        client = new_client("firehose", sink.properties)

        def send(entries: list[Entry]) -> list[Refused]:
            answer = client.put_record_batch(DeliveryStreamName=sink.delivery_stream, Records=entries)
            return Refused.among(answer["RequestResponses"]) if answer.get("FailedPutCount") else []

        super().__init__(context, f"delivery stream '{sink.delivery_stream}'", sink.buffering, send)

    def entry(self, value: Any) -> tuple[Entry, int]:
        data = self._serialize(value)
        return {"Data": data}, len(data)


class KinesisFirehoseSinkBuilder(BufferedBuilder):
    """Builds a :class:`KinesisFirehoseSink`."""

    def __init__(self) -> None:
        super().__init__(_DEFAULTS)
        self._delivery_stream: str | None = None

    def set_delivery_stream_name(self, delivery_stream_name: str) -> Self:
        """Set the name of the delivery stream."""
        if type(delivery_stream_name) is not str or not delivery_stream_name:
            raise InvalidProgramError(
                f"set_delivery_stream_name() takes the name of a delivery stream, got {shorten(delivery_stream_name)}"
            )
        self._delivery_stream = delivery_stream_name
        return self

    def set_firehose_client_properties(self, firehose_client_properties: Mapping[str, Any]) -> Self:
        """Set region, endpoint and credentials."""
        return self._set_properties(firehose_client_properties)

    def build(self) -> KinesisFirehoseSink:
        """Build the sink, or raise an error that names missing settings."""
        schema, properties, buffering = self._checked("KinesisFirehoseSink")
        if self._delivery_stream is None:
            raise InvalidProgramError("a KinesisFirehoseSink needs set_delivery_stream_name()")
        return KinesisFirehoseSink(self._delivery_stream, schema, properties, buffering)
