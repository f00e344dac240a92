"""Committing on the driver: all committables of a batch, sink by sink, subtask by subtask."""

import pytest

from penstock.common.errors import JobExecutionError
from penstock.core.sink import Committer, Sink
from penstock.runtime.frames import TaskReport
from penstock.runtime.job import ChainedOperator, JobVertex
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.sink_committer import SinkCommitters


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
