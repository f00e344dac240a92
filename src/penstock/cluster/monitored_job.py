"""A job from the view of the service, independent of its engine."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from penstock.common.job_status import JobStatus

if TYPE_CHECKING:
    from penstock.graph.job_graph import JobGraph
    from penstock.graph.settings import JobSettings
    from penstock.runtime.job.job_client import ThreadJobClient
    from penstock.runtime.job.job_life import JobLife
    from penstock.runtime.job.job_progress import JobProgress, SubtaskProgress
    from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["MonitoredJob", "now_ms", "vertex_hex"]

_TASK_STATES = {
    JobStatus.INITIALIZING: "CREATED",
    JobStatus.CREATED: "CREATED",
    JobStatus.RUNNING: "RUNNING",
    JobStatus.RESTARTING: "CREATED",
    JobStatus.FAILING: "CANCELING",
    JobStatus.FAILED: "CANCELED",
    JobStatus.CANCELLING: "CANCELING",
    JobStatus.CANCELED: "CANCELED",
    JobStatus.FINISHED: "FINISHED",
    JobStatus.SUSPENDED: "CANCELED",
    JobStatus.RECONCILING: "RECONCILING",
}


def now_ms() -> int:
    """Return the current time in ms since the epoch."""
    return int(time.time() * 1000)


class MonitoredJob:
    """One job with all information that is available without affecting it."""

    def __init__(self, client: ThreadJobClient, program: str | None = None) -> None:
        self.client = client
        self.program = program
        self.job_id = str(client.get_job_id())
        self._heartbeat: threading.Timer | None = None

    def keep_until(self, expires: int) -> None:
        """Cancel the job at this time unless its client sends a heartbeat before."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._heartbeat = threading.Timer(max(0.0, (expires - now_ms()) / 1000), self.client.cancel)
        self._heartbeat.daemon = True
        self._heartbeat.start()

    # -- the job -----------------------------------------------------------------------------------------------

    @property
    def graph(self) -> JobGraph:
        """The current job graph."""
        graph: JobGraph = self.client.job.graph
        return graph

    @property
    def settings(self) -> JobSettings:
        """The settings with which the job was started."""
        return self.graph.settings

    @property
    def progress(self) -> JobProgress:
        """Records, watermarks, state, checkpoints and exceptions of the committed batches."""
        return self.client.progress

    @property
    def life(self) -> JobLife:
        """The job's status over time."""
        life: JobLife = self.client.job.life
        return life

    @property
    def name(self) -> str:
        """The job's name."""
        return self.graph.name

    @property
    def is_batch(self) -> bool:
        """Whether the job runs in BATCH mode."""
        return self.graph.runs_as_batch

    # -- times --------------------------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        """The status of the job."""
        return self.life.status

    @property
    def started(self) -> int:
        """When the job was submitted."""
        return self.life.entered[JobStatus.INITIALIZING]

    @property
    def ended(self) -> int:
        """When the job ended, or -1 before that."""
        return self.life.entered[self.status] if self.status.is_terminal_state() else -1

    @property
    def running_since(self) -> int:
        """When the job started to run, or -1 if it never did."""
        return self.life.entered.get(JobStatus.RUNNING, -1)

    def duration(self, now: int) -> int:
        """Return how long the job has run, or ran."""
        return (now if self.ended < 0 else self.ended) - self.started

    @property
    def timestamps(self) -> dict[str, int]:
        """Return when the job entered each state, or 0 for a state it never entered."""
        entered = self.life.entered
        return {status.name: entered.get(status, 0) for status in JobStatus}

    # -- its tasks ----------------------------------------------------------------------------------------------

    def task_state(self, vertex: JobVertex) -> str:
        """Return the state of a task, which follows from the state of the job."""
        status = self.status
        if status is JobStatus.FAILED and self._blames(vertex):
            return "FAILED"
        return _TASK_STATES[status]

    def _blames(self, vertex: JobVertex) -> bool:
        entries = self.progress.exceptions.newest_first()
        return bool(entries) and entries[0].operator in {operator.name for operator in vertex.operators}

    def subtasks(self, vertex: JobVertex) -> dict[int, SubtaskProgress]:
        """Return the progress of each subtask that has reported any."""
        return dict(self.progress.vertices[vertex.id].subtasks)

    def vertex(self, vertex_id: str) -> JobVertex | None:
        """Return the task with this id, which is that of its first operator."""
        for vertex in self.graph.vertices:
            if vertex_hex(vertex) == vertex_id:
                return vertex
        return None


def vertex_hex(vertex: JobVertex) -> str:
    """Return the id of a task: that of its first operator, stable across restarts and rescalings."""
    return vertex.operators[0].operator_id
