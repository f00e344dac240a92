"""What reaches an outer system when a job crashes: the kind of sink decides, and the source (book, chapter 8)."""

import threading
from collections import Counter

import pytest
from crashing import CommittedSink, Crashing
from support import script

from penstock.common import Watermark
from penstock.common.errors import PenstockError
from penstock.common.watermark import MIN_WATERMARK
from penstock.connectors.upsert import UpsertClient, UpsertSink
from penstock.core.functions import TwoPhaseCommitSinkFunction
from penstock.datastream.functions import (
    KeyedProcessFunction,
    ParallelSourceFunction,
    SinkFunction,
    SourceFunction,
)
from penstock.testing import ManualClock

WRITTEN = []
TROUBLE = set()


@pytest.fixture(autouse=True)
def _clean():
    WRITTEN.clear()
    TROUBLE.clear()


class Troublesome(SinkFunction):
    """Fails once behind each record in TROUBLE, when that and all before it are in the outer system."""

    def invoke(self, value, context):
        WRITTEN.append(value)
        if value in TROUBLE:
            TROUBLE.discard(value)
            raise OSError("crash")


def test_a_plain_sink_loses_nothing_and_repeats_what_came_behind_the_last_checkpoint(tmp_path):
    TROUBLE.update({6, 7})

    def build(env):
        env.from_sequence(1, 12).set_parallelism(1).add_sink(Troublesome()).set_parallelism(1)

    assert Crashing(tmp_path, build, parallelism=1, max_records=4).run() == 2
    assert WRITTEN == [1, 2, 3, 4, 5, 6, 5, 6, 7, 5, 6, 7, 8, 9, 10, 11, 12]


class Store(UpsertSink):
    """A table in this process whose every version is looked at."""

    def connect(self, context):
        return StoreClient()


class StoreClient(UpsertClient):
    def apply(self, changes):
        WRITTEN.extend((change.key, change.value) for change in changes)
        if changes[-1].value in TROUBLE:
            TROUBLE.discard(changes[-1].value)
            raise OSError("crash")


def test_an_idempotent_sink_shows_older_values_again_until_the_crash_is_made_up_for(tmp_path):
    TROUBLE.add(6)
    store = Store(key=lambda value: value % 2, value=lambda value: value, batch_size=1)

    def build(env):
        env.from_sequence(1, 8).set_parallelism(1).sink_to(store).set_parallelism(1)

    assert Crashing(tmp_path, build, parallelism=1, max_records=4).run() == 1
    assert [value for key, value in WRITTEN if key == 0] == [2, 4, 6, 6, 8]
    assert [value for key, value in WRITTEN if key == 1] == [1, 3, 5, 5, 7]
    assert [value for _, value in WRITTEN][4:8] == [5, 6, 5, 6]  # a reader sees an older version again
    assert dict(WRITTEN) == {0: 8, 1: 7}


class Context(SinkFunction):
    def invoke(self, value, context):
        WRITTEN.append((value, context.timestamp(), context.current_watermark(), context.current_processing_time()))


class Stamped(SourceFunction):
    def run(self, ctx):
        ctx.collect_with_timestamp("a", 10)
        ctx.emit_watermark(Watermark(7))
        ctx.collect_with_timestamp("b", 20)
        ctx.collect("c")

    def cancel(self):
        pass


def test_a_sink_function_is_told_timestamp_watermark_and_processing_time(tmp_path):
    def build(env):
        env.add_source(Stamped()).add_sink(Context())

    Crashing(tmp_path, build, clock=ManualClock(1_234), parallelism=1, receiving=True).run()
    assert WRITTEN == [("a", 10, MIN_WATERMARK, 1_234), ("b", 20, 7, 1_234), ("c", None, 7, 1_234)]


class Noting:
    """Notes who calls what, and in which thread."""

    def note(self, what):
        index = self.get_runtime_context().get_index_of_this_subtask()
        WRITTEN.append((what, index, threading.get_ident() == MAIN))

    def open(self, runtime_context):
        self.stopped = threading.Event()
        self.note("open")

    def run(self, ctx):
        self.note("run")
        ctx.collect(self.get_runtime_context().get_index_of_this_subtask())
        if "endless" in TROUBLE:
            self.stopped.wait()
            self.note("leave")

    def cancel(self):
        self.note("cancel")
        self.stopped.set()

    def close(self):
        self.note("close")


class Alone(Noting, SourceFunction):
    pass


class Parallel(Noting, ParallelSourceFunction):
    pass


MAIN = threading.get_ident()


@pytest.mark.parametrize(("kind", "instances"), [(Alone, 1), (Parallel, 3)])
def test_a_source_function_has_one_instance_and_a_parallel_one_as_many_as_tasks(tmp_path, kind, instances):
    sink = CommittedSink("instances")

    def build(env):
        env.add_source(kind()).sink_to(sink)

    Crashing(tmp_path, build, parallelism=3, receiving=True).run()
    assert sorted(sink.records) == list(range(instances))
    for index in range(instances):  # each with its own life: run() once, in a thread of its own
        calls = [(what, main) for what, at, main in WRITTEN if at == index]
        assert calls == [("open", False), ("run", False), ("close", True)]


def test_an_endless_source_function_is_cancelled_from_outside_and_then_closed(tmp_path):
    TROUBLE.add("endless")
    sink = CommittedSink("endless")

    def build(env):
        env.add_source(Alone()).sink_to(sink)

    crashing = Crashing(tmp_path, build, parallelism=1, receiving=True)
    job = crashing.start()
    crashing.step(job)
    while not sink.records:
        crashing.step(job)
    job.close()
    assert WRITTEN == [
        ("open", 0, False),
        ("run", 0, False),
        ("cancel", 0, True),
        ("leave", 0, False),
        ("close", 0, True),
    ]


class Aborting(TwoPhaseCommitSinkFunction):
    def begin_transaction(self):
        WRITTEN.append("begin")
        return f"transaction {WRITTEN.count('begin')}"

    def invoke(self, transaction, value, context):
        if value in TROUBLE:
            TROUBLE.discard(value)
            raise OSError("crash")

    def pre_commit(self, transaction):
        pass

    def commit(self, transaction):
        WRITTEN.append(("commit", transaction))

    def abort(self, transaction):
        WRITTEN.append(("abort", transaction))


def test_a_transaction_may_be_aborted_twice_and_is_never_committed_then(tmp_path):
    TROUBLE.add(6)

    def build(env):
        env.from_sequence(1, 12).set_parallelism(1).add_sink(Aborting()).set_parallelism(1)

    crashing = Crashing(tmp_path, build, parallelism=1, max_records=4)
    job = crashing.start()
    assert job.run_batch()
    crashing.snapshot = job.snapshot()
    with pytest.raises(PenstockError, match="crash"):
        job.run_batch()
    job.close()  # by the task that failed, and by the one that takes over
    assert crashing.run() == 0
    aborted = Counter(entry[1] for entry in WRITTEN if entry[0] == "abort")
    committed = Counter(entry[1] for entry in WRITTEN if entry[0] == "commit")
    assert aborted["transaction 2"] == 2
    assert not aborted.keys() & committed.keys()
    assert set(committed.values()) == {1}
    assert len(committed) == 3


class Expiring(KeyedProcessFunction):
    """Has timers and no state beside them."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1_000)

    def on_timer(self, timestamp, ctx):
        yield "fired", timestamp, ctx.timer_service().current_processing_time()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_processing_time_timer_that_expired_since_a_savepoint_fires_at_once(tmp_path, parallelism):
    sink, clock = CommittedSink("timers"), ManualClock(500)

    def build(env):
        stream = script(env, ["key"], bounded=False).uid("source").key_by(lambda value: value)
        stream.process(Expiring()).uid("timers").sink_to(sink).uid("sink")

    job = Crashing(tmp_path / "one", build, clock=clock, parallelism=1).start()
    job.run()
    path = job.stop_with_savepoint(str(tmp_path / "savepoints"))
    assert sink.records == []
    clock.advance(60_000)
    job = Crashing(tmp_path / "two", build, clock=clock, parallelism=parallelism).start(savepoint=path)
    job.run()
    job.close()
    assert sink.records == [("fired", 1_500, 60_500)]
