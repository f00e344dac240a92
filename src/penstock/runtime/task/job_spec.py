"""The job as every worker receives it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.runtime.operators.operator import JobInfo
from penstock.runtime.plan.job_vertex import JobEdge, JobVertex
from penstock.runtime.savepoint.restore import RestorePlan
from penstock.runtime.state.change_log import ChangeLog
from penstock.runtime.state.pages import PageStore
from penstock.runtime.task.chain import TaskEnvironment
from penstock.runtime.task.log_settings import LogSettings
from penstock.runtime.task.union_states import UnionStart

__all__ = ["BatchClock", "JobSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """The picklable job: its graph and how tasks start. It is immutable."""

    info: JobInfo
    vertices: tuple[JobVertex, ...]
    edges: dict[int, JobEdge]
    channels: int
    levels: int
    batch_execution: bool = False
    memory_budget: int | None = None
    external_sources: frozenset[int] = frozenset()
    """Source vertices that read DataFrames."""
    restore: RestorePlan | None = None
    """The savepoint from which tasks without their own state start."""
    unions: UnionStart = field(default_factory=UnionStart)
    """The union list states with which tasks that have their own state start."""
    code_fingerprint: str = ""
    """The fingerprint of the user's functions. If it has changed, the keys of the first records are checked."""
    skip_key_check: bool = False
    """Skip this check."""
    logging: LogSettings | None = None
    """The log settings of the driver's process."""

    def tasks_in(self, level: int, channel: int) -> list[JobVertex]:
        """The vertices of a level that have a subtask in a channel."""
        return [vertex for vertex in self.vertices if vertex.level == level and channel < vertex.parallelism]

    def environment(self, store: PageStore, change_log: ChangeLog | None = None) -> TaskEnvironment:
        """Create the shared environment of the tasks of one stage, with its own clock."""
        return TaskEnvironment(
            store, BatchClock(), replace(self.info), self.batch_execution, self.memory_budget, change_log
        )


class BatchClock:
    """Processing time, constant within a batch."""

    __slots__ = ("now",)

    def __init__(self, now: int = 0) -> None:
        self.now = now
