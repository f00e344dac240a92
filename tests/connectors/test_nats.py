"""NATS JetStream, a real server: acknowledgement with the checkpoint, messages that come again, restarts, the sink."""

import asyncio

import pytest
from crashing import TROUBLE, CommittedSink, Crashing, Until, troublesome, wait_until
from tests.connectors.servers import free_port, nats_server

from penstock.common import SimpleStringSchema
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.connectors.nats import JetStreamSink, JetStreamSource

nats = pytest.importorskip("nats")


def ask(port, work):
    async def connected():
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(connected())


def stream_of(port, name, messages=()):
    async def make(stream):
        await stream.add_stream(name=name, subjects=[f"{name}.>"])
        for message in messages:
            await stream.publish(f"{name}.a", str(message).encode())

    ask(port, make)


def send(port, subject, messages):
    async def work(stream):
        for message in messages:
            await stream.publish(subject, str(message).encode())

    ask(port, work)


def source(port, name, **options):
    return JetStreamSource(f"nats://127.0.0.1:{port}", f"{name}.>", f"job-{name}", Until(), ack_wait_ms=300, **options)


def pending(port, name):
    """Messages that the consumer has not acknowledged."""

    async def work(stream):
        found = await stream.consumer_info(name, f"job-{name}")
        return found.num_ack_pending + found.num_pending

    return ask(port, work)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with nats_server(tmp_path_factory.mktemp("nats")) as number:
        yield number


@pytest.mark.parametrize("window", [4, 1_000])
def test_every_message_of_a_stream_counts_once_whatever_crashes(tmp_path, port, window):
    name = f"crashes{window}"
    stream_of(port, name, range(40))
    sink, ends = CommittedSink(name), ["end"]

    def end_when_all_are_there():  # what is delivered again may come behind anything sent before
        if len(sink.records) == 40 and ends:
            send(port, f"{name}.a", [ends.pop()])

    TROUBLE.update(dict.fromkeys(("0", "17", "18", "33"), True))
    crashing = Crashing(
        tmp_path,
        lambda env: env.add_source(source(port, name, max_ack_pending=window)).map(troublesome).sink_to(sink),
        max_records=3,
        receiving=True,
        after_step=end_when_all_are_there,
    )
    assert crashing.run() == 4
    assert sorted(map(int, sink.records)) == list(range(40))
    assert pending(port, name) == 1  # the one that says it is the end


def test_a_server_that_restarts_is_connected_to_again_and_no_message_counts_twice(tmp_path):
    number, sink = free_port(), CommittedSink("restart")
    crashing = Crashing(
        tmp_path,
        lambda env: env.add_source(source(number, "restart", reconnect_ms=10)).sink_to(sink),
        max_records=4,
        receiving=True,
    )
    with nats_server(tmp_path, number):
        stream_of(number, "restart", range(12))
        job = crashing.start()
        while len(sink.records) < 4:
            crashing.step(job)
        function = job.coordinator.sources[0].enumerator._receivers[0]._function
        before = function._connection
    wait_until(lambda: not job.run_batch() and function._connection is not before)
    with nats_server(tmp_path, number):
        send(number, "restart.a", [*range(12, 20), "end"])
        while not job.finished:
            crashing.step(job)
        job.close()
    assert sorted(map(int, sink.records)) == list(range(20))


def test_a_server_or_a_stream_that_is_not_there_is_named(tmp_path, port):
    away = free_port()
    for number, name, reason in (
        (away, "x", f"cannot connect to NATS at nats://127.0.0.1:{away}"),
        (port, "nowhere", "does a stream with this subject exist"),
    ):
        job = Crashing(
            tmp_path / name, lambda env, n=number, s=name: env.add_source(source(n, s)).print(), receiving=True
        ).start()
        with pytest.raises(PenstockError, match=reason):
            wait_until(lambda job=job: job.run_batch() and False)
        job.coordinator.close()
    with pytest.raises(InvalidProgramError):
        source(1, "x", max_ack_pending=0)


def test_a_batch_of_the_sink_that_is_repeated_is_in_the_stream_once(tmp_path, port):
    stream_of(port, "sink")
    TROUBLE.update({14: True})
    sink = JetStreamSink(f"nats://127.0.0.1:{port}", lambda n: f"sink.{n % 2}", SimpleStringSchema())

    def build(env):
        # Two sinks' worth of steps: what the first task writes is there before the other one fails.
        env.from_sequence(0, 29).map(lambda n: n).sink_to(sink)
        env.from_sequence(0, 29).map(troublesome).print()

    assert Crashing(tmp_path, build, max_records=5, parallelism=1).run() == 1

    async def everything(stream):
        subscription = await stream.subscribe("sink.>", ordered_consumer=True)
        count = (await stream.stream_info("sink")).state.messages
        return [await subscription.next_msg(10) for _ in range(count)]

    found = [(message.subject, int(message.data)) for message in ask(port, everything)]
    assert sorted(found, key=lambda pair: pair[1]) == [(f"sink.{n % 2}", n) for n in range(30)]
