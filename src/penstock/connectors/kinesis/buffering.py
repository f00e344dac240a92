"""Sends records in concurrent batches, and retries those that a service rejects.

The rules are those of Flink's asynchronous sinks. A micro-batch ends when the service has accepted all records, so they
are written at-least-once. A retried record comes after others.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import SerializationSchema
from penstock.connectors.kinesis.client import (
    LOG,
    KinesisError,
    boto3_package,
    check_properties,
    is_away,
    is_busy,
    reason,
)
from penstock.core.sink import SinkWriter, WriterInitContext

__all__ = ["BufferedBuilder", "BufferedWriter", "Buffering", "Refused"]

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0

Entry = dict[str, Any]
Send = Callable[[list[Entry]], "list[Refused]"]


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that the service rejected, and why."""

    position: int
    why: str

    @staticmethod
    def among(results: Sequence[Mapping[str, Any]]) -> list[Refused]:
        """Return the rejected entries of a response, whose results are in the order of the entries.

        >>> Refused.among([{"SequenceNumber": "49"}, {"ErrorCode": "Throttled", "ErrorMessage": "slow down"}])
        [Refused(position=1, why='Throttled: slow down')]
        """
        return [
            Refused(position, f"{result['ErrorCode']}: {result.get('ErrorMessage', '')}")
            for position, result in enumerate(results)
            if result.get("ErrorCode")
        ]


@dataclass(frozen=True)
class Buffering:
    """Settings: when to send records, and what to do with rejected ones."""

    max_batch_size: int = 500
    max_in_flight_requests: int = 50
    max_buffered_requests: int = 10_000
    max_batch_size_in_bytes: int = 5 << 20
    max_time_in_buffer_ms: int = 5_000
    max_record_size_in_bytes: int = 1 << 20
    fail_on_error: bool = False

    def check(self) -> None:
        """Raise an error if the settings contradict each other, as in Flink."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name == "fail_on_error":
                continue
            if type(value) is not int or value <= 0:
                raise InvalidProgramError(f"set_{name}() takes a positive int, got {shorten(value)}")
        if self.max_buffered_requests < self.max_batch_size:
            raise InvalidProgramError("max_buffered_requests is less than max_batch_size: no batch would be full")
        if self.max_batch_size_in_bytes < self.max_record_size_in_bytes:
            raise InvalidProgramError("max_batch_size_in_bytes is less than max_record_size_in_bytes")


class BufferedBuilder:
    """The settings that these sinks have in common."""

    def __init__(self, buffering: Buffering) -> None:
        boto3_package()
        self._buffering = buffering
        self._schema: SerializationSchema | None = None
        self._properties: dict[str, str] | None = None

    def set_serialization_schema(self, serialization_schema: SerializationSchema) -> Self:
        """Set the serialization schema."""
        if not isinstance(serialization_schema, SerializationSchema):
            raise InvalidProgramError(f"expected a SerializationSchema, got {shorten(serialization_schema)}")
        self._schema = serialization_schema
        return self

    def set_fail_on_error(self, fail_on_error: bool) -> Self:
        """Set whether to fail the job at the first rejected record. By default, rejected records are retried."""
        return self._with(fail_on_error=bool(fail_on_error))

    def set_max_batch_size(self, max_batch_size: int) -> Self:
        """Set the maximum number of records per request."""
        return self._with(max_batch_size=max_batch_size)

    def set_max_in_flight_requests(self, max_in_flight_requests: int) -> Self:
        """Set the maximum number of concurrent requests per task."""
        return self._with(max_in_flight_requests=max_in_flight_requests)

    def set_max_buffered_requests(self, max_buffered_requests: int) -> Self:
        """Set the maximum number of waiting records. Writing blocks at this limit."""
        return self._with(max_buffered_requests=max_buffered_requests)

    def set_max_batch_size_in_bytes(self, max_batch_size_in_bytes: int) -> Self:
        """Set the maximum number of bytes per request. A request is sent when it reaches this size."""
        return self._with(max_batch_size_in_bytes=max_batch_size_in_bytes)

    def set_max_time_in_buffer_ms(self, max_time_in_buffer_ms: int) -> Self:
        """Set how long a record waits for a full request, at most until the end of the micro-batch."""
        return self._with(max_time_in_buffer_ms=max_time_in_buffer_ms)

    def set_max_record_size_in_bytes(self, max_record_size_in_bytes: int) -> Self:
        """Set the maximum size of a record. A larger one fails the job."""
        return self._with(max_record_size_in_bytes=max_record_size_in_bytes)

    def _with(self, **settings: Any) -> Self:
        self._buffering = replace(self._buffering, **settings)
        return self

    def _checked(self, sink: str) -> tuple[SerializationSchema, dict[str, str], Buffering]:
        if self._schema is None:
            raise InvalidProgramError(f"a {sink} needs set_serialization_schema()")
        if self._properties is None:
            raise InvalidProgramError(f"a {sink} needs client properties such as aws.region")
        self._buffering.check()
        return self._schema, check_properties(self._properties), self._buffering

    def _set_properties(self, properties: Mapping[str, Any]) -> Self:
        self._properties = {str(key): str(value) for key, value in properties.items()}
        return self


class BufferedWriter(SinkWriter):
    """Converts each record to an entry and puts it into the buffer."""

    def __init__(self, context: WriterInitContext, target: str, buffering: Buffering, send: Send) -> None:
        self._limit = buffering.max_record_size_in_bytes
        self._target = target
        errors = None if context.metric_group is None else context.metric_group.counter("numRecordsSendErrors")
        self._buffer = _Buffer(target, buffering, send, None if errors is None else errors.inc)

    @abstractmethod
    def entry(self, value: Any) -> tuple[Entry, int]:
        """Return the entry for a record, and its size."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        for value in values:
            entry, size = self.entry(value)
            if size > self._limit:
                raise KinesisError(
                    f"a record of {size:,} bytes is larger than max_record_size_in_bytes, {self._limit:,}, for "
                    f"{self._target} [record {shorten(value)}]"
                )
            self._buffer.put(entry, size)

    def flush(self, end_of_input: bool) -> None:
        self._buffer.flush()

    def close(self) -> None:
        self._buffer.close()

    def __del__(self) -> None:
        """Close the buffer: a worker may drop a task without closing it."""
        if hasattr(self, "_buffer"):
            self._buffer.close()


class _Buffer:
    """Waiting entries and requests in flight. A thread sends entries that have waited too long."""

    def __init__(
        self, target: str, settings: Buffering, send: Send, count_errors: Callable[[int], None] | None
    ) -> None:
        self._target = target
        self._settings = settings
        self._send = send
        self._count_errors = count_errors
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Entry, int]] = deque()
        self._bytes = 0
        self._since = 0.0
        self._in_flight = 0
        self._refusals = 0
        self._not_before = 0.0
        self._failure: KinesisError | None = None
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None

    def put(self, entry: Entry, size: int) -> None:
        """Add an entry. Wait while the buffer is full."""
        with self._changed:
            while len(self._waiting) >= self._settings.max_buffered_requests:
                self._check()
                self._send_batches(everything=True)
                if len(self._waiting) >= self._settings.max_buffered_requests:
                    self._wait()
            self._check()
            if not self._waiting:
                self._since = time.monotonic()
                self._changed.notify_all()
            self._waiting.append((entry, size))
            self._bytes += size
            self._start()
            self._send_batches()

    def flush(self) -> None:
        """Send all entries, and wait until they are accepted."""
        with self._changed:
            while self._waiting or self._in_flight:
                self._check()
                self._send_batches(everything=True)
                if self._waiting or self._in_flight:
                    self._wait()
            self._check()

    def close(self) -> None:
        """Stop sending."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wait(self) -> None:
        pause = self._not_before - time.monotonic()
        self._changed.wait(pause if self._waiting and pause > 0 else None)

    def _start(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._settings.max_in_flight_requests, "kinesis-sink")
            threading.Thread(target=self._watch, name="kinesis-sink-timer", daemon=True).start()

    def _send_batches(self, *, everything: bool = False) -> None:
        settings = self._settings
        while (
            self._waiting
            and not self._closed
            and self._in_flight < settings.max_in_flight_requests
            and time.monotonic() >= self._not_before
            and (
                everything
                or len(self._waiting) >= settings.max_batch_size
                or self._bytes >= settings.max_batch_size_in_bytes
            )
        ):
            self._send_batch()

    def _send_batch(self) -> None:
        assert self._pool is not None
        batch: list[tuple[Entry, int]] = []
        size = 0
        while self._waiting and len(batch) < self._settings.max_batch_size:
            if batch and size + self._waiting[0][1] > self._settings.max_batch_size_in_bytes:
                break
            batch.append(self._waiting.popleft())
            size += batch[-1][1]
        self._bytes -= size
        self._since = time.monotonic()
        self._in_flight += 1
        self._pool.submit(self._request, batch)

    def _request(self, batch: list[tuple[Entry, int]]) -> None:
        """Send one request and collect the entries to retry. Runs in a thread of the pool."""
        failure: KinesisError | None = None
        refused: list[Refused] = []
        try:
            refused = self._send([entry for entry, _ in batch])
        except Exception as error:
            if is_busy(error) or is_away(error):
                refused = [Refused(position, reason(error)) for position in range(len(batch))]
            else:
                failure = KinesisError(f"cannot write to {self._target}: {reason(error)}")
        with self._changed:
            self._in_flight -= 1
            self._refusals = self._refusals + 1 if refused else 0
            if refused:
                failure = failure or self._take_back(batch, refused)
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _take_back(self, batch: list[tuple[Entry, int]], refused: list[Refused]) -> KinesisError | None:
        what = f"{len(refused)} of {len(batch)} records were rejected by {self._target}: {refused[0].why}"
        if self._count_errors is not None:
            self._count_errors(len(refused))
        if self._settings.fail_on_error:
            return KinesisError(what)
        LOG.warning("%s; sending them again", what)
        again = [batch[one.position] for one in refused]
        self._waiting.extendleft(reversed(again))
        self._bytes += sum(size for _, size in again)
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self._refusals - 1, 10), _LONGEST_PAUSE_SECONDS)
        self._not_before = time.monotonic() + pause
        return None

    def _watch(self) -> None:
        """Send entries that have waited too long. Runs in its own thread."""
        with self._changed:
            while not self._closed:
                if not self._waiting:
                    self._changed.wait()
                    continue
                age = time.monotonic() - self._since
                if age >= self._settings.max_time_in_buffer_ms / 1000:
                    self._send_batches(everything=True)
                    self._since = time.monotonic()
                else:
                    self._changed.wait(self._settings.max_time_in_buffer_ms / 1000 - age)
