"""What brokers and operators do to a job that runs: transactions time out, prefixes change, logs are compacted."""

import pytest
from processes import wait_until
from tests.connectors.kafka.test_sink import CountingJob, Crashing, SimulatedCrashError
from tests.connectors.kafka.test_source import Program, take

from penstock.connectors.kafka import KafkaError, committer
from penstock.connectors.kafka.committer import CheckpointTransaction

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


def test_a_batch_replayed_after_its_commit_under_another_prefix_is_not_written_again(kafka):
    program = CountingJob(kafka)
    for number in range(3):
        job = program.start()
        job.run_batch()
        program.checkpoint = job.snapshot()
        job.run_batch()  # committed in Kafka, and then the driver is gone before Spark knows
        program.prefix = f"another-{number}-{program.target}"
    program.start().run()
    program.check()


@pytest.mark.parametrize("step", ["send_offsets_to_transaction", "flush", "commit_transaction"])
def test_an_open_transaction_under_a_former_prefix_is_ended_before_anything_is_written(kafka, monkeypatch, step):
    program = CountingJob(kafka)
    program.properties = {"transaction.timeout.ms": "600000"}  # the broker would wait longer than the test
    job = program.start()
    job.run_batch()
    program.checkpoint = job.snapshot()
    original = CheckpointTransaction.write

    def crash_in(self, chunks, checkpoint_id):
        self.producer.client = Crashing(self.producer.client, step, "before" if step.startswith("commit") else "after")
        original(self, chunks, checkpoint_id)

    monkeypatch.setattr(CheckpointTransaction, "write", crash_in)
    with pytest.raises(SimulatedCrashError):
        job.run_batch()
    monkeypatch.undo()
    program.prefix = f"another-{program.target}"
    program.start().run()
    program.check()


def test_a_first_commit_left_open_under_a_former_prefix_is_an_error_that_says_what_to_do(kafka, monkeypatch):
    """Nothing tells the former prefix, and whether it wrote the checkpoint is open until its transaction is."""
    program = CountingJob(kafka)
    program.properties = {"transaction.timeout.ms": "600000"}
    job = program.start()
    program.checkpoint = job.snapshot()
    original, former = CheckpointTransaction.write, program.prefix

    def crash_in(self, chunks, checkpoint_id):
        self.producer.client = Crashing(self.producer.client, "commit_transaction", "before")
        original(self, chunks, checkpoint_id)

    monkeypatch.setattr(CheckpointTransaction, "write", crash_in)
    with pytest.raises(SimulatedCrashError):
        job.run_batch()
    monkeypatch.undo()
    monkeypatch.setattr(committer, "_ANSWER_SECONDS", 2)
    program.prefix = f"another-{program.target}"
    with pytest.raises(KafkaError, match=r"a transaction of the old one may still be open: use the old prefix"):
        program.start().run()
    monkeypatch.undo()
    program.prefix = former
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
        return [value for value in kafka.values(topic) if value != "more"] == [f"{key}-5" for key in range(4)]

    wait_until(compacted, 90, "compaction")
    left = kafka.values(topic)
    for max_records in (1, 3, None):
        program = Program(kafka, max_records=max_records)
        program.builder.set_topics(topic)
        program.run()
        found = take()
        assert [value for value in found if value != "more"] == [f"{key}-5" for key in range(4)]
        assert 0 < found.count("more") <= left.count("more")  # they may be compacted meanwhile
