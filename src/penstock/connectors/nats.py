"""A source and a sink for NATS JetStream, based on nats-py. Flink has no such connector, so the names are our own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.connectors.acknowledging import AcknowledgingSource, Arrival, Inbox
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["JetStreamSink", "JetStreamSource"]

_SECONDS = 20.0
_FETCH = 500
_FETCH_SECONDS = 0.2


def _nats() -> Any:
    try:
        import nats
    except ImportError:
        raise InvalidProgramError("NATS needs the package nats-py: pip install 'penstock[nats]'") from None
    return nats


class _Link:
    """A connection with an event loop in its own thread."""

    def __init__(self, servers: list[str], lost: Callable[[], None]) -> None:
        self.acknowledged: list[Callable[[], None]] = []
        """Called when all earlier messages have been passed on."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="nats", daemon=True)
        self._thread.start()

        async def disconnected() -> None:
            lost()

        async def ignored(_: Exception) -> None:
            return

        try:
            self.client = self.call(
                _nats().connect(
                    servers=servers,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0.1,
                    disconnected_cb=disconnected,
                    error_cb=ignored,
                    connect_timeout=_SECONDS,
                )
            )
        except Exception as error:
            self._end()
            raise ConnectionError(f"cannot connect to NATS at {', '.join(servers)}: {error}") from error
        self.stream = self.client.jetstream(timeout=_SECONDS)

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(2 * _SECONDS)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.call(self.client.close())
        self._end()

    def _end(self) -> None:
        async def cancel_all() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        with contextlib.suppress(Exception):
            self.call(cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self.loop.close()


class JetStreamSource(AcknowledgingSource):
    """Reads the messages of a subject in a JetStream stream in one task, for ``env.add_source``.

    A message is acknowledged to a durable consumer when its checkpoint completes. Redelivered messages are recognized
    by their number in the stream, which never changes, so each message counts once.

    :param durable: the name of the consumer, which is permanent; use one for each job. It is created if it does not
        exist, and starts at the first message of the stream
    :param max_ack_pending: the maximum number of delivered messages that are not acknowledged yet
    :param ack_wait_ms: after which time the server redelivers unacknowledged messages, and so how long a restarted job
        waits for them; an existing consumer keeps its setting
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        durable: str,
        deserialization_schema: DeserializationSchema,
        *,
        max_ack_pending: int = 10_000,
        ack_wait_ms: int = 10_000,
        reconnect_ms: int = 1_000,
    ) -> None:
        _nats()
        super().__init__(deserialization_schema)
        if not subject or not durable or max_ack_pending < 1:
            raise InvalidProgramError("a JetStream source needs a subject, a durable name and a positive window")
        self._servers = [servers] if isinstance(servers, str) else list(servers)
        self._subject = subject
        self._durable = durable
        self._max_ack_pending = max_ack_pending
        self._ack_wait_ms = ack_wait_ms
        self._reconnect_ms = reconnect_ms

    def connect(self, arrived: Inbox) -> Any:
        link = _Link(self._servers, lambda: arrived.put(ConnectionError("NATS disconnected")))
        try:
            subscription = link.call(self._subscribe(link))
        except Exception as error:
            link.close()
            raise JobExecutionError(
                f"cannot read subject '{self._subject}' at {', '.join(self._servers)}: {type(error).__name__}: "
                f"{error}; does a stream with this subject exist?"
            ) from error
        asyncio.run_coroutine_threadsafe(_receive(subscription, arrived, link), link.loop)
        return link

    async def _subscribe(self, link: _Link) -> Any:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.ALL,
            ack_wait=self._ack_wait_ms / 1000,
            max_ack_pending=self._max_ack_pending,
        )
        return await link.stream.pull_subscribe(self._subject, durable=self._durable, config=config)

    def acknowledge(self, connection: Any, tokens: list[Any], done: Callable[[], None]) -> None:
        asyncio.run_coroutine_threadsafe(_acknowledge(tokens, done, connection), connection.loop)

    def disconnect(self, connection: Any) -> None:
        connection.close()

    def after_loss(self, error: BaseException) -> float | None:
        return self._reconnect_ms / 1000


async def _receive(subscription: Any, arrived: Inbox, link: _Link) -> None:
    errors = _nats().errors
    while True:
        acknowledged, link.acknowledged = link.acknowledged, []
        try:
            messages = await subscription.fetch(_FETCH, timeout=_FETCH_SECONDS)
        except (TimeoutError, errors.TimeoutError):
            messages = []
        except asyncio.CancelledError:
            raise
        except Exception as error:
            arrived.put(ConnectionError(f"NATS disconnected: {type(error).__name__}: {error}"))
            return
        for message in messages:
            arrived.put(Arrival(message.data, str(message.metadata.sequence.stream), message))
        if len(messages) == _FETCH:  # more messages may have arrived before the acknowledgement
            link.acknowledged = acknowledged + link.acknowledged
            continue
        for done in acknowledged:
            done()


async def _acknowledge(messages: list[Any], done: Callable[[], None], link: _Link) -> None:
    """Acknowledge messages. Late acknowledgements cause redelivery, so a copy may arrive before the response."""
    with contextlib.suppress(Exception):  # a lost connection: the messages are redelivered
        for message in messages[:-1]:
            await message.ack()
        await messages[-1].ack_sync(timeout=_SECONDS)  # responds when all of them have arrived
        link.acknowledged.append(done)


class JetStreamSink(Sink):
    """Writes records as messages of a subject, exactly-once within the stream's duplicate window.

    Message ids consist of job, checkpoint and position. If a batch is repeated within the window (by default two
    minutes), it sends the same ids, and the server drops the duplicates. After the window, the messages appear twice.
    """

    needs_equal_batches = True

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str | Callable[[Any], str],
        serialization_schema: SerializationSchema,
    ) -> None:
        _nats()
        self.servers = [servers] if isinstance(servers, str) else list(servers)
        self.subject = subject
        self.schema = serialization_schema

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _JetStreamWriter(self, context)


class _JetStreamWriter(SinkWriter):
    def __init__(self, sink: JetStreamSink, context: WriterInitContext) -> None:
        self._sink = sink
        self._name = f"{context.job_id}-{context.sink_id}-{context.subtask_id}"
        self._checkpoint_id = context.checkpoint_id
        self._messages: list[tuple[str, bytes]] = []
        self._link: _Link | None = None
        sink.schema.open()

    def begin(self, checkpoint_id: int) -> None:
        self._checkpoint_id = checkpoint_id

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        subject, serialize = self._sink.subject, self._sink.schema.serialize
        for value in values:
            self._messages.append((subject if isinstance(subject, str) else subject(value), serialize(value)))

    def flush(self, end_of_input: bool) -> None:
        messages, self._messages = self._messages, []
        if not messages:
            return
        try:
            if self._link is None:
                self._link = _Link(self._sink.servers, lambda: None)
            self._link.call(self._send(self._link, messages))
        except Exception as error:
            self.close()
            raise JobExecutionError(
                f"{len(messages)} messages could not be sent to NATS: {type(error).__name__}: {error}"
            ) from error

    async def _send(self, link: _Link, messages: list[tuple[str, bytes]]) -> None:
        for low in range(0, len(messages), _FETCH):
            waiting = [
                link.stream.publish(
                    subject, data, headers={"Nats-Msg-Id": f"{self._name}-{self._checkpoint_id}-{number}"}
                )
                for number, (subject, data) in enumerate(messages[low : low + _FETCH], low)
            ]
            await asyncio.gather(*waiting)

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def __del__(self) -> None:
        """Close the connection: a worker may drop a task without closing it."""
        self.close()
