"""Edges of a job's life, in this process: what is asked for while it is rescaled, cancelled, or comes to its end."""

import threading
from contextlib import contextmanager

import pytest
from support import Script

from penstock.common import Configuration, JobStatus, WatermarkStrategy
from penstock.common.errors import JobCancelledError, JobExecutionError, SavepointError, UserFunctionError
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.savepoint.manifest import verify
from penstock.testing import MiniCluster

PATIENCE = 60
KEYS = 5


class Fed(Script):
    """Gives what it is fed, and ends when told: the job waits for it."""

    may_end = True

    def __init__(self, *elements):
        super().__init__(elements, bounded=False)

    def end(self):
        self.ended.add(0)


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class Gate(Sink):
    """Keeps what was committed; a commit may be held up on its way."""

    def __init__(self):
        self.commits = {}
        self.changed = threading.Condition()
        self.held = threading.Event()  # a thread waits at the gate
        self.open = threading.Event()
        self.open.set()
        self.failure = None

    def __getstate__(self):
        return {}

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return _Committer(self)

    def wait_for(self, records):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.records) >= records, PATIENCE)

    @property
    def records(self):
        return sorted(record for records in self.commits.values() for record in records)


class _Committer(Committer):
    def __init__(self, gate):
        self.gate = gate

    def commit(self, committables, checkpoint_id):
        if not self.gate.open.is_set():
            self.gate.held.set()
            assert self.gate.open.wait(PATIENCE)
        if self.gate.failure is not None:
            raise self.gate.failure
        with self.gate.changed:
            self.gate.commits[checkpoint_id] = list(committables)
            self.gate.changed.notify_all()


class Job:
    """A job that counts numbers by key."""

    def __init__(self, *elements, parallelism=2, function=None, **configuration):
        self.source, self.gate = Fed(*elements), Gate()
        env = StreamExecutionEnvironment(Configuration.from_dict(configuration), executor=MiniCluster())
        env.set_parallelism(parallelism)
        numbers = env.from_source(self.source, WatermarkStrategy.no_watermarks(), "fed").uid("fed")
        counted = numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count")
        counted = counted if function is None else counted.map(function)
        counted.sink_to(self.gate).uid("gate")
        self.client = env.execute_async("counting")
        self.result = self.client.get_job_execution_result()
        self.life = self.client.job.life

    @property
    def status(self):
        return self.client.get_job_status().result()

    def feed(self, *elements):
        self.source.add(*elements)
        self.client.job._master.job.checkpoints.wake()

    def end(self):
        self.source.end()
        return self.result.result(PATIENCE)

    @contextmanager
    def between_two_parallelisms(self):
        """What is in here happens when the job has stopped at one parallelism, and before it starts at the other."""
        stopped, go_on, successor = threading.Event(), threading.Event(), self.client.job._successor

        def held_up(*arguments):
            stopped.set()
            assert go_on.wait(PATIENCE)
            return successor(*arguments)

        self.client.job._successor = held_up
        self.rescaled = self.client.rescale(3)
        assert stopped.wait(PATIENCE)
        try:
            yield
        finally:
            self.client.job._successor = successor
            go_on.set()


def parallelism_of(savepoint):
    return {operator.parallelism for operator in verify(savepoint).operators.values() if operator.is_keyed}


def expected(records):
    seen = {}
    for number in records:
        seen[number % KEYS] = seen.get(number % KEYS, 0) + 1
    return sorted((key, n) for key, last in seen.items() for n in range(1, last + 1))


# -- while it is rescaled ---------------------------------------------------------------------------------------------


def test_what_is_asked_for_while_a_job_is_rescaled_is_done_by_the_rescaled_job(tmp_path):
    job = Job(*range(20))
    job.gate.wait_for(20)
    with job.between_two_parallelisms():
        assert job.status is JobStatus.RESTARTING
        asked = job.life.queries.ask("count", 3, "count")
        saved = job.client.trigger_savepoint(str(tmp_path))
        again = job.client.rescale(4)
        saved_again = job.client.trigger_savepoint(str(tmp_path))
        stopped = job.client.stop_with_savepoint(False, str(tmp_path))
        job.feed(*range(20, 30))
        assert not any(future.done() for future in (job.rescaled, asked, saved, again, saved_again, stopped))
    job.rescaled.result(PATIENCE)
    again.result(PATIENCE)
    paths = [future.result(PATIENCE) for future in (saved, saved_again, stopped)]
    assert [parallelism_of(path) for path in paths] == [{3}, {4}, {4}]
    assert len(set(paths)) == 3
    assert asked.result(PATIENCE).value in (4, 6)
    job.result.result(PATIENCE)
    assert job.status is JobStatus.FINISHED
    assert job.gate.records == expected(range(30))


def test_a_job_that_is_cancelled_while_it_is_rescaled_ends_and_leaves_nothing(tmp_path):
    job = Job(*range(20), **{"execution.checkpointing.savepoint-dir": str(tmp_path)})
    job.gate.wait_for(20)
    with job.between_two_parallelisms():
        saved, again = job.client.trigger_savepoint(str(tmp_path)), job.client.rescale(4)
        cancelled = job.client.cancel()
        assert job.status is JobStatus.CANCELLING
    cancelled.result(PATIENCE)
    with pytest.raises(JobCancelledError):
        job.result.result(PATIENCE)
    with pytest.raises(JobExecutionError, match="job 'counting' was cancelled while it was rescaled"):
        job.rescaled.result(PATIENCE)
    for future in (saved, again):
        with pytest.raises(SavepointError, match=r"job 'counting' has ended \(CANCELED\)"):
            future.result(PATIENCE)
    assert job.status is JobStatus.CANCELED
    assert list(tmp_path.iterdir()) == []


def test_a_rescaling_whose_savepoint_fails_disturbs_neither_the_job_nor_who_waits(tmp_path):
    (tmp_path / "file").write_text("no directory")
    job = Job(*range(20), **{"execution.checkpointing.savepoint-dir": str(tmp_path / "file")})
    job.gate.wait_for(20)
    rescaled, saved = job.client.rescale(3), job.client.trigger_savepoint(str(tmp_path))
    with pytest.raises(SavepointError, match="no savepoint could be written"):
        rescaled.result(PATIENCE)
    assert parallelism_of(saved.result(PATIENCE)) == {2}
    assert job.status is JobStatus.RUNNING
    job.feed(*range(20, 30))
    job.end()
    assert job.gate.records == expected(range(30))


def test_a_successor_that_cannot_start_is_the_jobs_error_and_everybodys():
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.client.job._successor = lambda *_: 1 / 0
    rescaled, again = job.client.rescale(3), job.client.rescale(4)
    with pytest.raises(ZeroDivisionError):
        job.result.result(PATIENCE)
    with pytest.raises(JobExecutionError, match="job 'counting' failed while it was rescaled: division by zero"):
        rescaled.result(PATIENCE)
    with pytest.raises(SavepointError, match=r"has ended \(FAILED\)"):
        again.result(PATIENCE)
    assert job.status is JobStatus.FAILED


# -- savepoints -------------------------------------------------------------------------------------------------------


def test_savepoints_at_the_same_time_are_all_taken_each_in_its_own_directory(tmp_path):
    job = Job(*range(20))
    asked = []
    threads = [
        threading.Thread(target=lambda: asked.append(job.client.trigger_savepoint(str(tmp_path)))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    paths = {future.result(PATIENCE) for future in asked}
    assert sorted(paths) == sorted(str(path) for path in tmp_path.iterdir())
    assert len({verify(path).checkpoint_id for path in paths}) == 5
    job.end()
    assert job.gate.records == expected(range(20))


def test_who_stops_a_job_once_more_is_told_which_savepoint_it_was_stopped_with(tmp_path):
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.gate.open.clear()
    job.feed(20)
    assert job.gate.held.wait(PATIENCE)  # both are asked for before either is begun
    first = job.client.stop_with_savepoint(False, str(tmp_path))
    second = job.client.cancel_with_savepoint(str(tmp_path))
    job.gate.open.set()
    path = first.result(PATIENCE)
    with pytest.raises(SavepointError, match=f"has ended .it was stopped with the savepoint {path}.: there is nothing"):
        second.result(PATIENCE)
    with pytest.raises(SavepointError, match=f"it was stopped with the savepoint {path}"):
        job.client.stop_with_savepoint(False, str(tmp_path)).result(PATIENCE)
    assert job.status is JobStatus.FINISHED  # the first one says how it ends
    assert [str(found) for found in tmp_path.iterdir()] == [path]


def test_a_savepoint_that_cannot_be_written_leaves_the_job_running(tmp_path):
    (tmp_path / "file").write_text("no directory")
    job = Job(*range(20))
    for ask in (
        job.client.trigger_savepoint,
        job.client.cancel_with_savepoint,
        lambda directory: job.client.stop_with_savepoint(True, directory),
    ):
        with pytest.raises(SavepointError, match=f"no savepoint could be written to {tmp_path / 'file'}"):
            ask(str(tmp_path / "file")).result(PATIENCE)
    with pytest.raises(SavepointError, match="no directory for the savepoint"):
        job.client.trigger_savepoint()
    job.gate.wait_for(20)
    assert job.status is JobStatus.RUNNING
    job.end()


def test_an_idle_job_is_drained(tmp_path):
    job = Job(*range(20))
    job.gate.wait_for(20)
    path = job.client.stop_with_savepoint(True, str(tmp_path)).result(PATIENCE)
    assert verify(path).drained
    assert job.status is JobStatus.FINISHED


def test_a_savepoint_of_a_job_that_has_just_come_to_its_end_is_refused_and_leaves_nothing(tmp_path):
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.gate.open.clear()
    job.feed(20)
    job.source.end()
    assert job.gate.held.wait(PATIENCE)  # the last batch is on its way
    saved, stopped = job.client.trigger_savepoint(str(tmp_path)), job.client.stop_with_savepoint(False, str(tmp_path))
    rescaled = job.client.rescale(3)
    job.gate.open.set()
    for future in (saved, stopped, rescaled, job.client.trigger_savepoint(str(tmp_path))):
        with pytest.raises(SavepointError, match=r"has ended \(FINISHED\)"):
            future.result(PATIENCE)
    assert job.gate.records == expected(range(21))
    assert list(tmp_path.iterdir()) == []


class FailsToClose(MapFunction):
    def map(self, value):
        return value

    def close(self):
        raise OSError("cannot close")


def test_a_job_that_fails_after_its_last_savepoint_says_both(tmp_path):
    job = Job(*range(20), function=FailsToClose())
    job.gate.wait_for(20)
    stopped = job.client.stop_with_savepoint(False, str(tmp_path))
    with pytest.raises(UserFunctionError, match="cannot close"):
        job.result.result(PATIENCE)
    with pytest.raises(SavepointError, match=r"is complete, but the job ended as FAILED before .*User function failed"):
        stopped.result(PATIENCE)
    (path,) = tmp_path.iterdir()
    verify(str(path))
    assert job.status is JobStatus.FAILED


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_job_that_is_cancelled_in_its_last_batch_has_finished():
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.gate.open.clear()
    job.feed(20)
    job.source.end()
    assert job.gate.held.wait(PATIENCE)
    cancelled = [job.client.cancel(), job.client.cancel()]
    assert job.status is JobStatus.CANCELLING
    assert not any(future.done() for future in cancelled)
    job.gate.open.set()
    job.result.result(PATIENCE)
    assert job.status is JobStatus.FINISHED
    for future in [*cancelled, job.client.cancel()]:
        future.result(PATIENCE)
    assert job.status is JobStatus.FINISHED
    assert job.gate.records == expected(range(21))


def test_a_job_that_is_cancelled_before_its_last_batch_was_cancelled():
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.gate.open.clear()
    job.feed(20)
    assert job.gate.held.wait(PATIENCE)
    cancelled = job.client.cancel()
    job.gate.open.set()
    cancelled.result(PATIENCE)
    with pytest.raises(JobCancelledError):
        job.result.result(PATIENCE)
    assert job.status is JobStatus.CANCELED


def test_a_failure_of_a_job_that_is_being_cancelled_is_not_its_end():
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.gate.open.clear()
    job.feed(20)
    assert job.gate.held.wait(PATIENCE)
    job.client.cancel()
    job.gate.failure = OSError("disk full")
    job.gate.open.set()
    with pytest.raises(JobCancelledError) as caught:
        job.result.result(PATIENCE)
    assert "disk full" in str(caught.value.__cause__)
    assert job.status is JobStatus.CANCELED


def test_several_may_wait_for_the_result_and_none_can_give_it_up_for_the_others():
    job = Job(*range(20))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(job.client.get_job_execution_result().result(PATIENCE)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert not job.client.get_job_execution_result().cancel()
    result = job.end()
    for thread in threads:
        thread.join()
    assert found == [result, result]


# -- states -----------------------------------------------------------------------------------------------------------


def test_the_states_of_a_job_that_is_rescaled_and_comes_to_its_end(job_states):
    job = Job(*range(20))
    job.client.rescale(3).result(PATIENCE)
    job.end()
    assert job_states == ["INITIALIZING", "CREATED", "RUNNING", "RESTARTING", "RUNNING", "FINISHED"]


def test_the_states_of_a_job_that_is_cancelled(job_states):
    job = Job(*range(20))
    job.gate.wait_for(20)
    job.client.cancel().result(PATIENCE)
    assert job_states == ["INITIALIZING", "CREATED", "RUNNING", "CANCELLING", "CANCELED"]


def test_the_states_of_a_job_that_fails(job_states):
    job = Job(*range(20), function=FailsToClose())
    job.gate.wait_for(20)
    job.gate.failure = OSError("disk full")
    job.feed(20)
    with pytest.raises(JobExecutionError, match="disk full"):
        job.result.result(PATIENCE)
    assert job_states == ["INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED"]
