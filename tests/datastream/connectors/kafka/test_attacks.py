"""What brokers and operators do to a job that runs: transactions time out, prefixes change, logs are compacted."""

import pytest
from processes import wait_until
from tests.datastream.connectors.kafka.test_sink import CountingJob
from tests.datastream.connectors.kafka.test_source import Program, take

from penstock.datastream.connectors.kafka import KafkaError
from penstock.datastream.connectors.kafka.committer import CheckpointTransaction

pytestmark = pytest.mark.kafka


class Dawdling:
    """A client that commits only when the broker has given up on the transaction."""

    def __init__(self, client, until):
        self._client, self._until = client, until

    def __getattr__(self, name):
        if name == "commit_transaction":
            self._until()
        return getattr(self._client, name)


def test_a_transaction_that_times_out_fails_the_job_and_what_it_held_is_written_again(kafka, monkeypatch):
    program = CountingJob(kafka)
    original, slow = CheckpointTransaction.write, [True]

    def dawdle(self, chunks, checkpoint_id):
        if checkpoint_id == 2 and slow:
            slow.clear()
            self.producer.client = Dawdling(self.producer.client, lambda: kafka.wait_for_transactions(program.target))
        original(self, chunks, checkpoint_id)

    monkeypatch.setattr(CheckpointTransaction, "write", dawdle)
    program.properties = {"transaction.timeout.ms": "1000"}
    job = program.start()
    job.run_batch()
    program.checkpoint = job.snapshot()
    with pytest.raises(KafkaError, match=r"or the transaction timed out \(transaction.timeout.ms\)"):
        job.run_batch()
    program.start().run()
    program.check()


def test_a_job_that_is_restarted_with_another_transactional_id_prefix_goes_on_exactly_once(kafka):
    program = CountingJob(kafka)
    job = program.start()
    job.run_batch()
    job.run_batch()
    program.checkpoint = job.snapshot()
    job.close()
    program.prefix = f"another-{program.target}"
    program.start().run()
    program.check()


def test_a_compacted_topic_has_gaps_and_every_record_that_is_left_is_read_once(kafka):
    topic = kafka.topic(
        1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
        delete_retention_ms="0",
    )
    for round_ in range(6):
        kafka.send(topic, [f"{key}-{round_}" for key in range(4)], keys=[str(key) for key in range(4)])

    def compacted():
        kafka.send(topic, ["more"], keys=["more"])  # only segments that are complete are compacted
        return len(kafka.values(topic)) < 20

    wait_until(compacted, 90, "compaction")
    left = kafka.values(topic)
    assert left.count("0-0") == 0
    for max_records in (1, 3, None):
        program = Program(kafka, max_records=max_records)
        program.builder.set_topics(topic)
        program.run()
        found = take()
        assert [value for value in found if value != "more"] == [f"{key}-5" for key in range(4)]
        assert len(found) == len(left)
