"""A live stage stays in one worker process, whichever worker is asked. No JVM: the workers are the test's processes."""

import multiprocessing
import os
import sys
import threading

import pytest

from penstock.common import Types
from penstock.common.errors import UserFunctionError
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.sinks import CollectSink
from penstock.datastream.state import ValueStateDescriptor
from penstock.graph.job_graph import translate
from penstock.runtime.state.pages import MemoryPageStore
from penstock.spark import stage_host, worker
from penstock.spark.failures import TaskFailureError, decode_failure
from penstock.testing import MiniCluster, MiniClusterJob

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers find each other on Linux only")

JOB_FILE = "a.job"


class Witness(KeyedProcessFunction):
    """Tells where it runs and how often it was opened; counts in state."""

    def open(self, runtime_context):
        self.instance = os.urandom(4).hex()
        self.thread = threading.get_ident()
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        if value == 666:
            raise ValueError("a bad record")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield count, os.getpid(), self.instance, self.thread == threading.get_ident()


class WorkerProcess:
    """A process that runs stages when asked, with pages that the asking side keeps, as Spark does."""

    def __init__(self, blob):
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=self._loop, args=(theirs, blob), daemon=True)
        self.process.start()

    @staticmethod
    def _loop(connection, blob):
        worker._blobs[JOB_FILE] = blob
        while True:
            level, channel, frames = connection.recv()
            try:
                rows = stage_host.run_stage(JOB_FILE, level, channel, _PipedStore(connection), frames)
                connection.send(("done", rows))
            except TaskFailureError as failure:
                connection.send(("failed", str(failure)))
            except BaseException as error:  # encoded by whoever calls run_stage
                connection.send(("failed", stage_host._encoded(error)))

    def run(self, level, channel, store, frames):
        self.connection.send((level, channel, frames))
        while True:
            kind, content = self.connection.recv()
            if kind == "get":
                self.connection.send(store.get(content))
            elif kind == "put":
                store.put(*content)
            elif kind == "remove":
                store.remove(content)
            elif kind == "failed":
                raise decode_failure(content)
            else:
                return content

    def kill(self):
        self.process.kill()
        self.process.join()


class _PipedStore:
    def __init__(self, connection):
        self._connection = connection

    def get(self, page_id):
        self._connection.send(("get", page_id))
        return self._connection.recv()

    def put(self, page_id, blob):
        self._connection.send(("put", (page_id, blob)))

    def remove(self, page_id):
        self._connection.send(("remove", page_id))


class Job(MiniClusterJob):
    """A mini cluster job whose stateful level runs in the worker process of the caller's choice."""

    asked = None

    def _run_level(self, level, rows):
        frames = [frame for channel, frame in rows if channel == 0]
        return self.asked.run(level, 0, self.pages, frames)


@pytest.fixture
def job(request):
    """A job of one record a batch, and two workers."""
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    sink = CollectSink()
    values = getattr(request, "param", [1, 2, 3, 4])
    env.from_collection(values).key_by(lambda value: 0).process(Witness()).sink_to(sink)
    made = Job(translate(env._sinks, env._job_settings("witness")), lambda: 0, max_records=1)
    made.pages = MemoryPageStore()
    made.records = sink.records
    made.workers = [WorkerProcess(made._blob) for _ in range(2)]
    yield made
    for each in made.workers:
        each.kill()
    sink.release()


def batch_in(job, number):
    """Run a batch, asking one of the workers; what it emitted."""
    job.asked = job.workers[number]
    assert job.run_batch()
    (record,) = job.records.get_nowait()
    return record


def test_a_stage_stays_where_it_was_first(job):
    seen = [batch_in(job, number) for number in (0, 1, 1, 0)]
    assert [count for count, *_ in seen] == [1, 2, 3, 4]
    assert {pid for _, pid, *_ in seen} == {job.workers[0].process.pid}
    assert len({instance for _, _, instance, _ in seen}) == 1


def test_user_code_always_sees_the_same_thread(job):
    assert all(batch_in(job, number)[3] for number in (0, 1, 0, 1))


def test_a_host_that_was_killed_costs_a_reload_and_nothing_else(job):
    first = batch_in(job, 0)
    job.workers[0].kill()
    seen = [batch_in(job, 1), batch_in(job, 1)]
    assert [count for count, *_ in seen] == [2, 3]
    assert seen[0][2] == seen[1][2] != first[2]


def test_a_host_whose_state_is_no_longer_the_stored_one_gives_up(job):
    batch_in(job, 0)
    committed = dict(job.pages.blobs), job.offset
    assert batch_in(job, 0)[0] == 2
    # The batch was run, but never committed; another number, or the sink would take it for a repetition.
    job.pages.blobs, job.offset = dict(committed[0]), {**committed[1], "n": 9}
    again = batch_in(job, 1)
    assert again[0] == 2
    assert again[1] == job.workers[1].process.pid
    assert batch_in(job, 0)[1] == job.workers[1].process.pid


@pytest.mark.parametrize("job", [[1, 666, 3]], indirect=True)
def test_a_failure_in_the_host_reaches_the_worker_that_was_asked(job):
    first = batch_in(job, 0)
    kept, offset = dict(job.pages.blobs), job.offset
    with pytest.raises(UserFunctionError, match="a bad record"):
        batch_in(job, 1)
    # The next attempt starts from the committed state, in functions of its own.
    job.pages.blobs, job.offset = kept, {**offset, "s": {key: {"collection": [2, 0, 0]} for key in offset["s"]}}
    second = batch_in(job, 0)
    assert second[0] == 2
    assert second[2] != first[2]


def test_the_last_batch_closes_the_stage(job):
    for number in (0, 1, 0, 1):
        batch_in(job, number)
    worker._blobs[JOB_FILE] = job._blob
    while job.run_batch():
        pass
    assert job.finished
    assert stage_host._connect((JOB_FILE, 1, 0)) is None
