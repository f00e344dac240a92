"""MQTT, with a real mosquitto: sessions, acknowledgement with the checkpoint, messages that come again, the sink."""

import queue
import socket
import threading

import pytest
from crashing import COMMITTED, TROUBLE, CommittedSink, Crashing, Until, troublesome, wait_until
from tests.connectors.servers import free_port, mosquitto

from penstock.common import SimpleStringSchema
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.connectors.mqtt import MqttBroker, MqttSink, MqttSource

mqtt = pytest.importorskip("paho.mqtt.client")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as number:
        yield number


def send(port, topic, messages, qos=1):
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for sent in [client.publish(topic, str(message), qos=qos) for message in messages]:
        sent.wait_for_publish(20)
    client.disconnect()
    client.loop_stop()


def source(port, topic, **options):
    return MqttSource(MqttBroker("127.0.0.1", port), topic, f"client of {topic}", Until(), **options)


def begin_session(port, topic, **options):
    """Subscribes, so that the broker keeps what is sent from now on."""
    one = source(port, topic, **options)
    one.disconnect(one.connect(queue.SimpleQueue()))


@pytest.mark.parametrize("qos", [1, 2])
def test_every_message_counts_once_whatever_crashes(tmp_path, port, qos):
    topic = f"crashes/{qos}"
    begin_session(port, topic)
    send(port, topic, [*range(40), "end"], qos)  # what was published with 2 arrives with 1
    sink = CommittedSink(topic)
    TROUBLE.update(dict.fromkeys(("0", "17", "18", "33"), True))
    job = Crashing(
        tmp_path,
        lambda env: env.add_source(source(port, topic)).map(troublesome).sink_to(sink),
        max_records=3,
        receiving=True,
    )
    assert job.run() == 4
    assert sorted(map(int, sink.records)) == list(range(40))


def test_messages_that_come_while_the_job_is_away_wait_in_the_session(tmp_path, port):
    sink = CommittedSink("away")
    crashing = Crashing(
        tmp_path, lambda env: env.add_source(source(port, "away/+")).sink_to(sink), max_records=9, receiving=True
    )
    begin_session(port, "away/+")
    send(port, "away/a", ["1", "2"])
    job = crashing.start()
    while len(sink.records) < 2:
        crashing.step(job)
    crashing.snapshot = job.snapshot()
    job.close()
    send(port, "away/b", ["3", "end"])
    crashing.run()
    assert sorted(sink.records) == ["1", "2", "3"]


def receiving(job):
    return job.coordinator.sources[0].enumerator._receivers[0]._function


def test_a_lost_connection_is_made_again_and_no_message_counts_twice(tmp_path, port):
    sink = CommittedSink("lost")
    crashing = Crashing(
        tmp_path,
        lambda env: env.add_source(source(port, "lost", reconnect_ms=10)).sink_to(sink),
        max_records=4,
        receiving=True,
    )
    begin_session(port, "lost")
    send(port, "lost", range(12))
    job = crashing.start()
    while len(sink.records) < 4:
        crashing.step(job)
    before = receiving(job)._connection
    before.socket().shutdown(socket.SHUT_RDWR)
    wait_until(lambda: not job.run_batch() and receiving(job)._connection not in (None, before))
    send(port, "lost", [*range(12, 20), "end"])
    while not job.finished:
        crashing.step(job)
    job.close()
    assert sorted(map(int, sink.records)) == list(range(20))


def test_a_broker_that_restarts_is_connected_to_again_and_no_message_is_lost(tmp_path):
    """This one gives new packet ids to what it has kept: messages that were not acknowledged count again."""
    number, sink = free_port(), CommittedSink("restart")
    crashing = Crashing(
        tmp_path,
        lambda env: env.add_source(source(number, "restart", reconnect_ms=10)).sink_to(sink),
        max_records=4,
        receiving=True,
    )
    with mosquitto(tmp_path, number):
        begin_session(number, "restart")
        send(number, "restart", range(12))
        job = crashing.start()
        while len(sink.records) < 4:
            crashing.step(job)
        before = receiving(job)._connection
    wait_until(lambda: not job.run_batch() and receiving(job)._connection is not before)
    with mosquitto(tmp_path, number):
        send(number, "restart", [*range(12, 20), "end"])
        while not job.finished:
            crashing.step(job)
        job.close()
    assert set(map(int, sink.records)) == set(range(20))


def test_a_broker_that_is_not_there_and_wrong_settings_are_named(tmp_path):
    away = free_port()
    job = Crashing(tmp_path, lambda env: env.add_source(source(away, "x")).print(), receiving=True).start()
    with pytest.raises(PenstockError, match=f"cannot connect to the MQTT broker at 127.0.0.1:{away}"):
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()
    for wrong in (
        lambda: source(1, "x", qos=2),
        lambda: source(1, []),
        lambda: MqttSink(MqttBroker("h"), "t", SimpleStringSchema(), qos=7),
    ):
        with pytest.raises(InvalidProgramError):
            wrong()
    assert repr(MqttBroker("h", 1, "user", "secret")) == "h:1"


def test_the_sink_delivers_every_record_to_the_topic_it_belongs_to(tmp_path, port):
    received, topics = [], []
    enough = threading.Event()

    def on_message(_, __, message):
        received.append(int(message.payload))
        topics.append(message.topic)
        if len(set(received)) == 30:
            enough.set()

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    subscribed = threading.Event()
    client.on_message, client.on_subscribe = on_message, lambda *_: subscribed.set()
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe("sink/#", qos=1)
    assert subscribed.wait(20)
    TROUBLE.update({14: True})
    sink = MqttSink(MqttBroker("127.0.0.1", port), lambda n: f"sink/{n % 2}", SimpleStringSchema())
    crashing = Crashing(
        tmp_path, lambda env: env.from_sequence(0, 29).map(troublesome).sink_to(sink), max_records=5, parallelism=1
    )
    assert crashing.run() == 1
    assert enough.wait(20)
    client.disconnect()
    client.loop_stop()
    assert set(received) == set(range(30))
    assert all(topic == f"sink/{number % 2}" for number, topic in zip(received, topics, strict=True))


def test_what_a_session_gives_with_quality_of_service_0_is_read_too(tmp_path, port):
    sink = CommittedSink("qos0")
    crashing = Crashing(tmp_path, lambda env: env.add_source(source(port, "qos0", qos=0)).sink_to(sink), receiving=True)
    job = crashing.start()
    job.run_batch()
    receiver = job.coordinator.sources[0].enumerator._receivers[0]
    wait_until(lambda: getattr(receiver._function, "_connection", None) is not None)
    sent = 0
    while not COMMITTED["qos0"] or not sink.records:  # the subscription may come after the first ones
        send(port, "qos0", [sent := sent + 1], qos=0)
        job.run_batch()
    send(port, "qos0", ["end"], qos=0)
    job.run_to_end()
    job.close()
    assert set(map(int, sink.records)) <= set(range(1, sent + 1))
