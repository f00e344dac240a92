"""A live stage stays in one worker process, whichever worker is asked. No JVM: the workers are the test's processes."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from processes import wait_until

from penstock.common import Types
from penstock.common.errors import UserFunctionError
from penstock.connectors.sinks import CollectSink
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.graph.job_graph import translate
from penstock.runtime.plan.offset import SplitPosition
from penstock.runtime.state.pages import MemoryPageStore
from penstock.spark import stage_host, worker
from penstock.spark.failures import TaskFailureError, decode_failure
from penstock.testing import MiniCluster, MiniClusterJob

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers find each other on Linux only")

JOB_FILE = f"{os.urandom(8).hex()}.job"  # hosts are found by it, and other processes run these tests, too


@dataclass(frozen=True)
class Meeting:
    """A record in the middle of which test and function wait for each other."""

    directory: Path

    def meet(self):
        (self.directory / "arrived").touch()
        wait_until((self.directory / "go").exists, 60, "the test")


class Witness(KeyedProcessFunction):
    """Tells where it runs and how often it was opened; counts in state."""

    def open(self, runtime_context):
        self.instance = os.urandom(4).hex()
        self.seen = False
        self.thread = threading.get_ident()
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        if value == 666:
            raise ValueError("a bad record")
        if value == "kill the host" and self.seen:
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(value, Meeting) and self.seen:
            value.meet()
        self.seen = True
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
            except BaseException as error:  # the caller of run_stage encodes it
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

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.engine.run_level = self.run_level

    def run_level(self, level, rows):
        frames = [frame for channel, frame in rows if channel == 0]
        return self.asked.run(level, 0, self.pages, frames)


@contextlib.contextmanager
def running(values):
    """A job of one record a batch, and some workers."""
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    sink = CollectSink()
    env.from_collection(values).key_by(lambda value: 0).process(Witness()).sink_to(sink)
    made = Job(translate(env.sinks, env.job_settings("witness")), lambda: 0, max_records=1)
    made.pages = MemoryPageStore()
    made.records = sink.records
    made.workers = [WorkerProcess(made.engine.blob) for _ in range(3)]
    try:
        yield made
    finally:
        for each in made.workers:
            each.kill()
        sink.release()


@pytest.fixture
def job(request):
    with running(getattr(request, "param", [1, 2, 3, 4])) as made:
        yield made


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


def test_a_host_whose_state_is_no_longer_the_stored_one_gives_up(job, monkeypatch):
    batch_in(job, 0)
    kept, offset = dict(job.pages.blobs), job.offset
    with monkeypatch.context() as patch:
        patch.setattr(job.committers, "commit", lambda *_: None)
        assert job.run_batch()
    job.pages.blobs, job.engine.offset = kept, offset  # the batch was run, but never committed
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
    splits = {key: {"collection": SplitPosition(2, subtask=0)} for key in offset.splits}
    job.pages.blobs, job.engine.offset = kept, replace(offset, splits=splits)
    second = batch_in(job, 0)
    assert second[0] == 2
    assert second[2] != first[2]


def test_the_last_batch_closes_the_stage(job):
    for number in (0, 1, 0, 1):
        batch_in(job, number)
    worker._blobs[JOB_FILE] = job.engine.blob
    while job.run_batch():
        pass
    assert job.finished
    assert stage_host._connect((JOB_FILE, 1, 0)) is None


@pytest.mark.parametrize("job", [[1, "kill the host", 3, 4]], indirect=True)
def test_a_host_that_ends_in_the_middle_of_a_batch_does_not_fail_it(job):
    first = batch_in(job, 0)
    seen = [batch_in(job, number) for number in (1, 2, 1)]
    assert [count for count, *_ in seen] == [2, 3, 4]
    assert {pid for _, pid, *_ in seen} == {job.workers[1].process.pid}
    assert first[1] == job.workers[0].process.pid


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("asked", [(0, 1), (1, 2)], ids=["the host and another", "two others"])
def test_of_two_attempts_at_once_either_may_be_the_one_that_counts(job, asked, kept):
    """Speculative execution: both attempts run, each writes a version of its own of the state, one of them stays."""
    batch_in(job, 0)

    class Both:
        @staticmethod
        def run(level, channel, store, frames):
            stores = [MemoryPageStore(dict(store.blobs)) for _ in asked]
            rows = [None, None]

            def attempt(index):
                rows[index] = job.workers[asked[index]].run(level, channel, stores[index], frames)

            attempts = [threading.Thread(target=attempt, args=(index,)) for index in range(2)]
            for each in attempts:
                each.start()
            for each in attempts:
                each.join()
            store.blobs = stores[kept].blobs
            return rows[kept]

    job.asked = Both()
    assert job.run_batch()
    ((count, *_),) = job.records.get_nowait()
    assert count == 2
    assert [batch_in(job, number)[0] for number in (2, 0)] == [3, 4]


@pytest.fixture
def meeting(tmp_path):
    """Of the test with the function in the host, in the middle of the second record."""
    return Meeting(tmp_path)


@pytest.mark.parametrize("asked_next", [0, 2], ids=["the host", "another"])
def test_an_attempt_that_is_killed_while_its_host_is_at_work_leaves_nothing_behind(meeting, asked_next):
    with running([1, meeting, 3]) as job:
        batch_in(job, 0)

        class LostFirst:
            @staticmethod
            def run(level, channel, store, frames):
                theirs = MemoryPageStore(dict(store.blobs))
                attempt = threading.Thread(target=lost, args=(job.workers[1], level, channel, theirs, frames))
                attempt.start()
                wait_until((meeting.directory / "arrived").exists, 60, "the function")
                job.workers[1].kill()
                attempt.join()
                (meeting.directory / "go").touch()
                assert theirs.blobs == store.blobs
                return job.workers[asked_next].run(level, channel, store, frames)

        job.asked = LostFirst()
        assert job.run_batch()
        ((count, *_),) = job.records.get_nowait()
        assert count == 2  # not 3: the host's change of its live state was dropped
        assert batch_in(job, 0)[0] == 3


def lost(asked, *arguments):
    with contextlib.suppress(EOFError, OSError):
        asked.run(*arguments)


def test_what_a_host_writes_is_held_until_its_batch_is_done():
    store = MemoryPageStore({"a": b"1", "b": b"2"})
    held = stage_host.HeldStore(store)
    held.put("a", b"3")
    held.put("c", b"4")
    held.remove("b")
    held.put("c", b"5")
    assert store.blobs == {"a": b"1", "b": b"2"}
    assert [held.get(page) for page in "abcd"] == [b"3", None, b"5", None]
    assert not held.changed
    held.release()
    assert store.blobs == {"a": b"3", "c": b"5"}


@pytest.mark.parametrize("too_much", [False, True])
def test_a_host_that_ends_when_it_has_written_half_a_batch(too_much, monkeypatch):
    """The batch is run again, unless so much was written that some of it is in the store."""
    ours, theirs = multiprocessing.Pipe()
    key = ("half.job", 1, 0)
    monkeypatch.setitem(stage_host._connections, key, ours)
    monkeypatch.setitem(worker._blobs, "half.job", b"")
    monkeypatch.setattr(stage_host, "_HELD_BYTES", 1 if too_much else 1_000)
    theirs.send((stage_host._PUT, ("page", b"some bytes")))
    theirs.send((stage_host._GET, "page"))
    read = []

    def end():
        theirs.recv_bytes(), theirs.recv_bytes()
        read.append(theirs.recv())
        theirs.close()

    host = threading.Thread(target=end)
    host.start()
    store = MemoryPageStore()
    if too_much:
        with pytest.raises(TaskFailureError, match=r"worker that hosts stage 1, channel 0 has ended"):
            stage_host._relay(key, b"token", store, [])
    else:
        assert stage_host._relay(key, b"token", store, []) is None
        assert store.blobs == {}
    host.join()
    assert read == [b"some bytes"]
    assert key not in stage_host._connections


def test_a_stage_whose_name_is_taken_is_found_once_it_is_free(job):
    taken = socket.socket(socket.AF_UNIX)
    taken.bind(stage_host._address((JOB_FILE, 1, 0)))
    first = batch_in(job, 0)
    taken.close()
    assert batch_in(job, 0)[1] == first[1]
    assert batch_in(job, 1)[1] == first[1]
