"""The sink that writes after the checkpoint, and the table of its writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.common.errors import RetryCommitError
from penstock.connectors.cassandra.connection import Connection, is_temporary
from penstock.connectors.cassandra.executor import ExecutorSettings, WriteExecutor
from penstock.connectors.cassandra.options import CassandraWriteError, ClusterBuilder
from penstock.connectors.cassandra.statements import Statements
from penstock.core.functions import CheckpointCommitter, GenericWriteAheadSink

__all__ = ["CassandraCommitter", "CassandraWriteAheadSink"]

_KEYSPACE = "penstock_auxiliary"


class CassandraWriteAheadSink(GenericWriteAheadSink):
    """Writes the records of a checkpoint when it completes.

    Records wait in the log with the checkpoint. A second run of a batch may therefore differ: only logged records are
    written, and always with the same timestamps.
    """

    def __init__(
        self,
        builder: ClusterBuilder,
        statements: Statements,
        settings: ExecutorSettings,
        committer: CheckpointCommitter,
    ) -> None:
        super().__init__(committer)
        self._executor = WriteExecutor(Connection(builder), statements, settings)

    def send_values(self, values: Sequence[Any], checkpoint_id: int, timestamp: int) -> bool:
        self._executor.begin_batch(timestamp)
        try:
            self._executor.write_all(values)
            self._executor.flush()
        except CassandraWriteError as error:
            if error.__cause__ is not None and is_temporary(error.__cause__):
                return False  # sent again later
            raise
        return True

    def close(self) -> None:
        self._executor.close()


class CassandraCommitter(CheckpointCommitter):
    """Records in a table of Cassandra which checkpoints were written.

    The table is ``checkpoints``, with a row for each job, sink and subtask.

    :param key_space: the keyspace, which is created with one replica if it does not exist
    """

    def __init__(self, builder: ClusterBuilder, key_space: str | None = None) -> None:
        self._connection = Connection(builder)
        self._keyspace = key_space or _KEYSPACE
        self._last: dict[int, int] = {}

    @staticmethod
    def default_checkpoint_committer(builder: ClusterBuilder, key_space: str | None = None) -> CassandraCommitter:
        """Create the default committer of a write-ahead log."""
        return CassandraCommitter(builder, key_space)

    def create_resource(self) -> None:
        self._execute(
            f"CREATE KEYSPACE IF NOT EXISTS {self._keyspace} "
            "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {self._keyspace}.checkpoints (job_id text, sink_id text, subtask int, "
            "checkpoint_id bigint, PRIMARY KEY ((job_id, sink_id), subtask))"
        )

    def open(self) -> None:
        rows = self._execute(
            f"SELECT subtask, checkpoint_id FROM {self._keyspace}.checkpoints "  # noqa: S608 - the user's own name
            "WHERE job_id = %s AND sink_id = %s",
            (self.job_id, self.operator_id),
        )
        self._last = {row.subtask: row.checkpoint_id for row in rows}

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        self._execute(
            f"INSERT INTO {self._keyspace}.checkpoints (job_id, sink_id, subtask, checkpoint_id) "  # noqa: S608 - same
            "VALUES (%s, %s, %s, %s)",
            (self.job_id, self.operator_id, subtask_idx, checkpoint_id),
        )
        self._last[subtask_idx] = checkpoint_id

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        return checkpoint_id <= self._last.get(subtask_idx, 0)

    def close(self) -> None:
        self._connection.close()

    def _execute(self, cql: str, values: Sequence[Any] | None = None) -> Any:
        with self._retried_later():
            return self._connection.execute(cql, values)

    @contextmanager
    def _retried_later(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not is_temporary(error):
                raise
            self._connection.close()
            raise RetryCommitError(f"Cassandra is unavailable: {error}") from error
