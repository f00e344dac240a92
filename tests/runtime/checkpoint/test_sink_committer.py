"""Committing on the driver: all committables of a batch, sink by sink, subtask by subtask."""

import pytest

from penstock.common.errors import InvalidProgramError, JobExecutionError, RetryCommitError
from penstock.core.sink import Committer, Sink
from penstock.runtime.checkpoint.sink_committer import SinkCommitters
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex


class Noting(Committer):
    def __init__(self, log, name):
        self.log, self.name = log, name

    def commit(self, committables, checkpoint_id):
        if "fail" in committables:
            raise OSError("disk full")
        self.log.append((self.name, checkpoint_id, committables))

    def close(self):
        self.log.append((self.name, "closed"))


class NotingSink(Sink):
    def __init__(self, log, name):
        self.log, self.name = log, name

    def create_writer(self, context):
        raise NotImplementedError

    def create_committer(self):
        return Noting(self.log, self.name) if self.name else None


@pytest.fixture
def log():
    return []


@pytest.fixture
def committers(log):
    vertices = [
        JobVertex(
            i,
            name,
            2,
            128,
            [ChainedOperator(f"id {name}", name, SinkOperator(NotingSink(log, name)), None, None, 1)],
            True,
        )
        for i, name in enumerate(["first", "second", ""])
    ]
    return SinkCommitters(vertices)


def report(vertex, subtask, **committables):
    prepared = [(f"id {name}", values) for name, values in committables.items()]
    return TaskReport(vertex, subtask, "", 0, None, prepared, {})


def test_a_batch_is_committed_once_for_each_sink_in_the_order_of_subtasks(committers, log):
    reports = [report(1, 0, second=["c"]), report(0, 1, first=["b"]), report(0, 0, first=["a"])]
    committers.commit(reports, 7)
    assert log == [("first", 7, ["a", "b"]), ("second", 7, ["c"])]


def test_sinks_without_committables_or_committer_are_left_out(committers, log):
    committers.commit([report(0, 0)], 1)
    committers.commit([report(2, 0, **{"": ["x"]})], 2)
    assert log == []


def test_a_failing_commit_names_sink_batch_and_reason(committers):
    with pytest.raises(JobExecutionError, match=r"sink 'first' failed to commit batch 3: OSError: disk full"):
        committers.commit([report(0, 0, first=["fail"])], 3)


def test_all_committers_are_closed(committers, log):
    committers.close()
    assert log == [("first", "closed"), ("second", "closed")]


class Stubborn(Noting):
    """Asks to be called again so many times."""

    refusals = 0
    max_retries = 3

    def commit(self, committables, checkpoint_id):
        if self.refusals > 0:
            self.refusals -= 1
            raise RetryCommitError("busy")
        super().commit(committables, checkpoint_id)


class Later(Stubborn):
    after_checkpoint = True


class OtherSink(NotingSink):
    def __init__(self, log, name, kind):
        super().__init__(log, name)
        self.kind = kind

    def create_committer(self):
        return self.kind(self.log, self.name)


def committers_of(log, kind, directory=None):
    waits = []
    operator = ChainedOperator("id late", "late", SinkOperator(OtherSink(log, "late", kind)), None, None, 1)
    committers = SinkCommitters([JobVertex(0, "late", 1, 128, [operator], True)], waits.append)
    committers.start("job", directory)
    return committers, committers._committers["id late"], waits


def test_a_commit_that_asks_for_it_is_tried_again_with_growing_waits(log):
    committers, committer, waits = committers_of(log, Stubborn)
    committer.refusals = 3
    committers.commit([report(0, 0, late=["a"])], 5)
    assert log == [("late", 5, ["a"])]
    assert waits == [0.05, 0.1, 0.2]


def test_after_too_many_retries_the_job_fails_with_the_reason(log):
    committers, committer, _ = committers_of(log, Stubborn)
    committer.refusals = 4
    with pytest.raises(JobExecutionError, match=r"sink 'late' could not commit batch 5 in 4 attempts: busy"):
        committers.commit([report(0, 0, late=["a"])], 5)


def test_a_sink_that_commits_after_the_checkpoint_waits_for_it_and_goes_through_the_log(log, tmp_path):
    committers, _, _ = committers_of(log, Later, str(tmp_path))
    committers.commit([report(0, 0, late=["a"])], 5)
    committers.commit([report(0, 0, late=["again"])], 5)  # a replay takes the place of the first run
    assert log == []
    again, _, _ = committers_of(log, Later, str(tmp_path))  # after a crash of the driver
    again.checkpoint_complete(4)
    assert log == []
    again.checkpoint_complete()
    assert log == [("late", 5, ["again"])]
    committers_of(log, Later, str(tmp_path))[0].checkpoint_complete()
    assert log == [("late", 5, ["again"])]


def test_a_replay_that_prepares_nothing_takes_back_what_the_first_run_prepared(log):
    committers, _, _ = committers_of(log, Later)
    committers.commit([report(0, 0, late=["a"])], 5)
    committers.commit([report(0, 0)], 5)
    committers.checkpoint_complete()
    assert log == []


def test_what_cannot_be_committed_yet_waits_and_keeps_its_place(log):
    committers, committer, waits = committers_of(log, Later)
    committer.refusals = 1
    for checkpoint_id in (1, 2):
        committers.commit([report(0, 0, late=[checkpoint_id])], checkpoint_id)
    committers.checkpoint_complete()
    assert (log, waits) == ([], [])
    committers.checkpoint_complete()
    assert log == [("late", 1, [1]), ("late", 2, [2])]


def test_a_log_that_would_not_survive_the_driver_is_refused(log, committers):
    with pytest.raises(InvalidProgramError, match=r"sink 'late'.*s3://bucket"):
        committers_of(log, Later)[0].check_durable("s3://bucket/dir")
    committers.check_durable("s3://bucket/dir")


class Troublesome(Noting):
    def open(self, job_id, sink_id):
        if self.name == "cannot open":
            raise OSError("no route")

    def close(self):
        super().close()
        raise OSError(f"{self.name} is gone")


def troublesome(log, *names, committer=Troublesome):
    class OfThisKind(NotingSink):
        def create_committer(self):
            return committer(self.log, self.name)

    chains = [[ChainedOperator(name, name, SinkOperator(OfThisKind(log, name)), None, None, 1)] for name in names]
    return SinkCommitters([JobVertex(i, "", 1, 128, chain, True) for i, chain in enumerate(chains)])


def test_a_committer_that_cannot_be_made_or_opened_names_its_sink(log):
    def broken(log, name):
        raise ValueError("no such cluster")

    with pytest.raises(JobExecutionError, match="sink 'broken' failed to create its committer: ValueError"):
        troublesome(log, "broken", committer=broken)
    with pytest.raises(JobExecutionError, match="sink 'cannot open' failed to open its committer: OSError: no route"):
        troublesome(log, "fine", "cannot open").start("job", None)


def test_all_committers_are_closed_once_though_one_of_them_fails(log):
    committers = troublesome(log, "first", "second")
    with pytest.raises(JobExecutionError, match="sink 'first' failed to close its committer: OSError: first is gone"):
        committers.close()
    committers.close()
    assert log == [("first", "closed"), ("second", "closed")]


def test_what_a_failed_job_fails_with_is_not_hidden_by_its_committers(log):
    troublesome(log, "first").close(failed=True)
    assert log == [("first", "closed")]


def test_a_commit_that_did_not_come_back_is_committed_again_as_such(tmp_path):
    calls = []

    class After(Committer):
        after_checkpoint = True

        def __init__(self, log, name):
            pass

        def commit(self, committables, checkpoint_id):
            calls.append(("commit", checkpoint_id))
            if committables == ["fails"]:
                raise OSError("timed out")

        def recommit(self, committables, checkpoint_id):
            calls.append(("recommit", checkpoint_id))

    def start():
        made = troublesome([], "sink", committer=After)
        made.start("job", str(tmp_path))
        return made

    committers = start()
    committers.commit([TaskReport(0, 0, "", 0, None, [("sink", ["fails"])], {})], 1)
    committers.commit([TaskReport(0, 0, "", 0, None, [("sink", ["fine"])], {})], 2)
    with pytest.raises(JobExecutionError, match="timed out"):
        committers.checkpoint_complete()
    committers.checkpoint_complete()
    assert calls == [("commit", 1), ("recommit", 1), ("commit", 2)]
    committers.commit([TaskReport(0, 0, "", 0, None, [("sink", ["of a crashed driver"])], {})], 3)
    start().checkpoint_complete()
    assert calls[3:] == [("recommit", 3)]
