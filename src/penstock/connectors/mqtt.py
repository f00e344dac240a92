"""A source and a sink for MQTT topics, based on paho-mqtt. Flink has no such connector, so the names are our own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.connectors.acknowledging import AcknowledgingSource, Arrival, Inbox
from penstock.core.sink import Sink, SinkWriter, WriterInitContext

__all__ = ["MqttBroker", "MqttSink", "MqttSource"]

_NEVER = 0xFFFFFFFF  # a session that does not expire
_SECONDS = 20.0
_NO_TOPIC = "penstock/acknowledged"


@dataclass(frozen=True, slots=True)
class MqttBroker:
    """The address of a broker. The protocol is MQTT 5."""

    host: str
    port: int = 1883
    username: str | None = None
    password: str | None = None
    tls: bool = False

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}"

    def client(self, client_id: str, *, manual_ack: bool) -> Any:
        """Create a paho client that is not connected yet."""
        mqtt = _paho()
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=mqtt.MQTTv5,
            manual_ack=manual_ack,
            reconnect_on_failure=not manual_ack,  # the source reconnects itself
        )
        if self.username is not None:
            client.username_pw_set(self.username, self.password)
        if self.tls:
            client.tls_set()
        return client


def _paho() -> Any:
    try:
        from paho.mqtt import client
    except ImportError:
        raise InvalidProgramError("MQTT needs the package paho-mqtt: pip install 'penstock[mqtt]'") from None
    return client


def _properties(**values: Any) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    make: Any = Properties
    properties = make(PacketTypes.CONNECT)
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


class MqttSource(AcknowledgingSource):
    """Reads the messages of topics (also with wildcards) in one task, for ``env.add_source``.

    With quality of service 1, the broker keeps a session for ``client_id``. Messages that arrive while the job is down
    wait there, and unacknowledged ones are redelivered, marked as duplicates and with their old packet id. The
    checkpoint contains these ids, so each message counts once. A broker that restarts may forget the mark, and then
    redelivered messages count again. With quality of service 0, messages that arrive while the job is down are lost.

    Quality of service 2 is not supported: a client then takes over a message before it can be in a checkpoint, so a
    crash would lose it. Messages published with 2 arrive with 1 here.

    The session belongs to the client id: give each job its own one, and never change it.
    """

    def __init__(
        self,
        broker: MqttBroker,
        topics: str | Sequence[str],
        client_id: str,
        deserialization_schema: DeserializationSchema,
        *,
        qos: int = 1,
        receive_maximum: int = 65_535,
        reconnect_ms: int = 1_000,
    ) -> None:
        _paho()
        super().__init__(deserialization_schema)
        self._broker = broker
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._client_id = client_id
        self._qos = qos
        self._receive_maximum = receive_maximum
        self._reconnect_ms = reconnect_ms
        if not self._topics or not client_id:
            raise InvalidProgramError("an MQTT source needs a topic and a client id")
        if qos not in (0, 1):
            raise InvalidProgramError(
                f"an MQTT source needs a quality of service of 0 or 1, got {qos}: with 2 a crash would lose messages "
                "that are in no checkpoint yet, while 1 delivers each of them once here"
            )
        if not 0 < receive_maximum < 65_536:
            raise InvalidProgramError(f"the receive maximum must be from 1 to 65,535, got {receive_maximum}")

    def connect(self, arrived: Inbox) -> Any:
        client = self._broker.client(self._client_id, manual_ack=True)
        ready = threading.Event()

        def on_connect(client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
            if reason.is_failure:
                arrived.put(JobExecutionError(f"the MQTT broker at {self._broker!r} rejected the connection: {reason}"))
            else:
                client.subscribe([(topic, self._qos) for topic in self._topics])
            ready.set()

        def on_subscribe(_: Any, __: Any, ___: Any, reasons: Any, ____: Any) -> None:
            for topic, reason in zip(self._topics, reasons, strict=False):
                if reason.is_failure:
                    arrived.put(JobExecutionError(f"the MQTT broker rejected the subscription to {topic!r}: {reason}"))

        def on_message(_: Any, __: Any, message: Any) -> None:
            known = message.qos > 0
            arrived.put(
                Arrival(
                    bytes(message.payload),
                    str(message.mid) if known else None,
                    (message.mid, message.qos) if known else None,
                    redelivered=bool(message.dup),
                )
            )

        def on_disconnect(_: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
            arrived.put(ConnectionError(f"the MQTT broker at {self._broker!r} disconnected: {reason}"))

        def on_unsubscribe(client: Any, _: Any, number: int, *__: Any) -> None:
            with client.waiting_lock:
                done = client.waiting.pop(number, None)
            if done is not None:
                done()

        client.waiting, client.waiting_lock = {}, threading.Lock()
        client.on_connect, client.on_message, client.on_subscribe = on_connect, on_message, on_subscribe
        client.on_unsubscribe = on_unsubscribe
        client.on_disconnect = on_disconnect
        properties = _properties(SessionExpiryInterval=_NEVER, ReceiveMaximum=self._receive_maximum)
        try:
            client.connect(self._broker.host, self._broker.port, clean_start=self._qos == 0, properties=properties)
        except OSError as error:
            raise ConnectionError(f"cannot connect to the MQTT broker at {self._broker!r}: {error}") from error
        client.loop_start()
        if not ready.wait(_SECONDS):
            client.loop_stop()
            raise ConnectionError(f"the MQTT broker at {self._broker!r} does not answer")
        return client

    def acknowledge(self, connection: Any, tokens: list[Any], done: Callable[[], None]) -> None:
        for mid, qos in tokens:
            connection.ack(mid, qos)
        # Packets are handled in order, so the response to this one proves that the acknowledgements have arrived.
        with connection.waiting_lock:
            _, number = connection.unsubscribe(_NO_TOPIC)
            if number is not None:
                connection.waiting[number] = done

    def disconnect(self, connection: Any) -> None:
        connection.on_disconnect = None
        with contextlib.suppress(Exception):
            connection.disconnect()
        connection.loop_stop()

    def after_loss(self, error: BaseException) -> float | None:
        return self._reconnect_ms / 1000


class MqttSink(Sink):
    """Writes records as messages of a topic, at-least-once with quality of service 1 or 2.

    A checkpoint completes when the broker has acknowledged its messages.

    :param topic: a name, or a function of the record
    """

    def __init__(
        self,
        broker: MqttBroker,
        topic: str | Callable[[Any], str],
        serialization_schema: SerializationSchema,
        *,
        qos: int = 1,
        retain: bool = False,
    ) -> None:
        _paho()
        if qos not in (0, 1, 2):
            raise InvalidProgramError(f"an MQTT sink needs a quality of service of 0, 1 or 2, got {qos}")
        self.broker = broker
        self.topic = topic
        self.schema = serialization_schema
        self.qos = qos
        self.retain = retain

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _MqttWriter(self)


class _MqttWriter(SinkWriter):
    def __init__(self, sink: MqttSink) -> None:
        self._sink = sink
        self._client: Any = None
        self._sent: list[Any] = []
        sink.schema.open()

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        sink = self._sink
        client = self._connected()
        for value in values:
            topic = sink.topic if isinstance(sink.topic, str) else sink.topic(value)
            self._sent.append(client.publish(topic, sink.schema.serialize(value), qos=sink.qos, retain=sink.retain))

    def _connected(self) -> Any:
        if self._client is None:
            client = self._sink.broker.client("", manual_ack=False)
            try:
                client.connect(self._sink.broker.host, self._sink.broker.port, clean_start=True)
            except OSError as error:
                raise JobExecutionError(
                    f"cannot connect to the MQTT broker at {self._sink.broker!r}: {error}"
                ) from error
            client.loop_start()
            self._client = client
        return self._client

    def flush(self, end_of_input: bool) -> None:
        sent, self._sent = self._sent, []
        try:
            for message in sent:
                message.wait_for_publish(_SECONDS)
                if not message.is_published():
                    raise JobExecutionError(f"the MQTT broker at {self._sink.broker!r} acknowledged no message")
        except (RuntimeError, ValueError) as error:
            raise JobExecutionError(f"a message could not be sent to {self._sink.broker!r}: {error}") from error

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.disconnect()
            client.loop_stop()

    def __del__(self) -> None:
        """Close the connection: a worker may drop a task without closing it."""
        self.close()
