"""Which partitions the driver plans, with clients that answer what a test tells them."""

import re
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from penstock.connectors.kafka import KafkaOffsetsInitializer
from penstock.connectors.kafka.client import KafkaError
from penstock.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from penstock.connectors.kafka.offsets import KafkaTopicPartition

OffsetSpec = pytest.importorskip("confluent_kafka.admin").OffsetSpec


class Brokers:
    """Topics with one partition, of as many records each; those that are broken are listed with an error."""

    def __init__(self, *topics, broken=(), end=20):
        self.topics, self.broken, self.end = set(topics), set(broken), end

    def list_topics(self, timeout):
        listed = {name: (None if name not in self.broken else "no leader") for name in self.topics | self.broken}
        return SimpleNamespace(
            topics={name: SimpleNamespace(partitions={0: None}, error=error) for name, error in listed.items()}
        )

    def offsets_for_times(self, asked, timeout):
        return [SimpleNamespace(topic=one.topic, partition=one.partition, error=None, offset=self.end) for one in asked]

    def list_offsets(self, asked, **options):
        futures = {}
        for one in asked:
            futures[one] = Future()
            earliest = type(asked[one]) is type(OffsetSpec.earliest())
            futures[one].set_result(SimpleNamespace(offset=0 if earliest else self.end))
        return futures

    def close(self):
        return


@pytest.fixture
def enumerator_of(monkeypatch):
    def make(brokers, *, starting=None, stopping=None, bounded=True, restored=(), keep_restored=None, reset="error"):
        module = "penstock.connectors.kafka.enumerator"
        monkeypatch.setattr(f"{module}.new_admin", lambda settings: brokers)
        monkeypatch.setattr(f"{module}.new_consumer", lambda settings: brokers)
        monkeypatch.setattr(f"{module}._PROBLEM_PAUSE_SECONDS", 0.0)
        made = KafkaEnumerator(
            {"bootstrap.servers": "nowhere", "auto.offset.reset": reset},
            Subscription(pattern=re.compile("events-.*")),
            starting or KafkaOffsetsInitializer.earliest(),
            stopping or (KafkaOffsetsInitializer.latest() if bounded else None),
            discovery_interval_ms=0,
            commit_group_offsets=False,
            keep_restored=keep_restored,
        )
        made.start()
        made.restore(dict.fromkeys(restored, False))
        return made

    return make


def finished(enumerator, offset):
    return {
        split.split_id: enumerator.is_finished(split, enumerator.latest_offset(split, offset, max_records=10))
        for split in enumerator.discover_splits()
    }


A, B = (str(KafkaTopicPartition(name, 0)) for name in ("events-a", "events-b"))


def test_a_partition_that_was_deleted_while_the_job_was_down_does_not_keep_it_from_ending(enumerator_of):
    enumerator = enumerator_of(Brokers("events-a"), restored=[A, B])
    assert finished(enumerator, [3, 20]) == {A: False, B: True}
    (_, gone) = enumerator.discover_splits()
    assert enumerator.latest_offset(gone, [3, 20], 100) == [3, 20]  # nothing is read of it


def test_a_job_ends_if_all_its_topics_were_deleted(enumerator_of):
    assert finished(enumerator_of(Brokers(), restored=[A, B]), [3, 20]) == {A: True, B: True}


def test_an_endless_job_goes_on_waiting_for_a_topic_that_was_deleted(enumerator_of):
    assert finished(enumerator_of(Brokers("events-a"), bounded=False, restored=[A, B]), 3) == {A: False}


@pytest.mark.parametrize("keep_restored", [None, True])
def test_a_topic_that_has_no_leader_for_a_moment_is_not_gone(enumerator_of, keep_restored):
    brokers = Brokers("events-a", broken=["events-b"])
    enumerator = enumerator_of(brokers, restored=[A, B], keep_restored=keep_restored)
    assert finished(enumerator, [3, 20]) == {A: False}
    brokers.broken.clear()
    brokers.topics.add("events-b")
    assert finished(enumerator, [3, 20]) == {A: False, B: False}


def test_records_that_come_while_the_end_is_asked_for_do_not_make_another_topic_of_it(enumerator_of):
    brokers = Brokers("events-a", end=10)
    enumerator = enumerator_of(brokers, starting=KafkaOffsetsInitializer.latest(), bounded=False)
    (split,) = enumerator.discover_splits()
    brokers.end = 13
    first = enumerator.starting_offset(split, fresh=True)
    assert first == 13
    assert enumerator.latest_offset(split, first, 100) == 13


def test_nor_if_they_are_to_be_read(enumerator_of):
    brokers = Brokers("events-a", end=10)
    enumerator = enumerator_of(brokers)
    (split,) = enumerator.discover_splits()
    brokers.end = 13
    first = enumerator.starting_offset(split, fresh=True)
    assert first == [0, 13]
    assert enumerator.latest_offset(split, first, 100) == [13, 13]


# -- a job that ends, started again with less to read ----------------------------------------------------------------


@pytest.mark.parametrize("broken", [[], ["other"]])
def test_a_partition_that_is_not_subscribed_to_any_more_does_not_keep_a_job_from_ending(enumerator_of, broken):
    topics = {"events-a", "other"} - set(broken)
    enumerator = enumerator_of(Brokers(*topics, broken=broken), restored=[A, "other-0"])
    assert finished(enumerator, [3, 20]) == {A: False, "other-0": True}


def test_an_endless_job_leaves_a_partition_alone_that_is_not_subscribed_to_any_more(enumerator_of):
    enumerator = enumerator_of(Brokers("events-a", "other"), bounded=False, restored=[A, "other-0"])
    assert finished(enumerator, 3) == {A: False}


@pytest.mark.parametrize(
    ("subscription", "wanted"),
    [
        (Subscription(pattern=re.compile("events-.")), {"events-a-0", "events-a-1", "events-b-0"}),
        (Subscription(topics=("events-a",)), {"events-a-0", "events-a-1"}),
        (Subscription(partitions=(KafkaTopicPartition("events-a", 1),)), {"events-a-1"}),
    ],
)
def test_what_a_subscription_wants(subscription, wanted):
    partitions = [KafkaTopicPartition(*one) for one in [("events-a", 0), ("events-a", 1), ("events-b", 0), ("x", 0)]]
    assert {str(one) for one in partitions if subscription.wants(one)} == wanted


# -- a job that ends, whose topic was made again ---------------------------------------------------------------------


@pytest.mark.parametrize(("position", "words"), [(3, "ends at 5, but had records up to 20"), (7, "was read up to 7")])
def test_a_job_does_not_wait_for_the_end_of_a_topic_that_was_made_again(enumerator_of, position, words):
    enumerator = enumerator_of(Brokers("events-a", end=5), restored=[A])
    (split,) = enumerator.discover_splits()
    with pytest.raises(KafkaError, match=words):
        enumerator.latest_offset(split, [position, 20], 100)


@pytest.mark.parametrize("position", [0, 3, 5, 7])
@pytest.mark.parametrize(("reset", "reads"), [("earliest", 5), ("latest", 0)])
def test_it_reads_what_is_there_now_or_nothing_if_the_user_resets(enumerator_of, position, reset, reads):
    brokers = Brokers("events-a", end=5)
    enumerator = enumerator_of(brokers, restored=[A], reset=reset)
    (split,) = enumerator.discover_splits()
    offset, read = [position, 20], 0
    while not enumerator.is_finished(split, offset):
        further = enumerator.latest_offset(split, offset, 2)
        assert further != offset
        read += max(0, further[0] - offset[0])
        offset = further
        brokers.end += 1  # what comes now is not waited for
        enumerator.discover_splits()
    assert read == reads


def test_an_end_in_the_future_is_waited_for(enumerator_of):
    stopping = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("events-a", 0): 100})
    brokers = Brokers("events-a", end=5)
    enumerator = enumerator_of(brokers, stopping=stopping, restored=[A])
    (split,) = enumerator.discover_splits()
    assert enumerator.latest_offset(split, [3, 100], 100) == [5, 100]
    brokers.end = 50
    enumerator._refresh(0)
    assert enumerator.latest_offset(split, [5, 100], 100) == [50, 100]


def test_an_end_in_the_future_of_another_topic_is_not(enumerator_of):
    stopping = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("events-a", 0): 100})
    brokers = Brokers("events-a", end=50)
    enumerator = enumerator_of(brokers, stopping=stopping, restored=[A])
    (split,) = enumerator.discover_splits()
    brokers.end = 40
    enumerator._refresh(0)
    with pytest.raises(KafkaError, match="ends at 40, but had records up to 100"):
        enumerator.latest_offset(split, [30, 100], 100)
