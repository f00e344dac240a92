"""Two-phase commit and write-ahead sinks: when they begin, commit and abort, and what a crash at any moment leaves."""

import pytest
from crashing import Crashing

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.core.functions import (
    CheckpointCommitter,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
    TwoPhaseCommitSinkFunction,
)

LOG = []
TROUBLE = {}


@pytest.fixture(autouse=True)
def _clean():
    LOG.clear()
    TROUBLE.clear()


def trouble(what):
    """Raises the next so many times it is asked."""
    if TROUBLE.get(what, 0) > 0:
        TROUBLE[what] -= 1
        raise OSError(f"{what} failed")


class Transactional(TwoPhaseCommitSinkFunction):
    """Transactions are files in a directory of the test; names are never the same twice."""

    def __init__(self, directory):
        self.directory = directory

    def begin_transaction(self):
        number = len(list(self.directory.iterdir()))
        path = self.directory / f"txn-{number}"
        path.write_text("")
        LOG.append(("begin", path.name))
        return path.name

    def invoke(self, transaction, value, context):
        trouble("invoke")
        path = self.directory / transaction
        assert not path.with_name(f"{transaction}.closed").exists()
        path.write_text(path.read_text() + f"{value}\n")

    def pre_commit(self, transaction):
        trouble("pre_commit")
        LOG.append(("pre_commit", transaction))
        (self.directory / f"{transaction}.closed").write_text("")

    def commit(self, transaction):
        trouble("commit")
        LOG.append(("commit", transaction))
        assert (self.directory / f"{transaction}.closed").exists()
        (self.directory / f"{transaction}.committed").write_text("")

    def abort(self, transaction):
        LOG.append(("abort", transaction))
        assert not (self.directory / f"{transaction}.committed").exists()
        (self.directory / f"{transaction}.aborted").write_text("")

    def finish_processing(self, transaction):
        LOG.append(("finish", transaction))


def visible(directory):
    """What a reader sees: the records of committed transactions."""
    return sorted(
        int(line)
        for marker in directory.glob("*.committed")
        for line in marker.with_suffix("").read_text().splitlines()
    )


@pytest.fixture
def transactions(tmp_path):
    directory = tmp_path / "transactions"
    directory.mkdir()
    return directory


def numbers(env, records=12):
    return env.from_sequence(1, records).rebalance()


def two_phase(directory, records=12):
    return lambda env: numbers(env, records).add_sink(Transactional(directory)).set_parallelism(1)


@pytest.mark.parametrize("cold", [False, True])
def test_every_record_is_visible_once_in_an_undisturbed_run(tmp_path, transactions, cold):
    Crashing(tmp_path, two_phase(transactions), cold=cold).run()
    assert visible(transactions) == list(range(1, 13))


def test_a_transaction_begins_before_the_first_record_and_behind_every_checkpoint(tmp_path, transactions):
    job = Crashing(tmp_path, two_phase(transactions, 4), max_records=1).start()
    assert job.run_batch()
    first, _ = (name for what, name in LOG if what == "begin")
    assert [what for what in LOG if what[0] != "begin"] == [("pre_commit", first), ("commit", first)]
    job.run()
    job.close()
    begun, aborted = ([name for what, name in LOG if what == kind] for kind in ("begin", "abort"))
    assert aborted == [begun[-1]]  # the one that was left open at the end
    assert [what for what, _ in LOG].count("finish") == 1
    assert visible(transactions) == [1, 2, 3, 4]


def test_a_batch_without_records_leaves_its_transaction_open(tmp_path, transactions):
    def build(env):
        numbers(env).filter(lambda value: value > 8).add_sink(Transactional(transactions)).set_parallelism(1)

    Crashing(tmp_path, build, max_records=2).run()
    commits = [name for what, name in LOG if what == "commit"]
    assert visible(transactions) == [9, 10, 11, 12]
    assert len(commits) == len(set(commits))
    assert all((transactions / name).read_text() for name in commits)


class WithFooter(Transactional):
    def finish_processing(self, transaction):
        self.invoke(transaction, -1, None)


def test_what_is_written_at_the_end_is_committed_though_the_last_batch_has_no_records(tmp_path, transactions):
    def build(env):
        numbers(env).filter(lambda value: value < 3).add_sink(WithFooter(transactions)).set_parallelism(1)

    Crashing(tmp_path, build, max_records=2).run()
    assert visible(transactions) == [-1, 1, 2]


class Recovering(Transactional):
    """Forgives what may have been committed before, and only that."""

    def commit(self, transaction):
        super().commit(transaction)
        trouble("after commit")

    def recover_and_commit(self, transaction):
        LOG.append(("recover", transaction))
        super().commit(transaction)


def test_recover_and_commit_is_for_transactions_that_may_be_committed_and_commit_for_all_others(tmp_path, transactions):
    def build(env):
        numbers(env).add_sink(Recovering(transactions)).set_parallelism(1)

    TROUBLE["after commit"] = 1
    assert Crashing(tmp_path, build).run() == 1
    recovered = [name for what, name in LOG if what == "recover"]
    commits = [name for what, name in LOG if what == "commit"]
    assert recovered == commits[:1]
    assert commits.count(recovered[0]) == 2
    assert visible(transactions) == list(range(1, 13))


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("when", ["invoke", "pre_commit", "commit"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(tmp_path, transactions, when, times, cold):
    TROUBLE[when] = times
    crashes = Crashing(tmp_path, two_phase(transactions), cold=cold).run()
    assert crashes >= 1
    assert visible(transactions) == list(range(1, 13))


def test_a_failed_commit_is_made_up_for_before_the_next_batch_runs(tmp_path, transactions):
    runner = Crashing(tmp_path, two_phase(transactions))
    job = runner.start()
    TROUBLE["commit"] = 1
    with pytest.raises(JobExecutionError, match="failed to commit"):
        job.run_batch()
    runner.snapshot = job.snapshot()  # the checkpoint itself was complete
    assert visible(transactions) == []
    LOG.clear()
    job = runner.start()
    assert job.run_batch()
    assert LOG[0][0] == "commit"
    job.run()
    assert visible(transactions) == list(range(1, 13))


def test_the_transaction_that_was_open_at_a_crash_is_aborted_on_recovery(tmp_path, transactions):
    runner = Crashing(tmp_path, two_phase(transactions))
    job = runner.start()
    assert job.run_batch()
    runner.snapshot = job.snapshot()
    left_open = [name for what, name in LOG if what == "begin"][-1]
    LOG.clear()
    assert runner.start().run_batch()  # of the first job nothing was closed
    assert ("abort", left_open) in LOG
    assert ("commit", left_open) not in LOG


# -- write-ahead log ------------------------------------------------------------------------------------------------


class Outer(GenericWriteAheadSink):
    """Appends to a file of the test, one line per segment."""

    def __init__(self, path, committer=None, job_id=None):
        super().__init__(committer, job_id)
        self.path = path

    def send_values(self, values, checkpoint_id, timestamp):
        assert timestamp > 0
        if TROUBLE.get("refuse", 0) > 0:
            TROUBLE["refuse"] -= 1
            return False
        trouble("send")
        with self.path.open("a") as file:
            file.write(f"{checkpoint_id}: {list(values)}\n")
        trouble("after send")
        return True


class FailingCommitter(FileCheckpointCommitter):
    def commit_checkpoint(self, subtask_idx, checkpoint_id):
        trouble("note")
        super().commit_checkpoint(subtask_idx, checkpoint_id)


def sent(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [value for line in lines for value in eval(line.partition(": ")[2])]


def write_ahead(tmp_path):
    committer = FailingCommitter(tmp_path / "committed")
    return lambda env: numbers(env).add_sink(Outer(tmp_path / "outer", committer, "my job")).set_parallelism(1)


def test_records_are_sent_by_checkpoint_after_it_is_complete(tmp_path):
    job = Crashing(tmp_path, write_ahead(tmp_path), max_records=2).start()
    TROUBLE["refuse"] = 1
    assert job.run_batch()
    assert sent(tmp_path / "outer") == []
    assert job.run_batch()  # what was refused comes first
    lines = (tmp_path / "outer").read_text().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["1", "2"]
    job.run()
    assert sorted(sent(tmp_path / "outer")) == list(range(1, 13))


@pytest.mark.parametrize("what", ["refuse", "send"])
def test_a_segment_that_was_not_sent_stays_in_the_log(tmp_path, what):
    TROUBLE[what] = 3
    Crashing(tmp_path, write_ahead(tmp_path)).run()
    assert sorted(sent(tmp_path / "outer")) == list(range(1, 13))


@pytest.mark.parametrize("what", ["after send", "note"])
def test_a_crash_between_sending_and_noting_sends_one_segment_again(tmp_path, what):
    TROUBLE[what] = 1
    Crashing(tmp_path, write_ahead(tmp_path), max_records=1).run()
    values = sent(tmp_path / "outer")
    assert sorted(set(values)) == list(range(1, 13))
    doubled = {value for value in values if values.count(value) > 1}
    assert 1 <= len(doubled) <= 2  # one checkpoint's


def test_a_segment_that_the_committer_knows_is_not_sent_again(tmp_path):
    runner = Crashing(tmp_path, write_ahead(tmp_path))
    job = runner.start()
    log = job.committers
    assert job.run_batch()
    (sink_id,) = log._logs
    before = sent(tmp_path / "outer")
    log._logs[sink_id].put(1, [(0, 1, before)])  # as if the crash had come before the segment was dropped
    runner.snapshot = job.snapshot()
    assert runner.start().run_batch()
    assert sorted(set(sent(tmp_path / "outer"))) == sorted(sent(tmp_path / "outer"))


def test_a_job_does_not_end_with_records_that_were_not_sent(tmp_path):
    runner = Crashing(tmp_path, write_ahead(tmp_path), max_records=100)
    job = runner.start()
    job.committers._sleep = lambda seconds: None
    TROUBLE["refuse"] = 1_000
    with pytest.raises(JobExecutionError, match=r"could not commit batch \d+ in 11 attempts"):
        job.run()
    runner.snapshot = job.snapshot()
    TROUBLE.clear()
    assert sent(tmp_path / "outer") == []
    runner.start().committers.checkpoint_complete()
    assert sorted(sent(tmp_path / "outer")) == list(range(1, 13))


def test_a_write_ahead_sink_needs_no_committer(tmp_path):
    Crashing(tmp_path, lambda env: numbers(env).add_sink(Outer(tmp_path / "outer"))).run()
    assert sorted(sent(tmp_path / "outer")) == list(range(1, 13))
    with pytest.raises(InvalidProgramError, match="CheckpointCommitter"):
        Outer(tmp_path, "no committer")


def test_checkpoint_committers_are_told_who_they_are_before_they_open(tmp_path):
    calls = []

    class Telling(CheckpointCommitter):
        def create_resource(self):
            calls.append("create_resource")

        def open(self):
            calls.append((self.job_id, bool(self.operator_id)))

        def commit_checkpoint(self, subtask_idx, checkpoint_id):
            calls.append((subtask_idx, checkpoint_id))

        def is_checkpoint_committed(self, subtask_idx, checkpoint_id):
            return False

        def close(self):
            calls.append("close")

    def build(env):
        numbers(env).add_sink(Outer(tmp_path / "outer", Telling(), "my job")).set_parallelism(1)

    Crashing(tmp_path, build, max_records=100).run()
    assert calls == ["create_resource", ("my job", True), (0, 1), "close"]
