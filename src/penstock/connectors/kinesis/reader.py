"""Reads ranges of shards in a task: from the plan or, if a new driver repeats a batch, from Kinesis."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.connectors.kinesis.client import KinesisError, new_client
from penstock.connectors.kinesis.deserialization import KinesisDeserializationSchema, decode_records
from penstock.connectors.kinesis.fetcher import Patience, ShardCursor
from penstock.connectors.kinesis.settings import ConsumerSettings
from penstock.connectors.kinesis.shards import SHARD_END, Record, ShardSplit, sequence_number_of
from penstock.core.functions import RuntimeContext
from penstock.core.source import SourceReader, SourceSplit

__all__ = ["KinesisReader"]


class KinesisReader(SourceReader):
    """The reader of one task."""

    def __init__(
        self, properties: Mapping[str, str], settings: ConsumerSettings, schema: KinesisDeserializationSchema
    ) -> None:
        self._properties = properties
        self._settings = settings
        self._schema = schema
        self._client: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._schema.open()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[tuple[list[Any], list[int]]]:
        assert isinstance(split, ShardSplit)
        parts = self._read_again(split, start_offset, end_offset) if split.records is None else [split.records]
        for records in parts:
            yield decode_records(self._schema, split.stream, split.shard_id, records)

    def _read_again(self, split: ShardSplit, start: str, end: str) -> Iterator[list[Record]]:
        """Read the records of a previously planned range from Kinesis."""
        if self._client is None:
            self._client = new_client("kinesis", self._properties)
        what = f"shard {split.shard_id} of stream '{split.stream}'"
        cursor = ShardCursor(self._client, split, start, self._settings.max_records)
        patience = Patience(what, self._settings.max_retries)
        last = sequence_number_of(end)
        while True:
            try:
                records = cursor.next()
            except Exception as error:
                time.sleep(patience.pause_after(error))
                continue
            patience.success()
            wanted = records if last is None else [record for record in records if int(record[0]) <= last]
            if wanted:
                yield wanted
            if cursor.offset == SHARD_END and last is None:
                return
            if last is not None and records and int(records[-1][0]) >= last:
                return
            if cursor.offset == SHARD_END or (last is not None and cursor.caught_up and not records):
                raise KinesisError(f"{what} ends before {end}, which was read before: was the stream recreated?")
            time.sleep(self._settings.interval_ms / 1000)
