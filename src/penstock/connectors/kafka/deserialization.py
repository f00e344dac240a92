"""Converts Kafka's records to the stream's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import ByteArraySchema, DeserializationSchema, SimpleStringSchema
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.kafka.client import KafkaError
from penstock.runtime.operators.user_errors import user_traceback

__all__ = ["ConsumerRecord", "KafkaRecordDeserializationSchema"]

_NO_TIMESTAMP = 0
_Batch = tuple[list[Any], list[int] | None]


class ConsumerRecord(NamedTuple):
    """A record as stored in Kafka."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds since the epoch, set by the producer or, if the topic says so, by the broker."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class KafkaRecordDeserializationSchema(ABC):
    """Converts a Kafka record, with key, headers and offset, to any number of records of the stream.

    >>> class KeyAndValue(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         yield record.key.decode(), record.value.decode()
    >>> list(KeyAndValue().deserialize(ConsumerRecord("t", 0, 7, 1000, b"k", b"v", ())))
    [('k', 'v')]
    """

    def open(self) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def deserialize(self, record: ConsumerRecord) -> Iterable[Any]:
        """Yield the stream's records. All get the timestamp of the Kafka record."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, if known."""
        return None

    def deserialize_messages(self, messages: Sequence[Any]) -> _Batch:
        """Deserialize a batch of confluent-kafka's messages."""
        values: list[Any] = []
        timestamps: list[Any] = []
        for message in messages:
            kind, timestamp = message.timestamp()
            at = None if kind == _NO_TIMESTAMP else timestamp
            record = ConsumerRecord(
                message.topic(),
                message.partition(),
                message.offset(),
                at,
                message.key(),
                message.value(),
                message.headers() or (),
            )
            try:
                found = list(self.deserialize(record))
            except Exception as error:
                raise deserialization_error(message, error) from None
            values += found
            timestamps += [at] * len(found)
        return values, timestamps

    @staticmethod
    def value_only(schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Deserialize only the values, with a schema. Records without a value (tombstones) are skipped."""
        return ValueOnlyDeserializer(schema)

    @staticmethod
    def of(function: Callable[[ConsumerRecord], Any]) -> KafkaRecordDeserializationSchema:
        """Emit the result of the function for each record."""
        if not callable(function):
            raise InvalidProgramError(f"expected a function of a ConsumerRecord, got {shorten(function)}")
        return _FunctionDeserializer(function)


class _FunctionDeserializer(KafkaRecordDeserializationSchema):
    def __init__(self, function: Callable[[ConsumerRecord], Any]) -> None:
        self._function = function

    def deserialize(self, record: ConsumerRecord) -> Iterable[Any]:
        return (self._function(record),)


class ValueOnlyDeserializer(KafkaRecordDeserializationSchema):
    """Deserializes only the values."""

    def __init__(self, schema: DeserializationSchema) -> None:
        if not isinstance(schema, DeserializationSchema):
            raise InvalidProgramError(f"expected a DeserializationSchema such as Json(Order), got {shorten(schema)}")
        self._schema = schema

    def open(self) -> None:
        self._schema.open()

    def get_produced_type(self) -> TypeInformation:
        return self._schema.get_produced_type()

    def deserialize(self, record: ConsumerRecord) -> Iterable[Any]:
        value = None if record.value is None else self._schema.deserialize(record.value)
        return () if value is None else (value,)

    def deserialize_messages(self, messages: Sequence[Any]) -> _Batch:
        timestamps: list[Any] = [message.timestamp()[1] for message in messages]
        try:
            values = self._decode(messages)
        except Exception:
            return super().deserialize_messages(messages)  # finds the broken record, or the one without a value
        if min(timestamps) < 0:  # written before Kafka had timestamps
            timestamps = [None if timestamp < 0 else timestamp for timestamp in timestamps]
        return values, timestamps

    def _decode(self, messages: Sequence[Any]) -> list[Any]:
        """Decode all values. Raise an error if one of them needs individual handling."""
        schema = self._schema
        if type(schema) is SimpleStringSchema:
            charset = schema.charset
            return [message.value().decode(charset) for message in messages]
        raw = [message.value() for message in messages]
        if None in raw:
            raise ValueError("a record without a value")
        if type(schema) is ByteArraySchema:
            return raw
        values = list(map(schema.deserialize, raw))
        if None in values:
            raise ValueError("a record that the schema skips")
        return values


def deserialization_error(message: Any, error: Exception) -> KafkaError:
    """Return the error for a record that cannot be read."""
    return KafkaError(
        f"record at offset {message.offset()} of partition {message.topic()}-{message.partition()} cannot be "
        f"deserialized: {type(error).__name__}: {error}\n  value: {shorten(message.value())}\n{user_traceback(error)}"
    )
