"""Sinks for key-value and document stores. The last value of a key remains, so repeated writes change nothing.

With deterministic keys, such a sink is effectively exactly-once, except that a reader may see older values again while
a batch is repeated after a failure (rules L03, S04).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["Change", "RetryLaterError", "UpsertClient", "UpsertSink"]


@dataclass(frozen=True, slots=True)
class Change:
    """The new value of a key; ``None`` deletes the key."""

    key: Any
    value: Any


class RetryLaterError(Exception):
    """Raised by a client if the store is busy or unreachable. Contains the remaining writes."""

    def __init__(self, reason: str, rest: Sequence[Change] | None = None) -> None:
        super().__init__(reason)
        self.rest = rest


class UpsertClient(ABC):
    """A connection to the store, for one writer."""

    @abstractmethod
    def apply(self, changes: Sequence[Change]) -> None:
        """Apply the changes, with at most one per key. Raise :class:`RetryLaterError` if a retry may help."""

    def close(self) -> None:
        """Called once at the end."""
        return


class UpsertSink(Sink):
    """Base class of these sinks. Define how to connect, and the key and value of a record.

    >>> STORE = {}
    >>> class Client(UpsertClient):
    ...     def apply(self, changes):
    ...         for change in changes:
    ...             STORE[change.key] = change.value
    >>> class ToStore(UpsertSink):
    ...     def connect(self, context):
    ...         return Client()
    >>> sink = ToStore(key=lambda record: record[0], value=lambda record: record[1])
    >>> writer = sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1))
    >>> writer.write_batch([("a", 1), ("b", 2), ("a", 3)], None)
    >>> writer.flush(end_of_input=True)
    >>> STORE
    {'a': 3, 'b': 2}
    """

    def __init__(
        self,
        *,
        key: Callable[[Any], Any],
        value: Callable[[Any], Any] = lambda record: record,
        batch_size: int = 1_000,
        max_retries: int = 5,
        retry_backoff_ms: int = 100,
        backoff_growth: int = 2,
        flush_interval_ms: int | None = None,
    ) -> None:
        if batch_size <= 0 or max_retries < 0 or retry_backoff_ms < 0 or backoff_growth < 1:
            raise InvalidProgramError(
                "an upsert sink needs a positive batch size, and retries and delays of at least 0"
            )
        self.key = key
        self.value = value
        self.batch_size = batch_size
        self.max_retries = max_retries
        self.retry_backoff_ms = retry_backoff_ms
        self.backoff_growth = backoff_growth
        self.flush_interval_ms = flush_interval_ms

    @abstractmethod
    def connect(self, context: WriterInitContext) -> UpsertClient:
        """Create a client for one writer."""

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return UpsertWriter(self, self.connect(context))


class UpsertWriter(SinkWriter):
    """Collects the last value of each key and applies them in groups."""

    def __init__(self, sink: UpsertSink, client: UpsertClient) -> None:
        self._sink = sink
        self._client = client
        self._changes: dict[Any, Any] = {}
        self._since = 0.0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        key, value = self._sink.key, self._sink.value
        for record in values:
            self.put(key(record), value(record))

    def put(self, key: Any, value: Any) -> None:
        """Set the new value of a key."""
        if not self._changes:
            self._since = time.monotonic()
        self._changes[key] = value
        interval = self._sink.flush_interval_ms
        overdue = interval is not None and time.monotonic() - self._since >= interval / 1000
        if overdue or len(self._changes) >= self._sink.batch_size:
            self._apply()

    def flush(self, end_of_input: bool) -> None:
        if self._changes:
            self._apply()

    def _apply(self) -> None:
        changes: Sequence[Change] = [Change(key, value) for key, value in self._changes.items()]
        self._changes.clear()
        failures = 0
        while changes:
            try:
                self._client.apply(changes)
            except RetryLaterError as error:
                failures += 1
                if failures > self._sink.max_retries:
                    raise
                changes = error.rest if error.rest is not None else changes
                growth = min(self._sink.backoff_growth ** min(failures - 1, 7), 100)
                time.sleep(self._sink.retry_backoff_ms * growth / 1000)
            else:
                return

    def close(self) -> None:
        self._client.close()

    def __del__(self) -> None:
        """Close the client: a worker may drop a task without closing it."""
        self._client.close()
