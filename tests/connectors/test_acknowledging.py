"""What all sources of acknowledged messages share: when a message may be forgotten."""

import threading
from types import SimpleNamespace

import pytest
from crashing import Until, wait_until

from penstock.connectors.acknowledging import AcknowledgingSource, Arrival


class Broker(AcknowledgingSource):
    """Messages and confirmations come when the test says so."""

    def __init__(self):
        super().__init__(Until())
        self.connected = threading.Event()
        self.acknowledged = []

    def connect(self, arrived):
        self.arrived = arrived
        self.connected.set()
        return "connection"

    def acknowledge(self, connection, tokens, done):
        self.acknowledged.append((tokens, done))

    def disconnect(self, connection):
        pass

    def send(self, message_id, token, body=b"hello"):
        self.arrived.put(Arrival(body, message_id, token))


class Job:
    """Runs the source; checkpoints are taken by hand."""

    def __init__(self, source):
        self.source = source
        self.lock = threading.RLock()
        self.records = []
        self.state = []
        kept = SimpleNamespace(get=list, update=lambda values: setattr(self, "state", values))
        source.initialize_state(
            SimpleNamespace(
                get_operator_state_store=lambda: SimpleNamespace(get_list_state=lambda _: kept),
                get_restored_checkpoint_id=lambda: None,
            )
        )
        context = SimpleNamespace(get_checkpoint_lock=lambda: self.lock, collect=self.records.append)
        self.thread = threading.Thread(target=source.run, args=(context,), daemon=True)
        self.thread.start()
        source.connected.wait(60)

    def checkpoint(self, number):
        with self.lock:
            self.source.snapshot_state(SimpleNamespace(get_checkpoint_id=lambda: number))
            self.source.notify_checkpoint_complete(number)

    def end(self):
        self.source.send("end", None, b"end")
        self.thread.join(60)


@pytest.fixture
def job():
    return Job(Broker())


def test_a_message_is_acknowledged_with_its_checkpoint_and_forgotten_when_that_is_confirmed(job):
    job.source.send("1", "first")
    wait_until(lambda: job.records == ["hello"])
    assert job.source.acknowledged == []
    job.checkpoint(1)
    ((tokens, done),) = job.source.acknowledged
    assert tokens == ["first"]
    assert [message_id for message_id, _ in job.state] == ["1"]
    done()
    job.end()
    job.checkpoint(2)
    assert job.state == []


def test_a_copy_that_was_under_way_when_the_message_was_acknowledged_does_not_count(job):
    """A broker that is not answered in time sends a message again, just as the answer is on its way."""
    job.source.send("1", "first")
    wait_until(lambda: job.records == ["hello"])
    job.checkpoint(1)
    ((_, done),) = job.source.acknowledged
    with job.lock:  # the copy has arrived and was not examined yet
        job.source.send("1", "copy")
        done()
        job.checkpoint(2)
    job.end()
    assert job.records == ["hello"]
    assert [tokens for tokens, _ in job.source.acknowledged] == [["first"], ["copy"]]
