"""Chaos without a JVM: a job crashes at random places, is saved, restored and rescaled, as if nothing had happened; and
another driver takes over.

What survives a crash is what survives on a cluster: the state as of the last commit, files of savepoints, and what the
sink has committed. Repeat a run with ``PENSTOCK_CHAOS_SEED``; ``make chaos`` makes many.
"""

import os
import random
from typing import ClassVar

import pytest

from penstock.common import Time, WatermarkStrategy
from penstock.common.errors import FencedError
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.runtime.lease.files import LocalLeaseFiles
from penstock.runtime.lease.lease import Lease
from penstock.runtime.lease.owner import Owner
from penstock.runtime.savepoint import capture
from penstock.runtime.savepoint.manifest import verify
from penstock.runtime.state import logged_pages
from penstock.runtime.state.logged_pages import LoggedPageTable
from penstock.spark.continuous.checkpoint_files import CheckpointFiles
from penstock.spark.continuous.state_files import StateFiles
from penstock.testing import ManualClock, MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster

pytestmark = pytest.mark.exhaustive

RUNS = int(os.environ.get("PENSTOCK_CHAOS_RUNS", "50"))
SEED = int(os.environ.get("PENSTOCK_CHAOS_SEED", "1"))
RECORDS = 150


class Crash(BaseException):
    """The end of a process: no code catches it."""


class Danger:
    """Where the next crash happens; shared by the job's functions through this module."""

    countdown = None

    @classmethod
    def step(cls):
        if cls.countdown is not None:
            cls.countdown -= 1
            if cls.countdown < 0:
                cls.countdown = None
                raise Crash


class Busy(KeyedProcessFunction):
    """Numbers the records of a key, and remembers each until its timer."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))
        self.open_ones = runtime_context.get_map_state(MapStateDescriptor("open"))
        self.done = runtime_context.get_list_state(ListStateDescriptor("done"))

    def process_element(self, value, ctx):
        Danger.step()
        self.count.update(self.count.value() + 1)
        self.open_ones.put(value, self.count.value())
        ctx.timer_service().register_event_time_timer(value + 13)
        yield "seen", value

    def on_timer(self, timestamp, ctx):
        Danger.step()
        value = timestamp - 13
        assert self.open_ones.contains(value)
        self.open_ones.remove(value)
        self.done.add(value)
        yield "timer", value, list(self.done.get()).count(value)


class Committed(Sink):
    """Exactly once: by checkpoint id, as an outer system would do it. The dict is that system."""

    outside: ClassVar = {}

    def __init__(self, name):
        self.name = name

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return _Committer(self.name)


class _Committer(Committer):
    def __init__(self, name):
        self.name = name

    def commit(self, committables, checkpoint_id):
        Danger.step()
        Committed.outside.setdefault(self.name, {})[checkpoint_id] = list(committables)
        Danger.step()


def build(env, name):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    numbers = env.from_sequence(1, RECORDS).uid("numbers").assign_timestamps_and_watermarks(times)
    keyed = numbers.key_by(lambda n: n % 5)
    windows = [
        TumblingEventTimeWindows.of(Time.milliseconds(50)),
        SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(20)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
    ]
    sums = [keyed.window(w).reduce(lambda a, b: a + b).uid(f"window {i}") for i, w in enumerate(windows)]
    keyed.process(Busy()).uid("busy").union(*sums).map(str).sink_to(Committed(name)).uid("sink")


class Life:
    """A job through crashes, savepoints and rescalings."""

    def __init__(self, seed, directory):
        self.chance = random.Random(seed)
        self.directory = str(directory)
        self.name = f"run {seed}"
        self.parallelism = self.chance.randint(1, 4)
        self.snapshot = None  # as of the last commit
        self.savepoint = None  # where the job comes from, until something is committed
        self.job = None
        self.lease = LocalLeaseFiles(self.directory, directory / "lease")

    def start(self):
        records = self.chance.randint(3, 60)
        cluster = MiniCluster(clock=ManualClock(), max_records=records, cold=self.chance.random() < 0.3)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(self.parallelism)
        build(env, self.name)
        savepoint = None if self.snapshot is not None else self.savepoint
        owner = Owner.of_this_process(self.name, self.name, since=0.0)
        self.job = cluster.start(
            list(env.sinks),
            env.job_settings(self.name),
            snapshot=self.snapshot,
            savepoint=savepoint,
            fence=Lease.acquire(self.lease, owner, take_over=True),
        )

    def step(self):
        """A batch, a savepoint or a rescaling, perhaps with a crash in it; only what is durable counts."""
        Danger.countdown = self.chance.randint(0, 40) if self.chance.random() < 0.4 else None
        act = self.chance.random()
        try:
            if self.job is None:
                self.start()
                if self.job.finished:  # it crashed after its last checkpoint was complete
                    return
            if act < 0.1:
                verify(self.job.savepoint(self.directory))
            elif act < 0.2:
                path = self.job.stop_with_savepoint(self.directory)
                Danger.step()  # a crash here: the job resumes from its checkpoint
                self.savepoint, self.snapshot, self.job = path, None, None
                self.parallelism = self.chance.randint(1, 4)
                return
            elif act < 0.25:
                self.be_replaced()
                return
            else:
                self.job.run_batch()
            self.remember()
        except Crash:
            self.job = None

    def remember(self):
        self.snapshot = self.job.snapshot()

    def be_replaced(self):
        """Another driver takes over; this one does not know it yet, and goes on."""
        old = self.job
        self.start()
        with pytest.raises(FencedError):
            old.run()

    def make_dangerous(self, monkeypatch, owner, name):
        """A crash may happen right before and right after."""
        function = getattr(owner, name)

        def dangerous(*arguments, **named):
            Danger.step()
            result = function(*arguments, **named)
            Danger.step()
            return result

        monkeypatch.setattr(owner, name, dangerous)

    def run(self, monkeypatch):
        self.make_dangerous(monkeypatch, capture, "encode")
        self.start()
        for _ in range(10_000):
            if self.job is not None and self.job.finished:
                break
            self.step()
        Danger.countdown = None
        assert self.job.finished
        return sorted(record for records in Committed.outside.pop(self.name).values() for record in records)


class ContinuousLife(Life):
    """The same in the continuous mode: what survives is in a directory. It crashes while it writes checkpoints, too."""

    def __init__(self, seed, directory):
        super().__init__(seed, directory)
        self.name = f"continuous {seed}"
        self.directories = 1

    def start(self):
        cluster = ContinuousCluster(clock=ManualClock(), max_records=self.chance.randint(3, 60))
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(self.parallelism)
        build(env, self.name)
        owner = Owner.of_this_process(self.name, self.name, since=0.0)
        fence = Lease.acquire(self.lease, owner, take_over=True)
        where = f"{self.directory}/checkpoints-{self.directories}"
        settings = env.job_settings(self.name)
        self.job = cluster.start(
            list(env.sinks), settings, job_id=where, directory=where, savepoint=self.savepoint, fence=fence
        )

    def step(self):
        job = self.job
        super().step()
        if self.savepoint != self.known:  # the job goes on from there, in a directory of its own
            self.known = self.savepoint
            self.directories += 1
        elif self.job is None and job is not None:
            job.kill()

    known = None

    def remember(self):
        """Everything is in the directory."""

    def be_replaced(self):
        old = self.job
        super().be_replaced()
        old.kill()

    def run(self, monkeypatch):
        monkeypatch.setattr(logged_pages, "_EARLY_KEYS", 2)
        monkeypatch.setattr(LoggedPageTable, "_longest_log", lambda *_: 500)  # pages are written often
        self.make_dangerous(monkeypatch, StateFiles, "write")
        self.make_dangerous(monkeypatch, CheckpointFiles, "complete")
        return super().run(monkeypatch)


@pytest.fixture(scope="module")
def undisturbed():
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    build(env, "undisturbed")
    env.execute()
    return sorted(record for records in Committed.outside.pop("undisturbed").values() for record in records)


@pytest.mark.parametrize("life", [Life, ContinuousLife], ids=["batches", "continuous"])
@pytest.mark.parametrize("run", range(RUNS))
def test_nothing_is_lost_and_nothing_comes_twice(run, life, undisturbed, tmp_path, monkeypatch):
    seed = SEED + run
    print(f"PENSTOCK_CHAOS_SEED={seed} PENSTOCK_CHAOS_RUNS=1")  # noqa: T201 - shown if the test fails
    assert len(undisturbed) > 2 * RECORDS
    assert life(seed, tmp_path).run(monkeypatch) == undisturbed
