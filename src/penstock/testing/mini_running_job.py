"""Runs a mini cluster's job in its own thread for its client: savepoints, rescaling, and all statuses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.common.job_status import JobStatus
from penstock.runtime.job.executor_facts import ExecutorFacts
from penstock.runtime.job.running_job import RunningJob, carried_progress, dispose_of_rescaling
from penstock.runtime.savepoint.restore import check_key_groups

if TYPE_CHECKING:
    from penstock.runtime.job.job_progress import JobProgress
    from penstock.runtime.savepoint.savepoint_queue import SavepointTicket
    from penstock.testing.mini_cluster import MiniClusterJob

__all__ = ["MiniBatchJob", "MiniRunningJob"]


class _MiniMaster:
    """A mini cluster's job at one parallelism.

    :param came_from: the savepoint of a rescale, which the first batch reads
    :param on_running: called when the job runs
    """

    def __init__(
        self, job: MiniClusterJob, came_from: str | None = None, on_running: Callable[[], None] = lambda: None
    ) -> None:
        self.job = job
        self.graph: Any = job.graph
        self.progress: JobProgress = job.progress
        self._on_running = on_running
        self._came_from = came_from

    @property
    def stopped_with(self) -> SavepointTicket | None:
        """The savepoint with which the job has stopped."""
        return self.job.stopped_with

    def run(self) -> JobStatus:
        """Run to the end, and return the final status."""
        job, life = self.job, self.job.life
        life.transition_to(JobStatus.CREATED)
        if life.transition_to(JobStatus.RUNNING):
            self._on_running()
        try:
            job.run_to_end()
        except BaseException:
            life.transition_to(JobStatus.FAILING)
            with contextlib.suppress(Exception):  # report the first error
                self._release()
            raise
        self._release()
        if not job.over:  # its sources cannot end, but have no more records: this is the end of a job in a test
            return JobStatus.FINISHED
        return job.checkpoints.outcome()

    def _release(self) -> None:
        if self._came_from is not None:
            dispose_of_rescaling(self._came_from)
        self.job.close()

    def cancel(self) -> None:
        """Do nothing: the job checks between batches whether it is cancelled."""


class MiniRunningJob(RunningJob):
    """A streaming job.

    :param plan: the job graph at a parallelism
    :param start: starts the job at a parallelism from a savepoint, with its progress so far
    """

    def __init__(
        self,
        first: MiniClusterJob,
        plan: Callable[[int], Any],
        start: Callable[[int, str, JobProgress], MiniClusterJob],
        savepoint_dir: str | None,
    ) -> None:
        super().__init__(first.life, savepoint_dir)
        self._plan = plan
        self._start = start
        self._master = _MiniMaster(first)

    def _check_parallelism(self, parallelism: int) -> None:
        graph = self._plan(parallelism)
        check_key_groups(self.graph.vertices, graph.vertices, graph.edges)

    def _successor(self, parallelism: int, savepoint: str, on_running: Callable[[], None]) -> _MiniMaster:
        job = self._start(parallelism, savepoint, carried_progress(self._master.progress))
        return _MiniMaster(job, savepoint, on_running)


class MiniBatchJob:
    """A batch job: all input in one batch."""

    def __init__(self, job: MiniClusterJob) -> None:
        self.graph: Any = job.graph
        self.progress: JobProgress = job.progress
        self.life = job.life
        self._master = _MiniMaster(job)

    @property
    def status(self) -> JobStatus:
        """The status of the job."""
        return self.life.status

    def executors(self) -> list[ExecutorFacts]:
        """Return no executors: its tasks run in this process."""
        return []

    def run(self) -> None:
        """Run to the end. Raise the job's error."""
        try:
            status = self._master.run()
        except BaseException:
            self.life.end(JobStatus.FAILED)
            raise
        self.life.end(status)

    def cancel(self) -> None:
        """Ask the job to stop."""
        self.life.cancel()
