"""Commits sinks on the driver: all committables of a batch, sink by sink, under the batch's checkpoint id."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.core.sink import Committer
from penstock.runtime.frames import TaskReport
from penstock.runtime.job import JobVertex
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.user_errors import user_traceback


class SinkCommitters:
    """The committers of all sinks of a job."""

    def __init__(self, vertices: list[JobVertex]) -> None:
        self._committers: dict[str, Committer] = {}
        self._names: dict[str, str] = {}
        for vertex in vertices:
            for chained in vertex.operators:
                if isinstance(chained.operator, SinkOperator):
                    committer = chained.operator.sink.create_committer()
                    if committer is not None:
                        self._committers[chained.operator_id] = committer
                        self._names[chained.operator_id] = chained.name

    def commit(self, reports: list[TaskReport], checkpoint_id: int) -> None:
        """Commit what the tasks prepared; sinks in the order of the job, tasks in the order of their subtasks."""
        prepared: dict[str, list[Any]] = {}
        for report in sorted(reports, key=lambda report: (report.vertex, report.subtask)):
            for sink_id, committables in report.committables:
                prepared.setdefault(sink_id, []).extend(committables)
        for sink_id, committer in self._committers.items():
            if sink_id in prepared:
                self._commit(sink_id, committer, prepared[sink_id], checkpoint_id)

    def _commit(self, sink_id: str, committer: Committer, committables: list[Any], checkpoint_id: int) -> None:
        try:
            committer.commit(committables, checkpoint_id)
        except PenstockError:
            raise
        except Exception as error:
            raise JobExecutionError(
                f"sink '{self._names[sink_id]}' failed to commit batch {checkpoint_id}: "
                f"{type(error).__name__}: {error}\n"
                f"{user_traceback(error)}"
            ) from error

    def close(self) -> None:
        """Close all committers."""
        for committer in self._committers.values():
            committer.close()
