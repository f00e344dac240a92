"""Concurrent writes, with retries while Cassandra is unavailable."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import InvalidProgramError, JobExecutionError, shorten
from penstock.connectors.cassandra.connection import Connection, is_temporary
from penstock.connectors.cassandra.options import CassandraFailureHandler, CassandraWriteError
from penstock.connectors.cassandra.statements import Statements

__all__ = ["ExecutorSettings", "WriteExecutor"]


@dataclass(frozen=True)
class ExecutorSettings:
    """Settings of writes."""

    max_concurrent_requests: int = 512
    permit_timeout: float | None = None
    max_retries: int = 3
    retry_backoff: float = 0.2
    failure_handler: CassandraFailureHandler = field(default_factory=CassandraFailureHandler)


@dataclass(slots=True)
class _Write:
    """A record and the timestamp of its write, which stays the same for retries."""

    record: Any
    timestamp: int


class WriteExecutor:
    """Writes records asynchronously; :meth:`flush` waits until all of them are in Cassandra.

    Writes may overtake each other on the way, but their timestamps keep the order: of two writes to one row, the later
    one wins, even if the earlier one is retried.
    """

    def __init__(self, connection: Connection, statements: Statements, settings: ExecutorSettings) -> None:
        self._connection = connection
        self._statements = statements
        self._settings = settings
        self._next_timestamp = 0
        self._in_flight = 0
        self._changed = threading.Condition()
        self._failures: list[tuple[_Write, Exception]] = []

    def begin_batch(self, processing_time: int) -> None:
        """Derive the timestamps of writes from the processing time of the batch, in ms. Neither decreases."""
        self._next_timestamp = max(self._next_timestamp, processing_time * 1_000)

    def write_all(self, records: Iterable[Any]) -> None:
        """Start writing records, in their order."""
        limit = self._settings.max_concurrent_requests
        for record in records:
            if len(self._failures) >= limit:
                self.flush()
            self._start(_Write(record, self._next_timestamp))
            self._next_timestamp += 1

    def flush(self) -> None:
        """Wait for all writes. Failed writes are retried or passed to the failure handler."""
        settings = self._settings
        for attempt in itertools.count():
            self._wait_for(lambda: self._in_flight == 0, None)
            failures, self._failures = self._failures, []
            again: list[_Write] = []
            for write, error in failures:
                if attempt < settings.max_retries and is_temporary(error):
                    again.append(write)
                else:
                    self._report(write, error)
            if not again:
                return
            self._connection.close()
            time.sleep(min(settings.retry_backoff * 2**attempt, 5.0))
            self._start_again(again)

    def _start_again(self, writes: Sequence[_Write]) -> None:
        try:
            self._connection.open()
        except Exception as error:  # connect once, not once for each write
            self._failures += [(write, error) for write in writes]
            return
        for write in writes:
            self._start(write)

    def _start(self, write: _Write) -> None:
        settings = self._settings
        if not self._wait_for(lambda: self._in_flight < settings.max_concurrent_requests, settings.permit_timeout):
            raise JobExecutionError(
                f"none of {settings.max_concurrent_requests} concurrent requests to Cassandra ended within "
                f"{settings.permit_timeout} seconds, while the record {shorten(write.record)} waits"
            )
        with self._changed:
            self._in_flight += 1
        try:
            statement = self._bind(write.record)
            future = self._connection.execute_async(
                statement, timestamp=write.timestamp, trace=self._statements.tracing
            )
        except Exception as error:
            self._failed(error, write)
        else:
            future.add_callbacks(self._succeeded, self._failed, errback_args=(write,))

    def _bind(self, record: Any) -> Any:
        from cassandra.query import UNSET_VALUE

        cql, values = self._statements.bind(record)
        prepared = self._connection.prepare(cql)
        marks = len(prepared.column_metadata)
        if len(values) != marks:
            raise InvalidProgramError(f"the query has {marks} question marks, the record {len(values)} fields")
        if not self._statements.nulls_delete:
            values = [UNSET_VALUE if value is None else value for value in values]
        statement = prepared.bind(values)
        if self._statements.consistency_level is not None:
            statement.consistency_level = self._statements.consistency_level
        return statement

    # -- called in the driver's thread ---------------------------------------------------------------------------

    def _succeeded(self, rows: Any) -> None:
        with self._changed:
            self._in_flight -= 1
            self._changed.notify()

    def _failed(self, error: Exception, write: _Write) -> None:
        with self._changed:
            self._failures.append((write, error))
            self._in_flight -= 1
            self._changed.notify()

    # ------------------------------------------------------------------------------------------------------------

    def _wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def _report(self, write: _Write, error: Exception) -> None:
        failure = CassandraWriteError(shorten(write.record), f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        self._settings.failure_handler.on_failure(failure)

    def close(self) -> None:
        """Close the session. Writes in flight are dropped."""
        self._connection.close()
