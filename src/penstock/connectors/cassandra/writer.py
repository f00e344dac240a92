"""The sink that writes records as they arrive: at-least-once, and effectively exactly-once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.connectors.cassandra.connection import Connection
from penstock.connectors.cassandra.executor import ExecutorSettings, WriteExecutor
from penstock.connectors.cassandra.options import ClusterBuilder
from penstock.connectors.cassandra.statements import Statements
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["CassandraUpsertSink"]


class CassandraUpsertSink(Sink):
    """Writes records while their batch runs. All of them are in Cassandra before its checkpoint completes."""

    def __init__(self, builder: ClusterBuilder, statements: Statements, settings: ExecutorSettings) -> None:
        self._builder = builder
        self._statements = statements
        self._settings = settings

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        connection = Connection(self._builder)
        connection.open()
        return _UpsertWriter(WriteExecutor(connection, self._statements, self._settings))


class _UpsertWriter(SinkWriter):
    def __init__(self, executor: WriteExecutor) -> None:
        self._executor = executor

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._executor.begin_batch(self.current_processing_time)
        self._executor.write_all(values)

    def flush(self, end_of_input: bool) -> None:
        self._executor.flush()

    def close(self) -> None:
        self._executor.close()
