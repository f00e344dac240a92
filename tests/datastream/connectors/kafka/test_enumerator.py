"""Which partitions the driver plans, with clients that answer what a test tells them."""

import re
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from penstock.datastream.connectors.kafka import KafkaOffsetsInitializer
from penstock.datastream.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from penstock.datastream.connectors.kafka.offsets import KafkaTopicPartition

pytest.importorskip("confluent_kafka")


class Brokers:
    """Topics with one partition, each of ten records; those that are broken are listed with an error."""

    def __init__(self, *topics, broken=(), end=10):
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
            futures[one].set_result(SimpleNamespace(offset=self.end))
        return futures

    def close(self):
        return


@pytest.fixture
def enumerator_of(monkeypatch):
    def make(brokers, *, starting=None, bounded=True, restored=(), keep_restored=None):
        module = "penstock.datastream.connectors.kafka.enumerator"
        monkeypatch.setattr(f"{module}.new_admin", lambda settings: brokers)
        monkeypatch.setattr(f"{module}.new_consumer", lambda settings: brokers)
        monkeypatch.setattr(f"{module}._PROBLEM_PAUSE_SECONDS", 0.0)
        made = KafkaEnumerator(
            {"bootstrap.servers": "nowhere"},
            Subscription(pattern=re.compile("events-.*")),
            starting or KafkaOffsetsInitializer.earliest(),
            KafkaOffsetsInitializer.latest() if bounded else None,
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
        split.split_id: enumerator.is_finished(split, enumerator.latest_offset(split, offset, 100))
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
    brokers = Brokers("events-a")
    enumerator = enumerator_of(brokers, starting=KafkaOffsetsInitializer.latest(), bounded=False)
    (split,) = enumerator.discover_splits()
    brokers.end = 13
    first = enumerator.starting_offset(split, fresh=True)
    assert first == 13
    assert enumerator.latest_offset(split, first, 100) == 13
