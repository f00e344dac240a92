"""Deserialization of Kinesis records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.common.typeinfo import TypeInformation, Types
from penstock.connectors.kinesis.aggregation import unpack
from penstock.connectors.kinesis.client import KinesisError
from penstock.connectors.kinesis.shards import Record
from penstock.runtime.operators.user_errors import user_traceback

__all__ = ["KinesisDeserializationSchema"]


class KinesisDeserializationSchema(ABC):
    """Deserializes a record with all its Kinesis metadata.

    >>> class WithKey(KinesisDeserializationSchema):
    ...     def deserialize(self, record_value, partition_key, seq_num, approx_arrival_timestamp, stream, shard_id):
    ...         return partition_key, record_value.decode()
    >>> decode_records(WithKey(), "readings", "shardId-000000000000", [("49", 1_000, "a", b"23.5")])
    ([('a', '23.5')], [1000])
    """

    def open(self) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def deserialize(
        self,
        record_value: bytes,
        partition_key: str,
        seq_num: str,
        approx_arrival_timestamp: int,
        stream: str,
        shard_id: str,
    ) -> Any:
        """Return the record, or ``None`` to skip it."""

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class ValueOnly(KinesisDeserializationSchema):
    """Deserializes only the data, with a schema."""

    def __init__(self, schema: DeserializationSchema) -> None:
        self._schema = schema

    def open(self) -> None:
        self._schema.open()

    def deserialize(
        self,
        record_value: bytes,
        partition_key: str,
        seq_num: str,
        approx_arrival_timestamp: int,
        stream: str,
        shard_id: str,
    ) -> Any:
        return self._schema.deserialize(record_value)

    def get_produced_type(self) -> TypeInformation:
        return self._schema.get_produced_type()


def kinesis_schema(deserializer: Any) -> KinesisDeserializationSchema:
    """Return a Kinesis schema for either kind of schema."""
    if isinstance(deserializer, KinesisDeserializationSchema):
        return deserializer
    if isinstance(deserializer, DeserializationSchema):
        return ValueOnly(deserializer)
    raise InvalidProgramError(
        f"expected a DeserializationSchema or a KinesisDeserializationSchema, got {shorten(deserializer)}"
    )


def decode_records(
    schema: KinesisDeserializationSchema, stream: str, shard_id: str, records: Sequence[Record]
) -> tuple[list[Any], list[int]]:
    """Return values and their arrival times. Aggregated records are unpacked."""
    values: list[Any] = []
    timestamps: list[int] = []
    deserialize = schema.deserialize
    for sequence_number, arrival, packed_key, packed in records:
        for key, data in unpack(packed_key, packed):
            try:
                value = deserialize(data, key, sequence_number, arrival, stream, shard_id)
            except Exception as error:
                raise KinesisError(
                    f"record {sequence_number} of shard {shard_id} of stream '{stream}' cannot be deserialized: "
                    f"{type(error).__name__}: {error}\n  data: {shorten(data)}\n{user_traceback(error)}"
                ) from None
            if value is not None:
                values.append(value)
                timestamps.append(arrival)
    return values, timestamps
