"""Source functions: state, the checkpoint lock, what happens when the job is slower, and the end."""

import sys
import threading
import time
from pathlib import Path

import pytest
from crashing import TROUBLE, CommittedSink, Crashing, troublesome, wait_until

from penstock.common import Watermark
from penstock.common.errors import JobExecutionError, PenstockError
from penstock.common.watermark import MIN_WATERMARK
from penstock.connectors.source_function import FunctionReceiver, SourceFunctionSource
from penstock.core.functions import CheckpointedFunction, CheckpointListener, ListCheckpointed
from penstock.core.state import ListStateDescriptor
from penstock.datastream.functions import KeyedProcessFunction, ParallelSourceFunction, SourceFunction
from penstock.runtime.source.receive_log import ReceiveLog

LOG = []


@pytest.fixture(autouse=True)
def _clean():
    LOG.clear()


class ResettableCount(SourceFunction, CheckpointedFunction, CheckpointListener):
    """Counts to a limit; offset and emission are one step (rules R06, R12)."""

    def __init__(self, limit, hesitate=False):
        self.limit, self.hesitate, self.running, self.offset = limit, hesitate, True, -1

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))
        self.offset = next(iter(self.state.get()), -1)
        LOG.append(("initialize", context.is_restored(), self.offset))

    def open(self, runtime_context):
        LOG.append(("open", runtime_context.get_index_of_this_subtask()))

    def snapshot_state(self, context):
        self.state.update([self.offset])
        LOG.append(("snapshot", context.get_checkpoint_id(), self.offset))

    def notify_checkpoint_complete(self, checkpoint_id):
        LOG.append(("complete", checkpoint_id))

    def run(self, ctx):
        while self.running and self.offset < self.limit:
            with ctx.get_checkpoint_lock():
                self.offset += 1
                if self.hesitate:
                    time.sleep(0.0005)  # a snapshot taken here would lose a record
                ctx.collect(self.offset)

    def cancel(self):
        self.running = False

    def close(self):
        LOG.append(("close", self.offset))


def counting(sink, function):
    return lambda env: env.add_source(function).map(troublesome).sink_to(sink)


@pytest.mark.parametrize("hesitate", [False, True])
@pytest.mark.parametrize("max_records", [1, 7])
def test_a_resettable_source_function_goes_on_where_its_checkpoint_is(tmp_path, max_records, hesitate):
    sink = CommittedSink("counts")
    TROUBLE.update(dict.fromkeys((0, 13, 14, 37), True))
    job = Crashing(tmp_path, counting(sink, ResettableCount(59, hesitate)), max_records=max_records, receiving=True)
    assert job.run() == 4
    assert sorted(sink.records) == list(range(60))
    restored = [entry for entry in LOG if entry[0] == "initialize"]
    assert restored[0] == ("initialize", False, -1)
    if max_records == 1:
        assert restored[1:] == [("initialize", False, -1), *[("initialize", True, n) for n in (12, 13, 36)]]


def test_a_snapshot_is_complete_when_its_batch_is_and_numbers_grow(tmp_path):
    sink = CommittedSink("numbers")
    job = Crashing(tmp_path, counting(sink, ResettableCount(20)), max_records=3, receiving=True)
    job.run()
    taken = [entry[1] for entry in LOG if entry[0] == "snapshot"]
    complete = [entry[1] for entry in LOG if entry[0] == "complete"]
    assert taken == complete == list(range(1, len(taken) + 1))
    for number in taken:
        assert LOG.index(("complete", number)) > next(i for i, e in enumerate(LOG) if e[:2] == ("snapshot", number))
    assert LOG[-1] == ("close", 20)
    assert [entry[0] for entry in LOG].count("close") == 1


def test_a_batch_of_a_function_with_state_is_no_larger_than_allowed(tmp_path):
    sink = CommittedSink("bounded")
    job = Crashing(tmp_path, counting(sink, ResettableCount(40)), max_records=5, receiving=True).start()
    sizes, before = [], 0
    while not job.finished:
        wait_until(job.run_batch)
        sizes.append(len(sink.records) - before)
        before = len(sink.records)
    job.close()
    assert max(sizes) <= 5


def test_a_savepoint_takes_the_state_of_a_source_function_along(tmp_path):
    sink = CommittedSink("savepoint")

    def build(env):
        env.add_source(ResettableCount(50)).uid("count").map(troublesome).uid("map").sink_to(sink).uid("sink")

    job = Crashing(tmp_path / "one", build, max_records=4, receiving=True).start()
    for _ in range(3):
        wait_until(job.run_batch)
    path = job.stop_with_savepoint(str(tmp_path / "savepoints"))
    seen = list(sink.records)
    assert seen
    assert max(seen) < 50
    after = CommittedSink("savepoint")
    job = Crashing(tmp_path / "two", build, max_records=4, receiving=True).start(savepoint=path)
    job.run_to_end()
    job.close()
    assert sorted(seen + after.records) == list(range(51))


class ListCounting(ParallelSourceFunction, ListCheckpointed):
    """Two instances, each with state of its own."""

    def __init__(self, limit):
        self.limit, self.running, self.next = limit, True, 0

    def restore_state(self, state):
        self.next = sum(state)

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.next]

    def run(self, ctx):
        index = self.get_runtime_context().get_index_of_this_subtask()
        while self.running and self.next < self.limit:
            with ctx.get_checkpoint_lock():
                ctx.collect((index, self.next))
                self.next += 1

    def cancel(self):
        self.running = False


def test_every_instance_of_a_parallel_source_function_has_its_own_state(tmp_path):
    sink = CommittedSink("instances")
    TROUBLE.update(dict.fromkeys(((0, 5), (1, 11), (1, 12)), True))
    assert Crashing(tmp_path, counting(sink, ListCounting(30)), max_records=3, receiving=True).run() == 3
    assert sorted(sink.records) == [(index, number) for index in range(2) for number in range(30)]


# -- a job that is slower than its source ------------------------------------------------------------------------------


class Flood(SourceFunction):
    sent = 0

    def __init__(self, locked=False):
        self.locked, self.running = locked, True

    def run(self, ctx):
        Flood.sent = 0
        if self.locked:
            with ctx.get_checkpoint_lock():
                self.emit(ctx)
        else:
            self.emit(ctx)
        LOG.append("returned")

    def emit(self, ctx):
        while self.running:
            ctx.collect(Flood.sent)
            Flood.sent += 1

    def cancel(self):
        self.running = False


@pytest.mark.parametrize("locked", [False, True])
def test_a_source_function_waits_for_a_job_that_is_slower_and_stops_waiting_when_cancelled(tmp_path, locked):
    source = SourceFunctionSource(Flood(locked), "flood")
    enumerator = source.create_enumerator(1)
    enumerator.use_directory(str(tmp_path))
    enumerator.start()
    (split,) = enumerator.discover_splits()
    offset = enumerator.latest_offset(split, 0, 100)
    for _ in range(20):
        start = offset
        wait_until(lambda: enumerator._logs[0].pending == 100)  # and it stays there: the function waits
        offset = enumerator.latest_offset(split, offset, 100)
        assert offset == start + 100
        assert Flood.sent <= offset + 101
        enumerator.commit({"0": offset})
        assert list(Path(tmp_path).rglob("*.log")) == []  # nothing committed stays on disk
    enumerator.close()
    assert LOG == ["returned"]


def test_a_batch_that_is_not_committed_is_all_that_is_kept_on_disk(tmp_path):
    log = ReceiveLog(str(tmp_path), capacity=10)
    thread = threading.Thread(target=lambda: [log.append(number) for number in range(1_000)])
    thread.start()
    position = files = 0
    while position < 1_000:
        position = log.seal(position, 10)
        files = max(files, len(list(tmp_path.glob("*.log"))))
        assert log.pending <= 10
        log.truncate(position - 10)
    thread.join()
    assert files <= 12  # a segment may hold a single element


class Greedy(ResettableCount):
    def run(self, ctx):
        with ctx.get_checkpoint_lock():
            while self.running:
                self.offset += 1
                ctx.collect(self.offset)


def test_a_function_that_never_lets_go_of_the_lock_is_told_so(tmp_path):
    sink = CommittedSink("greedy")
    job = Crashing(tmp_path, counting(sink, Greedy(0)), max_records=5, receiving=True).start()
    with pytest.raises(
        JobExecutionError, match=r"'Custom Source' holds the checkpoint lock.*release it between records"
    ):
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()


class Broken(ResettableCount):
    def initialize_state(self, context):
        context.get_keyed_state_store()


def test_keyed_state_in_a_source_function_is_refused(tmp_path):
    job = Crashing(tmp_path, counting(CommittedSink("broken"), Broken(1)), receiving=True).start()
    with pytest.raises(PenstockError, match="'Custom Source' requested keyed state: use the operator state store"):
        wait_until(lambda: job.run_batch() and False)
    job.coordinator.close()


# -- event time --------------------------------------------------------------------------------------------------------


class Quiet(ParallelSourceFunction):
    """The first instance has records and watermarks; the second one has none, and says so or not."""

    release = threading.Event()

    def __init__(self, says_so):
        self.says_so, self.running = says_so, True

    def run(self, ctx):
        if self.get_runtime_context().get_index_of_this_subtask() == 0:
            ctx.collect_with_timestamp("early", 10)
            ctx.emit_watermark(Watermark(100))
        elif self.says_so:
            ctx.mark_as_temporarily_idle()
        while self.running and not Quiet.release.wait(0.01):
            pass
        if self.running and self.get_runtime_context().get_index_of_this_subtask() == 1:
            ctx.collect_with_timestamp("late riser", 50)  # active again: it counts from here on
        elif self.running:
            ctx.collect_with_timestamp("later", 190)
            ctx.emit_watermark(Watermark(200))

    def cancel(self):
        self.running = False


class AtOwnTime(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield timestamp


@pytest.mark.parametrize("says_so", [True, False])
def test_an_instance_that_is_idle_does_not_hold_time_back_and_one_that_is_silent_does(tmp_path, says_so):
    Quiet.release.clear()
    sink = CommittedSink("idle")

    def build(env):
        env.add_source(Quiet(says_so)).key_by(lambda value: value).process(AtOwnTime()).sink_to(sink)

    job = Crashing(tmp_path, build, max_records=10, receiving=True).start()
    enumerator = job.coordinator.sources[0].enumerator
    wait_until(lambda: job.run_batch() or len(enumerator._receivers) == 2)
    if says_so:
        wait_until(lambda: not job.run_batch() and sink.records == [10])
    else:
        wait_until(lambda: not job.run_batch() and job.offset.splits and enumerator._logs[0].end == 2)
        assert sink.records == []
    Quiet.release.set()
    job.run_to_end()
    job.close()
    assert sorted(sink.records) == [10, 50, 190]


class Misbehaving(SourceFunction):
    """Does what its name in TROUBLE says."""

    def run(self, ctx):
        ctx.collect("a record")
        if "exit" in TROUBLE:
            sys.exit(3)

    def cancel(self):
        LOG.append("cancel")
        raise OSError("there is nothing to cancel")

    def close(self):
        LOG.append("close")


def test_sys_exit_in_run_fails_the_job_and_is_not_the_end_of_the_stream(tmp_path):
    TROUBLE["exit"] = True
    job = Crashing(tmp_path, counting(CommittedSink("exit"), Misbehaving()), receiving=True).start()
    with pytest.raises(PenstockError, match=r"called sys\.exit\(3\)"):
        job.run_to_end()
    job.close()
    assert LOG == ["close"]


def test_a_function_that_has_come_to_its_end_is_closed_and_not_cancelled(tmp_path):
    assert Crashing(tmp_path, counting(CommittedSink("ended"), Misbehaving()), receiving=True).run() == 0
    assert LOG == ["close"]


def test_a_function_that_fails_when_it_is_cancelled_is_closed_all_the_same(tmp_path):
    class Endless(Misbehaving):
        def run(self, ctx):
            started.set()
            stop.wait()

        def cancel(self):
            stop.set()
            super().cancel()

    started, stop = threading.Event(), threading.Event()
    enumerator = SourceFunctionSource(Endless()).create_enumerator(1)
    enumerator._make_receiver = lambda index: FunctionReceiver("endless", Endless(), 0, 1)
    enumerator.start()
    enumerator.latest_offset(*enumerator.discover_splits(), 0, 10)
    started.wait()
    with pytest.raises(OSError, match="nothing to cancel"):
        enumerator.close()
    assert LOG == ["cancel", "close"]


def test_a_function_that_never_lets_go_of_its_lock_can_be_closed(monkeypatch):
    monkeypatch.setattr("penstock.connectors.source_function._CLOSE_SECONDS", 0.01)
    monkeypatch.setattr("penstock.runtime.source.received_source._STOP_SECONDS", 0.01)
    held = threading.Event()

    class Holding(ResettableCount):
        def run(self, ctx):
            with ctx.get_checkpoint_lock():
                held.set()
                threading.Event().wait()

    enumerator = SourceFunctionSource(ResettableCount(1)).create_enumerator(1)
    enumerator._make_receiver = lambda index: FunctionReceiver("holding", Holding(1), 0, 1)
    enumerator.start()
    enumerator.latest_offset(*enumerator.discover_splits(), 0, 10)
    held.wait()
    enumerator.close()
    assert LOG[-1] == ("close", -1)


class IdleThenWatermark(SourceFunction):
    def run(self, ctx):
        ctx.collect_with_timestamp("before", 1)
        ctx.mark_as_temporarily_idle()
        ctx.emit_watermark(Watermark(5))
        ctx.collect_with_timestamp("behind", 7)

    def cancel(self):
        pass


class WithClock(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("max_records", [1, 100])
def test_a_watermark_ends_idleness_as_a_record_does(tmp_path, max_records):
    sink = CommittedSink("awake")

    def build(env):
        env.add_source(IdleThenWatermark()).key_by(lambda value: 0).process(WithClock()).sink_to(sink)

    Crashing(tmp_path, build, max_records=max_records, receiving=True, parallelism=1).run()
    assert sink.records == [("before", MIN_WATERMARK), ("behind", 5)]
