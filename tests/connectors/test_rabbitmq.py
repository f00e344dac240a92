"""RabbitMQ, a real one: acknowledgement with the checkpoint, messages that come again, lost connections, the sink."""

import socket

import pytest
from crashing import TROUBLE, CommittedSink, Crashing, Until, troublesome, wait_until
from tests.connectors.servers import rabbitmq

from penstock.common import SimpleStringSchema, Types
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from penstock.core.sink import WriterInitContext
from penstock.datastream import OutputTag
from penstock.formats.decoding import decode

pika = pytest.importorskip("pika")
pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


class Rabbit:
    """A queue of the test's own."""

    def __init__(self, port, name):
        self.port, self.queue = port, name
        self.connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self.channel = self.connection.channel()
        self.channel.queue_declare(name, durable=True)

    def send(self, messages, ids=None):
        for position, message in enumerate(messages):
            properties = pika.BasicProperties(correlation_id=str(ids[position]) if ids else None)
            self.channel.basic_publish("", self.queue, str(message).encode(), properties)

    def waiting(self):
        """Messages in the queue, without those that a consumer holds."""
        return self.channel.queue_declare(self.queue, passive=True).method.message_count

    def take_all(self):
        found = []
        while True:
            method, properties, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                return found
            found.append((properties.correlation_id, body.decode()))

    def config(self, **settings):
        builder = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(self.port).set_virtual_host("/")
        builder.set_user_name("guest").set_password("guest").set_network_recovery_interval(10)
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    def source(self, use_correlation_id=True, schema=None, **settings):
        return RMQSource(self.config(**settings), self.queue, use_correlation_id, schema or Until())


@pytest.fixture(scope="module")
def port():
    with rabbitmq() as number:
        yield number


@pytest.fixture
def rabbit(port, request):
    queue = Rabbit(port, request.node.name)
    yield queue
    queue.channel.queue_delete(queue.queue)
    queue.connection.close()


def step(job):
    wait_until(job.run_batch)


def numbers_to(sink, source):
    return lambda env: env.add_source(source()).map(troublesome).sink_to(sink)


@pytest.mark.parametrize("prefetch", [4, 100])
def test_every_message_counts_once_whatever_crashes(tmp_path, rabbit, prefetch):
    rabbit.send([*range(60), "end"], [*range(60), "last"])
    sink = CommittedSink("rabbit")
    TROUBLE.update(dict.fromkeys(("0", "17", "18", "44"), True))
    build = numbers_to(sink, lambda: rabbit.source(prefetch_count=prefetch))
    assert Crashing(tmp_path, build, max_records=3, receiving=True).run() == 4
    assert sorted(map(int, sink.records)) == list(range(60))
    assert rabbit.take_all() == [("last", "end")]


def test_without_ids_messages_that_were_not_acknowledged_count_again(tmp_path, rabbit):
    rabbit.send([*range(30), "end"])
    sink = CommittedSink("again")
    TROUBLE.update(dict.fromkeys(("7", "20"), True))
    build = numbers_to(sink, lambda: rabbit.source(use_correlation_id=False))
    assert Crashing(tmp_path, build, max_records=4, receiving=True).run() == 2
    assert set(map(int, sink.records)) == set(range(30))


def test_messages_are_acknowledged_when_their_checkpoint_is_complete_and_not_before(tmp_path, rabbit):
    rabbit.send(range(10), range(10))
    job = Crashing(tmp_path, numbers_to(CommittedSink("acks"), rabbit.source), max_records=5, receiving=True).start()
    step(job)  # the first batch only starts the source
    job.coordinator.plan(job.offset)
    job.close()
    wait_until(lambda: rabbit.waiting() == 10)  # planned, and never committed: all of them are back
    sink = CommittedSink("complete")
    job = Crashing(tmp_path / "b", numbers_to(sink, rabbit.source), max_records=5, receiving=True).start()
    while len(sink.records) < 10:
        step(job)
    job.close()
    wait_until(lambda: rabbit.waiting() == 0)
    assert rabbit.take_all() == []


def test_an_id_that_a_publisher_sends_twice_counts_once_while_it_is_not_acknowledged(tmp_path, rabbit):
    rabbit.send(["a", "a", "b", "end"], [1, 1, 2, 3])
    sink = CommittedSink("twice")
    Crashing(tmp_path, numbers_to(sink, rabbit.source), max_records=10, receiving=True, parallelism=1).run()
    assert sink.records == ["a", "b"]


def test_a_lost_connection_is_made_again_and_no_message_counts_twice(tmp_path, rabbit):
    rabbit.send(range(20), range(20))
    sink = CommittedSink("lost")
    job = Crashing(tmp_path, numbers_to(sink, rabbit.source), max_records=5, receiving=True).start()
    while len(sink.records) < 10:
        step(job)
    receiver = job.coordinator.sources[0].enumerator._receivers[0]
    before = receiver._function._connection
    before._connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: not job.run_batch() and receiver._function._connection not in (None, before))
    rabbit.send([*range(20, 30), "end"], range(20, 31))
    job.run_to_end()
    job.close()
    assert sorted(map(int, sink.records)) == list(range(30))


def test_a_message_without_an_id_is_an_error_if_ids_are_asked_for(tmp_path, rabbit):
    rabbit.send(["x"])
    job = Crashing(tmp_path, numbers_to(CommittedSink("no id"), rabbit.source), receiving=True).start()
    with pytest.raises(PenstockError, match="has no correlation id"):
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()


def test_poison_messages_fail_the_job_or_go_where_the_user_wants(tmp_path, rabbit):
    class Whole(Until):
        def deserialize(self, message):
            return super().deserialize(message) if message == b"end" else int(message)

        def get_produced_type(self):
            return Types.INT()

    rabbit.send([1, "poison", 2, "end"], range(4))
    sink, letters, dead = CommittedSink("good"), CommittedSink("letters"), OutputTag("dead")
    job = Crashing(tmp_path, numbers_to(sink, lambda: rabbit.source(schema=Whole())), receiving=True).start()
    with pytest.raises(PenstockError, match=r"cannot read a message .*ValueError.*decode\(\).*poison"):
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()

    def build(env):
        rows = decode(env.add_source(rabbit.source()), Whole(), on_error=dead)
        rows.sink_to(sink)
        rows.get_side_output(dead).sink_to(letters)

    Crashing(tmp_path / "b", build, receiving=True).run()
    assert (sorted(sink.records), [letter.message for letter in letters.records]) == ([1, 2], ["poison"])


def test_a_broker_that_is_not_there_or_settings_that_are_missing_are_named(tmp_path, rabbit):
    config = rabbit.config(uri="amqp://guest:secret@127.0.0.1:1/%2F")
    job = Crashing(
        tmp_path,
        numbers_to(CommittedSink("away"), lambda: RMQSource(config, "q", True, Until())),
        receiving=True,
    ).start()
    with pytest.raises(PenstockError, match=r"cannot connect to RabbitMQ at 127.0.0.1:1/%2F") as failure:
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()
    assert "secret" not in str(failure.value)
    with pytest.raises(InvalidProgramError, match="URI, or all of: port, virtual_host, user_name, password"):
        RMQConnectionConfig.Builder().set_host("x").build()


def test_the_sink_sends_every_record_and_repeats_ids_with_a_batch_that_is_repeated(tmp_path, rabbit):
    sink = RMQSink(rabbit.config(), rabbit.queue, SimpleStringSchema())
    TROUBLE.update({14: True})

    def build(env):
        env.from_sequence(0, 29).map(troublesome).add_sink(sink)

    assert Crashing(tmp_path, build, max_records=5, parallelism=1).run() == 1
    sent = rabbit.take_all()
    assert sorted({int(body) for _, body in sent}) == list(range(30))
    assert len({identity for identity, _ in sent}) == 30


def test_a_batch_of_the_sink_is_visible_as_a_whole(rabbit):
    context = WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1, job_id="j", sink_id="s")
    writer = RMQSink(rabbit.config(), rabbit.queue, SimpleStringSchema()).create_writer(context)
    writer.write_batch(["a", "b"], None)
    assert rabbit.waiting() == 0
    writer.flush(end_of_input=False)
    writer.flush(end_of_input=True)
    writer.close()
    assert rabbit.take_all() == [("j-s-0-1-0", "a"), ("j-s-0-1-1", "b")]
