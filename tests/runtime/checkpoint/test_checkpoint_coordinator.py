"""The steps of a checkpoint: their order, what the fence stands before, and what a crash leaves."""

import pytest
from support import Script

from penstock.common import JobStatus
from penstock.common.errors import FencedError, JobExecutionError, SavepointError
from penstock.core.fence import Fence
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.runtime.checkpoint.checkpoint_coordinator import CheckpointCoordinator
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.source.batch_sizer import BatchSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.task.union_states import UnionStates


class Logged(Script):
    """A source whose enumerator logs what it is told."""

    def __init__(self, steps, *elements, bounded=True):
        super().__init__(elements, bounded=bounded)
        self.steps = steps

    def create_enumerator(self, parallelism):
        enumerator = super().create_enumerator(parallelism)
        enumerator.commit = lambda offsets: self.steps.append(f"sources committed {offsets['0']}")
        return enumerator


class LoggedSink(Sink):
    def __init__(self, steps, *, after_checkpoint):
        self.committer = LoggedCommitter(steps, after_checkpoint)

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return self.committer


class LoggedCommitter(Committer):
    def __init__(self, steps, after_checkpoint):
        self.steps, self.after_checkpoint = steps, after_checkpoint

    def commit(self, committables, checkpoint_id):
        self.steps.append(f"{'late' if self.after_checkpoint else 'early'} sink committed {checkpoint_id}")


class LoggedFence(Fence):
    """Lets a driver pass a number of times."""

    def __init__(self, steps):
        self.steps, self.left = steps, 100

    def check(self):
        self.steps.append("fence")
        self.left -= 1
        if not self.left:
            raise FencedError("another driver has taken over")


class Graph:
    def __init__(self, vertices):
        self.vertices = vertices


class Job:
    """A source and two sinks, whose tasks are this engine."""

    def __init__(self, *elements, limit=2, bounded=True, storage=None):
        self.steps = []
        self.source = Logged(self.steps, *elements, bounded=bounded)
        sinks = [SinkOperator(LoggedSink(self.steps, after_checkpoint=late)) for late in (False, True)]
        operators = [ChainedOperator("source", "source", None, self.source, "source", 128)]
        operators += [ChainedOperator(f"sink {n}", f"sink {n}", sink, None, None, 128) for n, sink in enumerate(sinks)]
        self.vertices = [JobVertex(0, "job", 1, 128, operators, source_bounded=bounded)]
        self.fence = LoggedFence(self.steps)
        self.storage = storage or MemoryCheckpointStorage()
        self.life = JobLife("1" * 32, "logged")
        self.limit = limit
        self.failure = None
        self.checkpoints = CheckpointCoordinator(
            self.vertices,
            self.life,
            JobProgress(Graph(self.vertices)),
            fence=self.fence,
            on_first_checkpoint=lambda: self.steps.append("first checkpoint"),
        )
        self.checkpoints.start("1" * 32, self.storage)
        self.open()

    def open(self, **options):
        self.checkpoints.open(SourceCoordinator(self.vertices, sizer=BatchSizer(self.limit)), **options)
        self.offset = self.checkpoints.sources.initial_offset
        self.steps.clear()

    def run(self, batch):
        self.steps.append(f"run to {batch.end.of_source('source')['0'].offset}")
        self.reported = TaskReport(0, 0, "job", 0, None, [("sink 0", ["a"]), ("sink 1", ["b"])], {}, records_in=2)
        return [self.reported]

    def make_durable(self, batch):
        self.steps.append("durable")
        if self.failure is not None:
            raise self.failure
        self.offset = batch.end
        self.storage.complete(batch.end.checkpoint_id)

    def run_batch(self):
        self.steps.clear()
        return self.checkpoints.run_batch(self, self.offset)


STEPS = [
    "fence",
    "run to 2",
    "fence",
    "early sink committed 1",
    "fence",
    "durable",
    "fence",
    "late sink committed 1",
    "sources committed 2",
    "first checkpoint",
]


def test_a_checkpoint_goes_through_its_steps_in_this_order():
    job = Job(*"abc")
    assert job.run_batch()
    assert job.steps == STEPS
    assert job.run_batch()
    assert job.steps[-3:] == ["fence", "late sink committed 2", "sources committed 3"]
    assert not job.run_batch()
    assert job.checkpoints.ended
    assert job.checkpoints.outcome() is JobStatus.FINISHED


def test_a_batch_job_goes_through_the_same_steps():
    job = Job(*"abc")
    job.checkpoints.run_to_end(job)
    assert job.steps == [step.replace("2", "3") for step in STEPS]
    assert job.checkpoints.ended


@pytest.mark.parametrize(
    ("passes", "last_step"), [(1, "fence"), (2, "fence"), (3, "fence"), (4, "fence")], ids=["1", "2", "3", "4"]
)
def test_a_driver_that_was_replaced_gets_no_further_than_the_next_fence(passes, last_step):
    job = Job(*"abc")
    job.fence.left = passes
    with pytest.raises(FencedError):
        job.run_batch()
    fences = [position for position, step in enumerate(STEPS) if step == last_step]
    assert job.steps == STEPS[: fences[passes - 1] + 1]


def test_what_is_not_durable_is_planned_and_committed_again_under_the_same_id():
    job = Job(*"abc")
    job.failure = JobExecutionError("the storage is away")
    with pytest.raises(JobExecutionError):
        job.run_batch()
    assert "late sink committed 1" not in job.steps
    job.failure = None
    job.open()
    assert job.run_batch()
    assert job.steps == ["fence", *STEPS]  # the log still has what was not committed


def test_an_answer_to_a_query_is_given_when_its_checkpoint_is_complete():
    job = Job(*"abc")
    asked = job.life.queries.ask("state", "key")
    job.failure = JobExecutionError("the storage is away")
    with pytest.raises(JobExecutionError):
        job.run_batch()
    assert job.checkpoints.batch.header.queries
    assert not asked.done()
    job.failure = None
    job.open()
    job.run_batch()
    assert asked.done()


def test_an_attempt_continues_behind_the_last_complete_checkpoint():
    job = Job(*"abcd", bounded=False)
    job.run_batch()
    kept = job.offset
    job.open()
    job.offset = kept
    job.run_batch()
    assert job.offset.checkpoint_id == 2
    # The sources may only know their splits after the first plan, so they are told a second time.
    assert job.steps[:3] == ["sources committed 2", "sources committed 2", "fence"]


def test_a_batch_that_is_begun_twice_has_the_same_header(tmp_path):
    """Spark may plan a batch twice. A savepoint that is requested in between waits for the next batch."""
    job = Job(*"abcd", bounded=False)
    end = job.checkpoints.plan(job.offset)
    first = job.checkpoints.begin(job.offset, end)
    job.life.savepoints.submit(str(tmp_path))
    again = job.checkpoints.begin(job.offset, end)
    assert again.header is first.header
    assert again.header.savepoint is None
    assert again == job.checkpoints.batch


def test_a_requested_savepoint_needs_a_batch_even_without_input(tmp_path):
    job = Job(bounded=False)
    assert job.run_batch()
    assert not job.run_batch()
    job.life.savepoints.submit(str(tmp_path))
    assert job.checkpoints.plan(job.offset) is not None


def test_an_attempt_that_only_loads_state_takes_no_savepoint_and_ends_with_its_first_batch(tmp_path):
    job = Job(*"abcd")
    job.open(loading_only=True)
    ticket = job.life.savepoints.submit(str(tmp_path))
    assert job.run_batch()
    assert job.checkpoints.batch.header.savepoint is None
    assert not ticket.future.done()
    assert job.checkpoints.stopping
    assert not job.checkpoints.ended
    assert "first checkpoint" not in job.steps


def test_a_job_that_stops_with_a_savepoint_has_ended_when_its_checkpoint_is_complete(tmp_path):
    job = Job(*"abcd", bounded=False)
    ticket = job.life.savepoints.submit(str(tmp_path), stop=True)
    assert job.run_batch()
    assert job.checkpoints.stopped_with is ticket
    assert job.checkpoints.ended
    assert not job.checkpoints.stopped_before(1)
    assert job.checkpoints.stopped_before(2)
    assert job.checkpoints.outcome() is JobStatus.FINISHED


@pytest.mark.parametrize(("how", "status"), [({"cancel": True}, "CANCELED"), ({"parallelism": 3}, "RESTARTING")])
def test_the_savepoint_says_how_a_job_that_stops_with_it_ends(tmp_path, how, status):
    job = Job(*"abcd", bounded=False)
    job.life.savepoints.submit(str(tmp_path), **how)
    job.run_batch()
    assert job.checkpoints.outcome() is JobStatus[status]


def test_a_job_that_is_stopped_before_its_last_checkpoint_is_complete_has_no_savepoint(tmp_path):
    job = Job(*"abcd", bounded=False)
    ticket = job.life.savepoints.submit(str(tmp_path), stop=True)
    job.failure = JobExecutionError("the storage is away")
    with pytest.raises(JobExecutionError):
        job.run_batch()
    job.checkpoints.complete_if_durable()
    assert job.checkpoints.outcome() is JobStatus.CANCELED
    with pytest.raises(SavepointError, match="cancelled before its last checkpoint was complete"):
        ticket.future.result()


def test_a_last_batch_that_became_durable_nevertheless_is_completed():
    job = Job("a")
    job.failure = JobExecutionError("the connection broke")
    with pytest.raises(JobExecutionError):
        job.run_batch()
    job.storage.complete(1)
    job.checkpoints.complete_if_durable()
    assert job.steps[-3:] == ["late sink committed 1", "sources committed 1", "first checkpoint"]
    assert job.checkpoints.outcome() is JobStatus.FINISHED


def test_union_states_are_stored_before_the_sinks_commit(monkeypatch):
    job = Job(*"abc")
    monkeypatch.setattr(UnionStates, "batch", lambda self, reports, checkpoint_id: job.steps.append("unions"))
    job.run_batch()
    assert job.steps[1:5] == ["run to 2", "unions", "fence", "early sink committed 1"]
