"""What tests of semantics use: an environment of each variant, and ways to run jobs, at once or by hand."""

import pytest
from support import collected

from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import ManualClock, MiniCluster


@pytest.fixture
def env(env_factory):
    return env_factory()


@pytest.fixture
def run(env):
    """Runs one job with all given streams; their records by name, or of the one stream as a list."""

    def run_streams(stream=None, **streams):
        iterators = {name: one.collect_async() for name, one in {"": stream, **streams}.items() if one is not None}
        env.execute("semantics")
        records = {name: list(iterator) for name, iterator in iterators.items()}
        return records[""] if stream is not None and not streams else records

    return run_streams


class HandDrivenJob:
    """A job in this process whose batches and clock are moved by the test.

    :param way: ``warm``, ``cold`` (tasks forgotten after every batch) or ``restored`` (the whole job written to bytes
        and started again from them before every step)
    """

    def __init__(self, way, parallelism):
        self.clock = ManualClock(0)
        self.cluster = MiniCluster(clock=self.clock, cold=way == "cold")
        self.env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(parallelism)
        self._restart = way == "restored"
        self._sinks = []
        self._job = None

    def watch(self, stream):
        """Collect the records of a stream; they are returned by :meth:`step`."""
        sink = CollectSink()
        stream.sink_to(sink).set_parallelism(1)
        self._sinks.append(sink)
        return self

    @property
    def job(self):
        if self._job is None:
            self._job = self._start(None)
        return self._job

    def _start(self, snapshot):
        return self.cluster.start(list(self.env.sinks), self.env.job_settings(None), snapshot=snapshot)

    def step(self):
        """Run until there is nothing to do; the records that came out of the watched streams, in order."""
        if self._restart:
            self.restart()
        self.job.run()
        return self._drain()

    def advance(self, milliseconds):
        """Let processing time pass, then run."""
        self.clock.advance(milliseconds)
        return self.step()

    def restart(self, downtime=0):
        """Write everything to bytes, throw the job away, start a new one from the bytes."""
        snapshot = self.job.snapshot()
        self.clock.advance(downtime)
        self._job = self._start(snapshot)

    def drain(self):
        """End the job; what came out last."""
        self.job.drain()
        self.job.close()
        return self._drain()

    def _drain(self):
        return collected(*self._sinks)


@pytest.fixture(params=["warm-1", "cold-1", "restored-1", "warm-4", "cold-4", "restored-4"])
def hand(request):
    """A job to be driven by hand."""
    way, parallelism = request.param.split("-")
    return HandDrivenJob(way, int(parallelism))
