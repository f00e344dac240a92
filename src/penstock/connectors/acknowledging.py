"""Sources for brokers that keep messages until they are acknowledged (rule L02).

A message is acknowledged when the checkpoint that contains it completes. When a connection or a job is lost, a broker
delivers unacknowledged messages again. Messages with ids are then recognized and skipped, so each one counts once. The
checkpoint contains the ids of messages that are not known to be acknowledged.
"""

from __future__ import annotations

import queue
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import JobExecutionError, PenstockError, RecordFormatError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.core.functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    RuntimeContext,
    SourceFunction,
)
from penstock.core.state import ListStateDescriptor

__all__ = ["AcknowledgingSource", "Arrival", "Inbox"]

_POLL_SECONDS = 0.1
_REMEMBERED_CHECKPOINTS = 100
"""How long to remember the ids of an earlier run: a message that is not redelivered by then was acknowledged."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message from the broker."""

    body: bytes
    message_id: str | None
    """Unique id of the message, or ``None``."""
    token: Any
    """Token that acknowledges the message on its connection."""
    redelivered: bool = True
    """Whether the message may be a redelivery."""
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """Marks that the broker has dropped these messages: later arrivals are not repetitions of them."""

    message_ids: list[str]


Inbox = queue.SimpleQueue[Arrival | _Confirmed | BaseException]
"""The messages of a connection, in order."""


class AcknowledgingSource(SourceFunction, CheckpointedFunction, CheckpointListener):
    """Base class of these sources. Subclasses connect, put arrivals into a queue, and acknowledge them."""

    def __init__(self, deserialization_schema: DeserializationSchema) -> None:
        self._schema = deserialization_schema
        self._running = True

    # -- for subclasses -----------------------------------------------------------------------------------------

    @abstractmethod
    def connect(self, arrived: Inbox) -> Any:
        """Open a connection that puts messages into the queue, from any thread. An exception means it is lost."""

    @abstractmethod
    def acknowledge(self, connection: Any, tokens: list[Any], done: Callable[[], None]) -> None:
        """Tell the broker to drop messages. Call ``done``, from any thread, when this is certain.

        By then, all redeliveries of these messages must be in the queue.
        """

    @abstractmethod
    def disconnect(self, connection: Any) -> None:
        """Close a connection. Unacknowledged messages are delivered again."""

    def after_loss(self, error: BaseException) -> float | None:
        """Return the seconds to wait before reconnecting; ``None`` to fail."""
        return None

    # -- the life cycle -----------------------------------------------------------------------------------------

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self._state = context.get_operator_state_store().get_list_state(ListStateDescriptor("unacknowledged"))
        self._number = self._completed = context.get_restored_checkpoint_id() or 0
        self._seen: dict[str, int] = dict(self._state.get())  # id -> the checkpoint that contains the message
        self._current: list[tuple[str | None, Any]] = []
        self._pending: list[tuple[int, list[tuple[str | None, Any]]]] = []
        self._again: list[tuple[int, str, Any]] = []  # redelivered before their checkpoint was complete
        self._arrived: Inbox = queue.SimpleQueue()
        self._connection: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._schema.open()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._number = context.get_checkpoint_id()
        self._pending.append((self._number, self._current))
        self._current = []
        oldest = self._number - _REMEMBERED_CHECKPOINTS
        for message_id in [one for one, number in self._seen.items() if number < oldest]:
            del self._seen[message_id]
        self._state.update(list(self._seen.items()))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._completed = checkpoint_id
        done = [one for number, part in self._pending if number <= checkpoint_id for one in part]
        done += [(message_id, token) for number, message_id, token in self._again if number <= checkpoint_id]
        self._pending = [(number, part) for number, part in self._pending if number > checkpoint_id]
        self._again = [late for late in self._again if late[0] > checkpoint_id]
        self._acknowledge(done)

    def _acknowledge(self, messages: list[tuple[str | None, Any]]) -> None:
        tokens = [token for _, token in messages if token is not None]
        ids = [message_id for message_id, token in messages if message_id is not None and token is not None]
        if self._connection is not None and tokens:
            arrived = self._arrived
            # After the earlier arrivals, because they may contain a redelivery of one of these messages.
            self.acknowledge(self._connection, tokens, lambda: arrived.put(_Confirmed(ids)))

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        connected = False
        while self._running:
            arrived: Inbox = queue.SimpleQueue()
            try:
                connection = self.connect(arrived)
                with ctx.get_checkpoint_lock():
                    self._arrived, self._connection = arrived, connection
                connected = True
                self._receive(ctx, arrived)
            except ConnectionError as error:
                wait = self.after_loss(error) if connected else None
                if wait is None:
                    raise JobExecutionError(str(error)) from error
                self._lose_connection(ctx)
                self._pause(wait)

    def _receive(self, ctx: SourceFunction.SourceContext, arrived: Inbox) -> None:
        while self._running:
            try:
                arrival = arrived.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if isinstance(arrival, _Confirmed):
                with ctx.get_checkpoint_lock():
                    for message_id in arrival.message_ids:
                        self._seen.pop(message_id, None)
                continue
            if isinstance(arrival, (ConnectionError, PenstockError)):
                raise arrival
            if isinstance(arrival, BaseException):
                raise JobExecutionError(f"receiving failed: {type(arrival).__name__}: {arrival}") from arrival
            value = self._decoded(arrival)
            if value is not None and self._schema.is_end_of_stream(value):
                self._running = False
                return
            with ctx.get_checkpoint_lock():
                self._take(ctx, arrival, value)

    def _take(self, ctx: SourceFunction.SourceContext, arrival: Arrival, value: Any) -> None:
        message_id, token = arrival.message_id, arrival.token
        number = None if message_id is None or not arrival.redelivered else self._seen.get(message_id)
        if message_id is not None and number is not None and number > self._completed:
            self._again.append((number, message_id, token))
        elif number is not None or value is None:  # no need to remember it
            self._acknowledge([(message_id, token)])
        else:
            self._current.append((message_id, token))
            if message_id is not None:
                self._seen[message_id] = self._number + 1
            if arrival.timestamp is None:
                ctx.collect(value)
            else:
                ctx.collect_with_timestamp(value, arrival.timestamp)

    def _decoded(self, arrival: Arrival) -> Any:
        try:
            return self._schema.deserialize(arrival.body)
        except Exception as error:
            reason = error.reason if isinstance(error, RecordFormatError) else f"{type(error).__name__}: {error}"
            name = self.get_runtime_context().get_task_name()
            raise RecordFormatError(
                f"source '{name}' cannot read a message ({shorten(reason)}); to skip or keep such messages, read bytes "
                "with ByteArraySchema and use decode()",
                message=arrival.body,
            ) from None

    def _lose_connection(self, ctx: SourceFunction.SourceContext) -> None:
        """Discard the tokens, which are no longer valid: the broker sends unacknowledged messages again."""
        with ctx.get_checkpoint_lock():
            connection, self._connection = self._connection, None
            self._current = [(message_id, None) for message_id, _ in self._current]
            self._pending = [(number, [(one, None) for one, _ in part]) for number, part in self._pending]
            self._again = []
        if connection is not None:
            self.disconnect(connection)

    def _pause(self, seconds: float) -> None:
        silence: queue.SimpleQueue[None] = queue.SimpleQueue()
        while self._running and seconds > 0:
            try:
                silence.get(timeout=min(seconds, _POLL_SECONDS))
            except queue.Empty:
                seconds -= _POLL_SECONDS

    def cancel(self) -> None:
        self._running = False

    def close(self) -> None:
        if self._connection is not None:
            self.disconnect(self._connection)
            self._connection = None
