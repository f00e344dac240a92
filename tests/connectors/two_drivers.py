"""Two drivers of one job, of which the first is paused at its worst moments: right behind a check of its lease.

What outlives a driver is what outlives it on a cluster: the lease, the driver's logs, the checkpoints, and what the
sink has written. A checkpoint is created once, as Spark does it.
"""

from pathlib import Path

from tests.runtime.lease.leases import owner

from penstock.common.errors import FencedError, JobExecutionError
from penstock.core.fence import Fence
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.lease.files import LocalLeaseFiles
from penstock.runtime.lease.lease import Lease
from penstock.testing import ManualClock, MiniCluster

__all__ = ["Paused", "World"]


class OutrunError(JobExecutionError):
    """As Spark's CONCURRENT_STREAM_LOG_UPDATE."""


class World:
    """What both drivers see.

    :param build: adds the job to an environment
    """

    def __init__(self, directory: Path, build, *, parallelism=2, max_records=4):
        self.directory = directory
        self.build, self.parallelism, self.max_records = build, parallelism, max_records
        self.checkpoints: dict[int, bytes] = {}
        self.job_id = None

    def driver(self, name, **options):
        return Driver(self, name, **options)

    def complete(self, number, snapshot):
        if number in self.checkpoints:
            raise OutrunError(f"checkpoint {number} was completed by another driver")
        self.checkpoints[number] = snapshot

    @property
    def last(self):
        return self.checkpoints[max(self.checkpoints)] if self.checkpoints else None


class Paused(Fence):
    """A lease. Behind one of its checks the driver is paused: the check was fine, what follows may not be.

    :param pause: behind which check; None for none
    :param meanwhile: what happens while the driver is paused
    """

    def __init__(self, lease, pause=None, meanwhile=lambda: None):
        self.lease = lease
        self.epoch = lease.epoch
        self.pause, self.meanwhile = pause, meanwhile
        self.checks = 0

    def check(self):
        self.lease.check()
        self.checks += 1
        if self.checks == self.pause:
            self.meanwhile()


class Driver:
    """Takes the lease, and runs the job from its last checkpoint on."""

    def __init__(self, world, name, pause=None, meanwhile=lambda: None, **options):
        self.world, self.name, self.options = world, name, options
        files = LocalLeaseFiles(str(world.directory), world.directory / "lease")
        lease = Lease.acquire(files, owner(name), take_over=True)
        self.fence = Paused(lease, pause, meanwhile)
        self.job = self._start()
        self.outrun = self.ended = False

    def _start(self):
        world = self.world
        cluster = MiniCluster(max_records=world.max_records, clock=ManualClock(), **self.options)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(world.parallelism)
        world.build(env)
        job = cluster.start(
            env.sinks,
            env.job_settings(self.name),
            snapshot=world.last,
            directory=str(world.directory),
            job_id=world.job_id,
            fence=self.fence,
        )
        world.job_id = job.job_id
        # The mini cluster has a checkpoint in memory; here it is complete when the world has it.
        make_durable = job.engine.make_durable

        def durable(batch):
            make_durable(batch)
            world.complete(batch.end.checkpoint_id, job.snapshot())

        job.engine.make_durable = durable
        return job

    def run(self, batches=10_000):
        while batches > 0 and not self.job.finished:
            try:
                assert self.job.run_batch()
            except OutrunError:
                self.outrun = True
                self.fence.check()
                self.job.checkpoints.adopt_checkpoint_of_previous_driver()
                self.job = self._start()
            batches -= 1
        if self.job.finished and not self.ended:
            self.ended = True
            self.job.committers.checkpoint_complete(final=True)  # of the last batch, if another driver has run it
            self.job.close()

    def run_until_fenced(self):
        """To the end, or until something goes wrong because the driver was replaced; returns that."""
        try:
            self.run()
        except Exception as error:
            try:
                self.fence.lease.check()
            except FencedError:
                return error
            raise
        return None
