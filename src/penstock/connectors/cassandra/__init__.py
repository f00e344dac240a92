"""Rows into Cassandra, by upserts; needs the extra ``cassandra``.

A write to Cassandra is an upsert: the last row of a primary key stays. The timestamp of a write decides which row is
the last, and these sinks take it from the batch. A batch that is repeated after a failure therefore writes the same
rows with the same timestamps, and replaces nothing newer. Programs that are not deterministic need the write-ahead
log: it writes rows when their checkpoint is complete.

| file | what it is |
|---|---|
| `options.py` | where Cassandra is, how dataclasses are written, what happens to a write that fails |
| `mapping.py` | dataclasses as rows of a table |
| `statements.py` | a record as a statement and its values |
| `connection.py` | a session and its prepared statements |
| `executor.py` | many writes at once, and again while Cassandra is away |
| `writer.py` | the sink that writes as records come |
| `write_ahead.py` | the sink that writes after the checkpoint, and the table of what it has written |
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
