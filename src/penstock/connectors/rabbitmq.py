"""A source and a sink for RabbitMQ queues, based on pika, with PyFlink's names."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.unsupported import no_java_object
from penstock.connectors.acknowledging import AcknowledgingSource, Arrival, Inbox
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]

_PREFETCH = 10_000
_LOOP_SECONDS = 0.05


def _pika() -> Any:
    try:
        import pika
    except ImportError:
        raise InvalidProgramError("RabbitMQ needs the package pika: pip install 'penstock[rabbitmq]'") from None
    return pika


class RMQConnectionConfig:
    """The parameters of a connection. Create it with :class:`RMQConnectionConfig.Builder`.

    >>> builder = RMQConnectionConfig.Builder().set_host("localhost").set_port(5672).set_virtual_host("/")
    >>> config = builder.set_user_name("guest").set_password("guest").build()
    >>> config
    RMQConnectionConfig(localhost:5672/)
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._host: str | None = settings.get("host")
        self._port: int | None = settings.get("port")
        self._virtual_host: str | None = settings.get("virtual_host")
        self._user_name: str | None = settings.get("user_name")
        self._password: str | None = settings.get("password")
        self._uri: str | None = settings.get("uri")
        self._network_recovery_interval: int | None = settings.get("network_recovery_interval")
        self._automatic_recovery: bool | None = settings.get("automatic_recovery")
        self._topology_recovery: bool | None = settings.get("topology_recovery")
        self._connection_timeout: int | None = settings.get("connection_timeout")
        self._channel_max: int | None = settings.get("channel_max")
        self._frame_max: int | None = settings.get("frame_max")
        self._heartbeat: int | None = settings.get("heartbeat")
        self._prefetch_count: int | None = settings.get("prefetch_count")

    def get_host(self) -> str | None:
        return self._host

    def get_port(self) -> int | None:
        return self._port

    def get_virtual_host(self) -> str | None:
        return self._virtual_host

    def get_user_name(self) -> str | None:
        return self._user_name

    def get_password(self) -> str | None:
        return self._password

    def get_uri(self) -> str | None:
        return self._uri

    def get_network_recovery_interval(self) -> int | None:
        """Return the milliseconds between attempts to reconnect."""
        return self._network_recovery_interval

    def is_automatic_recovery(self) -> bool | None:
        """Whether to reconnect after a lost connection."""
        return self._automatic_recovery

    def is_topology_recovery(self) -> bool | None:
        """Whether to declare the queue again after a reconnect."""
        return self._topology_recovery

    def get_connection_timeout(self) -> int | None:
        """Return the milliseconds to wait for a connection."""
        return self._connection_timeout

    def get_requested_channel_max(self) -> int | None:
        return self._channel_max

    def get_requested_frame_max(self) -> int | None:
        return self._frame_max

    def get_requested_heartbeat(self) -> int | None:
        """Return the heartbeat interval in seconds."""
        return self._heartbeat

    def get_prefetch_count(self) -> int:
        """Return the maximum number of delivered messages that are not acknowledged yet because their checkpoint is not
        complete.
        """
        return self._prefetch_count or _PREFETCH

    def __repr__(self) -> str:
        return f"RMQConnectionConfig({self.address})"

    @property
    def address(self) -> str:
        """The address without the password."""
        uri = self.get_uri()
        if uri is not None:
            return uri.rpartition("@")[2]
        return f"{self.get_host()}:{self.get_port()}{self.get_virtual_host()}"

    def connect(self) -> Any:
        """Open a blocking pika connection."""
        pika = _pika()
        try:
            return pika.BlockingConnection(self._parameters(pika))
        except pika.exceptions.AMQPError as error:
            reason = str(error) or type(error).__name__
            raise ConnectionError(f"cannot connect to RabbitMQ at {self.address}: {reason}") from error

    def _parameters(self, pika: Any) -> Any:
        uri = self.get_uri()
        parameters = pika.ConnectionParameters() if uri is None else pika.URLParameters(uri)
        if uri is None:
            parameters.host, parameters.port = self.get_host(), self.get_port()
            parameters.virtual_host = self.get_virtual_host()
            parameters.credentials = pika.PlainCredentials(self.get_user_name(), self.get_password())
        timeout = self.get_connection_timeout()
        if timeout is not None:
            parameters.socket_timeout = timeout / 1000
        limits = {"channel_max": self._channel_max, "frame_max": self._frame_max, "heartbeat": self._heartbeat}
        for name, value in limits.items():
            if value is not None:
                setattr(parameters, name, value)
        return parameters

    class Builder:
        """Collects the settings: a URI, or host, port, virtual host, user and password."""

        def __init__(self) -> None:
            self._settings: dict[str, Any] = {
                "automatic_recovery": True,
                "topology_recovery": True,
                "network_recovery_interval": 5_000,
            }

        def _with(self, **settings: Any) -> Self:
            self._settings.update(settings)
            return self

        def set_host(self, host: str) -> Self:
            return self._with(host=host)

        def set_port(self, port: int) -> Self:
            return self._with(port=port)

        def set_virtual_host(self, vhost: str) -> Self:
            return self._with(virtual_host=vhost)

        def set_user_name(self, user_name: str) -> Self:
            return self._with(user_name=user_name)

        def set_password(self, password: str) -> Self:
            return self._with(password=password)

        def set_uri(self, uri: str) -> Self:
            """Set the URI, for example ``amqp://user:password@host:5672/vhost``."""
            return self._with(uri=uri)

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> Self:
            return self._with(topology_recovery=topology_recovery_enabled)

        def set_automatic_recovery(self, automatic_recovery: bool) -> Self:
            return self._with(automatic_recovery=automatic_recovery)

        def set_network_recovery_interval(self, network_recovery_interval: int) -> Self:
            """Set the milliseconds between attempts to reconnect."""
            return self._with(network_recovery_interval=network_recovery_interval)

        def set_connection_timeout(self, connection_timeout: int) -> Self:
            """Set the milliseconds to wait for a connection."""
            return self._with(connection_timeout=connection_timeout)

        def set_requested_channel_max(self, requested_channel_max: int) -> Self:
            return self._with(channel_max=requested_channel_max)

        def set_requested_frame_max(self, requested_frame_max: int) -> Self:
            return self._with(frame_max=requested_frame_max)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> Self:
            """Set the heartbeat interval in seconds."""
            return self._with(heartbeat=requested_heartbeat)

        def set_prefetch_count(self, prefetch_count: int) -> Self:
            """Set the maximum number of unacknowledged messages. The default is 10,000."""
            return self._with(prefetch_count=prefetch_count)

        def build(self) -> RMQConnectionConfig:
            parts = ("host", "port", "virtual_host", "user_name", "password")
            missing = [name for name in parts if self._settings.get(name) is None]
            if self._settings.get("uri") is None and missing:
                raise InvalidProgramError(f"a RabbitMQ connection needs a URI, or all of: {', '.join(missing)}")
            return RMQConnectionConfig(dict(self._settings))


class RMQSource(AcknowledgingSource):
    """Reads the messages of a queue in one task.

    With ``use_correlation_id``, each message counts once, if publishers give each one a unique correlation id. Without
    it, messages that are unacknowledged when the job or the connection is lost count again.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
    ) -> None:
        _pika()
        super().__init__(deserialization_schema)
        self._config = connection_config
        self._queue_name = queue_name
        self._use_correlation_id = use_correlation_id

    def connect(self, arrived: Inbox) -> Any:
        return _Consumer(self._config, self._queue_name, self._use_correlation_id, arrived)

    def acknowledge(self, connection: Any, tokens: list[Any], done: Callable[[], None]) -> None:
        connection.acknowledge(tokens, done)

    def disconnect(self, connection: Any) -> None:
        connection.close()

    def after_loss(self, error: BaseException) -> float | None:
        interval = self._config.get_network_recovery_interval()
        return None if not self._config.is_automatic_recovery() or interval is None else interval / 1000

    get_java_function = no_java_object


class _Consumer:
    """A connection with its own thread, so that heartbeats continue while the job is behind."""

    def __init__(
        self,
        config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        arrived: Inbox,
    ) -> None:
        self._use_correlation_id = use_correlation_id
        self._queue_name = queue_name
        self._arrived = arrived
        self._stopped = False
        self._connection = config.connect()
        self._channel = self._connection.channel()
        self._channel.queue_declare(queue_name, durable=True)
        self._channel.basic_qos(prefetch_count=config.get_prefetch_count())
        self._channel.basic_consume(queue_name, self._on_message, auto_ack=False)
        self._thread = threading.Thread(target=self._run, name=f"rabbitmq-{queue_name}", daemon=True)
        self._thread.start()

    def _on_message(self, _: Any, method: Any, properties: Any, body: bytes) -> None:
        message_id = properties.correlation_id if self._use_correlation_id else None
        if self._use_correlation_id and not message_id:
            self._arrived.put(
                JobExecutionError(
                    f"a message in queue '{self._queue_name}' has no correlation id: publish with one, or create the "
                    "source with use_correlation_id=False"
                )
            )
            return
        # Publishers may send an id twice, so it does not matter whether the broker marks it as redelivered.
        self._arrived.put(Arrival(body, message_id, method.delivery_tag))

    def _run(self) -> None:
        pika = _pika()
        try:
            while not self._stopped:
                self._connection.process_data_events(time_limit=_LOOP_SECONDS)
        except (pika.exceptions.AMQPError, OSError) as error:
            self._arrived.put(ConnectionError(str(error) or type(error).__name__))
        except Exception as error:
            self._arrived.put(error)
        finally:
            with contextlib.suppress(Exception):
                self._connection.close()

    def acknowledge(self, tags: list[int], done: Callable[[], None]) -> None:
        with contextlib.suppress(Exception):  # a lost connection: the messages are redelivered
            self._connection.add_callback_threadsafe(lambda: self._acknowledge(tags, done))

    def _acknowledge(self, tags: list[int], done: Callable[[], None]) -> None:
        for tag in tags:
            self._channel.basic_ack(tag)
        self._channel.queue_declare(self._queue_name, passive=True)  # responds after the acknowledgements have arrived
        done()

    def close(self) -> None:
        self._stopped = True
        if self._thread is not threading.current_thread():
            self._thread.join(5)


class RMQSink(Sink):
    """Writes records as messages of a queue, at-least-once.

    Messages are persistent and sent in one broker transaction for each task and checkpoint. Correlation ids consist of
    job, checkpoint and position, so a repeated batch sends the same ids again: an :class:`RMQSource` with
    ``use_correlation_id`` that has not acknowledged them yet skips the duplicates.
    """

    needs_equal_batches = True

    def __init__(
        self, connection_config: RMQConnectionConfig, queue_name: str, serialization_schema: SerializationSchema
    ) -> None:
        _pika()
        self._config = connection_config
        self._queue_name = queue_name
        self._schema = serialization_schema

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _QueueWriter(self._config, self._queue_name, self._schema, context)


class _QueueWriter(SinkWriter):
    def __init__(
        self, config: RMQConnectionConfig, queue_name: str, schema: SerializationSchema, context: WriterInitContext
    ) -> None:
        self._config = config
        self._queue_name = queue_name
        self._schema = schema
        schema.open()
        self._name = f"{context.job_id}-{context.sink_id}-{context.subtask_id}"
        self._checkpoint_id = context.checkpoint_id
        self._messages: list[bytes] = []
        self._connection: Any = None
        self._channel: Any = None

    def begin(self, checkpoint_id: int) -> None:
        self._checkpoint_id = checkpoint_id

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        serialize = self._schema.serialize
        self._messages += [serialize(value) for value in values]

    def flush(self, end_of_input: bool) -> None:
        messages, self._messages = self._messages, []
        if not messages:
            return
        pika = _pika()
        for attempt in (1, 2):
            try:
                self._send(pika, messages)
            except (pika.exceptions.AMQPError, OSError) as error:  # nothing of an open transaction was sent
                self.close()
                if attempt == 2 or isinstance(error, pika.exceptions.ChannelClosedByBroker):
                    reason = str(error) or type(error).__name__
                    raise JobExecutionError(
                        f"{len(messages)} messages could not be sent to queue '{self._queue_name}' at "
                        f"{self._config.address}: {reason}"
                    ) from error
            else:
                return

    def _send(self, pika: Any, messages: list[bytes]) -> None:
        if self._channel is None:
            self._connection = self._config.connect()
            self._channel = self._connection.channel()
            self._channel.queue_declare(self._queue_name, durable=True)
            self._channel.tx_select()
        for position, message in enumerate(messages):
            properties = pika.BasicProperties(
                delivery_mode=2, correlation_id=f"{self._name}-{self._checkpoint_id}-{position}"
            )
            self._channel.basic_publish("", self._queue_name, message, properties)
        self._channel.tx_commit()

    def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
