"""Jobs that crash: whatever a failure leaves behind in memory is gone, what was written is not."""

import time

from penstock.common import SimpleStringSchema
from penstock.common.errors import PenstockError
from penstock.core.sink import Committer, Sink, SinkWriter
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

TROUBLE = {}
"""Records at which a job is to crash, once each; empty at the beginning of a test of connectors."""


def troublesome(value):
    """A map that crashes at the records in TROUBLE."""
    if TROUBLE.pop(value, False):
        raise RuntimeError("crash")
    return value


def wait_until(condition):
    """Returns when a condition holds that others bring about."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Until(SimpleStringSchema):
    """Text; the stream ends with a certain message."""

    def is_end_of_stream(self, next_element):
        return next_element == "end"


class Crashing:
    """A job that is started again from its last checkpoint whenever it fails, as after a crash of everything.

    :param build: adds the job to an environment
    :param receiving: whether its source may have nothing to read for a while
    :param after_step: called after every batch that did not fail
    """

    def __init__(
        self,
        tmp_path,
        build,
        *,
        max_records=4,
        cold=False,
        parallelism=2,
        clock=None,
        receiving=False,
        after_step=lambda: None,
    ):
        self.tmp_path, self.build = tmp_path, build
        self.receiving, self.after_step = receiving, after_step
        self.max_records, self.cold, self.parallelism = max_records, cold, parallelism
        self.clock = clock or (lambda: int(time.time() * 1000))
        self.snapshot = None
        self.job_id = None

    def start(self, savepoint=None):
        cluster = MiniCluster(max_records=self.max_records, cold=self.cold, clock=self.clock)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(self.parallelism)
        self.build(env)
        job = cluster.start(
            env.sinks,
            env.job_settings(None),
            snapshot=self.snapshot,
            directory=str(self.tmp_path / "durable"),
            job_id=self.job_id,
            savepoint=savepoint,
        )
        self.job_id = job.job_id
        return job

    def step(self, job):
        """One batch; if the source is one that receives, it may have to be waited for."""
        deadline = time.monotonic() + 60
        while not job.run_batch():
            assert self.receiving, "there is nothing to do, and the job is not finished"
            assert time.monotonic() < deadline, "nothing was received"
            time.sleep(0.001)

    def run(self, attempts=20):
        """Run to the end; how often it crashed on the way."""
        for crashes in range(attempts):
            job = self.start()
            try:
                while not job.finished:
                    before = job.offset
                    self.step(job)
                    self.snapshot = job.snapshot()
                    self.after_step()
                job.close()
            except PenstockError:
                if job.offset != before:  # the checkpoint was complete when it failed
                    self.snapshot = job.snapshot()
                job.coordinator.close()  # threads do not survive a crash
            else:
                return crashes
        raise AssertionError("the job never came to its end")


COMMITTED = {}
"""By name of a sink: checkpoint -> records."""


class CommittedSink(Sink):
    """Exactly once: the records of a checkpoint are written under its number."""

    def __init__(self, name):
        self.name = name
        COMMITTED[name] = {}

    def create_writer(self, context):
        return _Writer()

    def create_committer(self):
        return _Committer(self.name)

    @property
    def records(self):
        return [record for _, part in sorted(COMMITTED[self.name].items()) for record in part]


class _Writer(SinkWriter):
    def __init__(self):
        self.records = []

    def write_batch(self, values, timestamps):
        self.records += values

    def prepare_commit(self):
        records, self.records = self.records, []
        return records


class _Committer(Committer):
    def __init__(self, name):
        self.name = name

    def commit(self, committables, checkpoint_id):
        COMMITTED[self.name][checkpoint_id] = list(committables)
