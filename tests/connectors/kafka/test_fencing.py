"""KafkaSink, exactly once, with two drivers: one that was replaced and wakes up writes nothing, whatever it tries."""

import random

import pytest
from tests.connectors.kafka.test_sink import serializer, sink_to
from tests.connectors.two_drivers import World

from penstock.common.errors import FencedError
from penstock.core.fence import Fence
from penstock.core.sink import DeliveryGuarantee, WriterInitContext

pytestmark = pytest.mark.kafka

RECORDS = 16
EVERYTHING = sorted(str(n) for n in range(1, RECORDS + 1))


class Epoch(Fence):
    """A lease that is never found to be lost: the worst moment, behind the last check."""

    def __init__(self, epoch):
        self.epoch = epoch


class Topic:
    """A topic, and jobs that write to it."""

    def __init__(self, kafka):
        self.kafka = kafka
        self.name = kafka.topic(2)
        self.prefix = f"prefix-{random.randrange(2**40)}"

    def sink(self):
        return sink_to(self.kafka, serializer(self.name), DeliveryGuarantee.EXACTLY_ONCE, self.prefix)

    def build(self, env):
        env.from_sequence(1, RECORDS).rebalance().map(str).sink_to(self.sink())

    def committer(self, epoch):
        committer = self.sink().create_committer()
        committer.fence = Epoch(epoch)
        return committer

    def committables(self, value, checkpoint_id):
        context = WriterInitContext(0, 1, checkpoint_id, job_id=self.prefix, sink_id="sink")
        writer = self.sink().create_writer(context)
        writer.write_batch([value], None)
        writer.flush(end_of_input=False)
        return writer.prepare_commit()

    @property
    def values(self):
        return sorted(self.kafka.values(self.name))


@pytest.fixture
def topic(kafka):
    return Topic(kafka)


@pytest.mark.parametrize("pause", range(1, 11))
def test_two_drivers_of_a_job_that_writes_to_kafka_write_every_record_once(tmp_path, topic, pause):
    world, successors = World(tmp_path, topic.build), []

    def replace():
        successors.append(world.driver("successor"))
        successors[0].run(pause % 3)

    first = world.driver("first", pause=pause, meanwhile=replace)
    assert first.run_until_fenced() is not None
    successors[0].run()
    assert topic.values == EVERYTHING


def test_a_driver_that_was_replaced_and_begins_a_new_transaction_finds_the_epoch_of_the_next_one(topic):
    old, new = topic.committer(epoch=1), topic.committer(epoch=2)
    new.commit(topic.committables("a", 1), 1)
    with pytest.raises(FencedError, match="is of epoch 2, and this driver has 1"):
        old.commit(topic.committables("b", 2), 2)
    assert topic.values == ["a"]


def test_a_driver_whose_transactional_id_was_taken_by_the_one_before_takes_it_back(topic):
    old, new = topic.committer(epoch=1), topic.committer(epoch=2)
    new.commit(topic.committables("a", 1), 1)
    with pytest.raises(FencedError):
        old.commit(topic.committables("b", 2), 2)
    new.commit(topic.committables("c", 2), 2)
    new.commit(topic.committables("d", 3), 3)
    assert topic.values == ["a", "c", "d"]


def test_a_driver_that_was_replaced_while_it_had_a_transaction_open_does_not_commit_it(topic):
    old, new = topic.committer(epoch=1), topic.committer(epoch=2)
    old.commit(topic.committables("a", 1), 1)
    new.commit(topic.committables("b", 2), 2)
    with pytest.raises(FencedError):
        old.commit(topic.committables("b of the old one", 2), 2)
    assert topic.values == ["a", "b"]


def test_a_job_without_a_lease_is_told_that_another_one_has_its_transactional_id(topic):
    first, second = topic.committer(epoch=0), topic.committer(epoch=0)
    first.commit(topic.committables("a", 1), 1)
    second.commit(topic.committables("b", 2), 2)
    with pytest.raises(Exception, match="another job took over the transactional id"):
        first.commit(topic.committables("c", 3), 3)
    assert topic.values == ["a", "b"]
