"""Writes rows to Cassandra with upserts. Needs the extra ``cassandra``.

A write to Cassandra is an upsert: the last row with a primary key remains. The timestamp of a write decides which row
is the last, and these sinks take it from the batch. If a batch is repeated after a failure, it therefore writes the
same rows with the same timestamps and replaces nothing newer. Programs that are not deterministic need the write-ahead
log, which writes rows when their checkpoint completes.

| file | content |
|---|---|
| `options.py` | the connection, the mapping of dataclasses, the handling of failed writes |
| `mapping.py` | dataclasses as rows of a table |
| `statements.py` | converts a record to a statement and its values |
| `connection.py` | a session and its prepared statements |
| `executor.py` | concurrent writes, with retries while Cassandra is unavailable |
| `writer.py` | the sink that writes records as they arrive |
| `write_ahead.py` | the sink that writes after the checkpoint, and the table of its writes |
"""

from __future__ import annotations

from penstock.connectors.cassandra.mapping import column, table
from penstock.connectors.cassandra.options import (
    CassandraFailureHandler,
    CassandraWriteError,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from penstock.connectors.cassandra.write_ahead import CassandraCommitter

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraWriteError",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
    "column",
    "table",
]
