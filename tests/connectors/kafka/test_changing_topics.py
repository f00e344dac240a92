"""Topics that are deleted, or deleted and made again, while a job exists that reads them."""

import pytest
from processes import wait_until
from tests.connectors.kafka.reading import SEEN, Program, numbers, take

from penstock.common.errors import JobExecutionError
from penstock.connectors.kafka import KafkaOffsetsInitializer
from penstock.connectors.kafka.client import KafkaError

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def delete(kafka, topic):
    (future,) = kafka.broker.admin.delete_topics([topic]).values()
    future.result()


def make_again(kafka, topic):
    delete(kafka, topic)
    wait_until(lambda: topic not in kafka.broker.admin.list_topics(timeout=30).topics, 30, "the end of the topic")
    kafka.topic(name=topic)
    kafka._producer = None  # it would know the topic there was


def read_until(job, value):
    wait_until(lambda: job.run_batch() and value in SEEN, 30, f"{value} was not read")


def test_a_topic_that_is_deleted_does_not_keep_the_others_from_being_read(kafka):
    going, staying = kafka.topic(name="one-of-two-a"), kafka.topic(name="one-of-two-b")
    kafka.send(going, ["a0"])
    kafka.send(staying, ["b0"])
    program = Program(kafka)
    program.builder.set_topic_pattern("one-of-two-.*").set_property("partition.discovery.interval.ms", "10")
    job = program.start()
    wait_until(lambda: job.run_batch() and len(SEEN) == 2, 30, "the first records")
    delete(kafka, going)
    kafka.send(staying, ["b1"])
    read_until(job, "b1")
    state = job.snapshot()
    job.close()
    kafka.send(staying, ["b2"])
    again = program.start(state)
    read_until(again, "b2")
    again.close()
    assert sorted(take()) == ["a0", "b0", "b1", "b2"]


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("reset", [None, "earliest", "latest"])
def test_a_topic_that_was_made_again_is_an_error_unless_the_user_resets(kafka, reset, running):
    """Waiting until it is as long as the old one was would leave out everything before."""
    topic = kafka.topic()
    kafka.send(topic, range(10))
    program = Program(kafka)
    program.builder.set_topics(topic)
    if reset is not None:
        program.builder.set_property("auto.offset.reset", reset)
    job = program.start()
    job.run()
    if not running:
        state = job.snapshot()
        job.close()
    make_again(kafka, topic)
    kafka.send(topic, ["new"])
    job = job if running else program.start(state)
    if reset is None:
        with pytest.raises((KafkaError, JobExecutionError), match="ends at 1, but was read up to 10"):
            wait_until(job.run_batch, 30, "an error")
    else:
        wait_until(job.run_batch, 30, "a batch that goes back")
        kafka.send(topic, ["newer"])
        read_until(job, "newer")
    job.close()
    assert take() == numbers(10) + {None: [], "earliest": ["new", "newer"], "latest": ["newer"]}[reset]


def bounded(kafka, *topics, reset=None):
    """A job that ends where its topics end now, and has not come that far."""
    program = Program(kafka, max_records=3)
    program.builder.set_topics(*topics).set_bounded(KafkaOffsetsInitializer.latest())
    if reset is not None:
        program.builder.set_property("auto.offset.reset", reset)
    return program


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("reset", [None, "earliest", "latest"])
def test_a_job_that_ends_does_not_wait_for_the_end_of_a_topic_that_was_made_again(kafka, reset, running):
    topic = kafka.topic()
    kafka.send(topic, range(10))
    program = bounded(kafka, topic, reset=reset)
    job = program.start()
    job.run_batch()
    assert take() == numbers(3)
    if not running:
        state = job.snapshot()
        job.close()
    make_again(kafka, topic)
    kafka.send(topic, ["new", "newer", "newest", "last"])
    job = job if running else program.start(state)
    if running:  # until the driver knows, it plans for the topic that it knew
        enumerator = job.coordinator.sources[0].enumerator
        wait_until(lambda: enumerator.discover_splits() and set(enumerator._ends.values()) == {4}, 30, "the new end")
    if reset is None:
        with pytest.raises((KafkaError, JobExecutionError), match="ends at 4, but had records up to 10"):
            job.run()
    else:
        job.run()
        assert job.finished
    job.close()
    assert take() == {None: [], "earliest": ["new", "newer", "newest", "last"], "latest": []}[reset]


def test_a_job_ends_though_one_of_its_topics_was_taken_out_of_the_subscription(kafka):
    staying, leaving = kafka.topic(), kafka.topic()
    kafka.send(staying, numbers(10))
    kafka.send(leaving, numbers(100, 110))
    job = bounded(kafka, staying, leaving).start()
    job.run_batch()
    state = job.snapshot()
    job.close()
    assert 0 < len([value for value in SEEN if len(value) == 3]) < 10
    SEEN.clear()
    again = bounded(kafka, staying).start(state)
    again.run()
    assert again.finished
    again.close()
    assert all(len(value) == 1 for value in SEEN)
    assert SEEN[-1] == "9"
