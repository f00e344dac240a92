"""Jobs that crash: whatever a failure leaves behind in memory is gone, what was written is not."""

import time

from penstock.common.errors import PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster


class Crashing:
    """A job that is started again from its last checkpoint whenever it fails, as after a crash of everything.

    :param build: adds the job to an environment
    """

    def __init__(self, tmp_path, build, *, max_records=4, cold=False, parallelism=2, clock=None):
        self.tmp_path, self.build = tmp_path, build
        self.max_records, self.cold, self.parallelism = max_records, cold, parallelism
        self.clock = clock or (lambda: int(time.time() * 1000))
        self.snapshot = None
        self.job_id = None

    def start(self, savepoint=None):
        cluster = MiniCluster(max_records=self.max_records, cold=self.cold, clock=self.clock)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(self.parallelism)
        self.build(env)
        job = cluster.start(
            env._sinks,
            env._job_settings(None),
            snapshot=self.snapshot,
            directory=str(self.tmp_path / "durable"),
            job_id=self.job_id,
            savepoint=savepoint,
        )
        self.job_id = job.job_id
        return job

    def run(self, attempts=20):
        """Run to the end; how often it crashed on the way."""
        for crashes in range(attempts):
            job = self.start()
            try:
                while not job.finished:
                    before = job.offset
                    assert job.run_batch()
                    self.snapshot = job.snapshot()
                job.close()
            except PenstockError:
                if job.offset != before:  # the checkpoint was complete when it failed
                    self.snapshot = job.snapshot()
            else:
                return crashes
        raise AssertionError("the job never came to its end")
