"""A mini cluster's job in a thread of its own, as its client drives it: savepoints, rescaling, all its states."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.common.job_status import JobStatus
from penstock.runtime.running_job import RunningJob, carried_progress, dispose_of_rescaling
from penstock.runtime.savepoint.restore import check_key_groups

if TYPE_CHECKING:
    from penstock.runtime.job_progress import JobProgress
    from penstock.runtime.savepoint.tickets import SavepointTicket
    from penstock.testing.mini_cluster import MiniClusterJob

__all__ = ["MiniBatchJob", "MiniRunningJob"]


class _MiniMaster:
    """A mini cluster's job at one parallelism.

    :param came_from: the savepoint of a rescaling, which the first batch reads
    """

    def __init__(self, job: MiniClusterJob, came_from: str | None = None) -> None:
        self.job = job
        self.graph: Any = job.graph
        self.progress: JobProgress = job.progress
        self.on_running: Callable[[], None] | None = None
        self._came_from = came_from

    @property
    def stopped_with(self) -> SavepointTicket | None:
        """The savepoint that was the last thing it did."""
        return self.job.stopped_with

    def run(self) -> JobStatus:
        """Run to the end, and say what it was."""
        job, life = self.job, self.job.life
        life.becomes(JobStatus.CREATED)
        if life.becomes(JobStatus.RUNNING) and self.on_running is not None:
            self.on_running()
        try:
            job.run_to_end()
        except BaseException:
            life.becomes(JobStatus.FAILING)
            with contextlib.suppress(Exception):  # the first error is the one that counts
                self._let_go()
            raise
        self._let_go()
        ticket = job.stopped_with
        if ticket is not None and ticket.parallelism is not None:
            return JobStatus.RESTARTING
        if ticket is not None:
            return JobStatus.CANCELED if ticket.cancel else JobStatus.FINISHED
        return JobStatus.CANCELED if life.cancelled.is_set() and not job.finished else JobStatus.FINISHED

    def _let_go(self) -> None:
        if self._came_from is not None:
            dispose_of_rescaling(self._came_from)
        self.job.close()

    def cancel(self) -> None:
        """Nothing to do: the job looks at its life between any two batches."""


class MiniRunningJob(RunningJob):
    """A streaming job.

    :param plan: the job graph at a parallelism
    :param start: starts the job at a parallelism from a savepoint
    """

    def __init__(
        self,
        first: MiniClusterJob,
        plan: Callable[[int], Any],
        start: Callable[[int, str], MiniClusterJob],
        savepoint_dir: str | None,
    ) -> None:
        super().__init__(first.life, savepoint_dir)
        self._plan = plan
        self._start = start
        self._master = _MiniMaster(first)

    def _check_parallelism(self, parallelism: int) -> None:
        graph = self._plan(parallelism)
        check_key_groups(self.graph.vertices, graph.vertices, graph.edges)

    def _successor(self, parallelism: int, savepoint: str) -> _MiniMaster:
        job = self._start(parallelism, savepoint)
        job.progress = carried_progress(self._master.progress)
        return _MiniMaster(job, savepoint)


class MiniBatchJob:
    """A batch job: all there is, in one batch."""

    def __init__(self, job: MiniClusterJob) -> None:
        self.graph: Any = job.graph
        self.progress: JobProgress = job.progress
        self.life = job.life
        self._master = _MiniMaster(job)

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life."""
        return self.life.status

    def run(self) -> None:
        """Run to the end; raises the job's error."""
        try:
            status = self._master.run()
        except BaseException:
            self.life.end(JobStatus.FAILED)
            raise
        self.life.end(status)

    def cancel(self) -> None:
        """Ask to stop."""
        self.life.cancel()
