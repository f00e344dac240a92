"""Commits sinks on the driver: all committables of a batch, sink by sink, with the checkpoint id of the batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from penstock.common.errors import InvalidProgramError, JobExecutionError, PenstockError, RetryCommitError
from penstock.core.fence import Fence
from penstock.core.sink import Committer
from penstock.runtime.checkpoint.commit_log import CommitLog
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.operators.deferred_sink import sink_in_steps
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.operators.user_errors import user_traceback
from penstock.runtime.plan.job_vertex import JobVertex

T = TypeVar("T")

_LONGEST_BACKOFF = 100  # multiples of the first wait


class SinkCommitters:
    """The committers of all sinks of a job.

    Most sinks commit within the batch. Sinks with `after_checkpoint` use the commit log: `commit` writes it,
    `checkpoint_complete` empties it. The fence is checked before the first commit of either kind.

    :param stepped: a repeated batch may have other records, so all sinks commit after the checkpoint, except those that
        publish at once
    """

    def __init__(
        self,
        vertices: list[JobVertex],
        sleep: Callable[[float], None] = time.sleep,
        *,
        fence: Fence | None = None,
        stepped: bool = False,
    ) -> None:
        self._fence = fence or Fence()
        self._stepped = stepped
        self._at_once: set[str] = set()
        self._committers: dict[str, Committer] = {}
        self._names: dict[str, str] = {}
        self._logs: dict[str, CommitLog] = {}
        self._early: set[str] = set()
        self._sleep = sleep
        for vertex in vertices:
            for chained in vertex.operators:
                if isinstance(chained.operator, SinkOperator):
                    self._names[chained.operator_id] = chained.name
                    sink = sink_in_steps(chained.operator.sink) if stepped else chained.operator.sink
                    committer = self._guarded(chained.operator_id, "create its committer", sink.create_committer)
                    if committer is not None:
                        if stepped and sink.publishes_at_once:
                            self._at_once.add(chained.operator_id)
                        committer.fence = self._fence
                        self._committers[chained.operator_id] = committer

    def start(self, job_id: str, directory: str | None) -> None:
        """Open all committers before the first batch. The job id is permanent, and the directory survives a crash."""
        for sink_id, committer in self._committers.items():
            self._guarded(sink_id, "open its committer", partial(committer.open, job_id, sink_id))
            if self._waits(sink_id, committer):
                self._logs[sink_id] = CommitLog(None if directory is None else str(Path(directory) / sink_id))

    def _waits(self, sink_id: str, committer: Committer) -> bool:
        """Whether a sink commits after the checkpoint is complete."""
        if self._stepped:
            return sink_id not in self._at_once
        return committer.after_checkpoint and sink_id not in self._early

    def check_durable(self, checkpoint: str) -> None:
        """Prepare to run without a directory for logs: sinks that need none commit early, others are rejected."""
        for sink_id, committer in self._committers.items():
            if committer.after_checkpoint and committer.may_commit_early and not self._stepped:
                self._early.add(sink_id)
            elif self._waits(sink_id, committer):
                raise InvalidProgramError(
                    f"sink '{self._names[sink_id]}' commits after the checkpoint, from a log that must be on a local "
                    f"or mounted file system, but the checkpoint directory is {checkpoint}: use a file: URI"
                )

    def commit(self, reports: list[TaskReport], checkpoint_id: int) -> None:
        """Commit what the tasks prepared: sinks in job order, tasks in subtask order."""
        prepared: dict[str, list[Any]] = {}
        for report in sorted(reports, key=lambda report: (report.vertex, report.subtask)):
            for sink_id, committables in report.committables:
                prepared.setdefault(sink_id, []).extend(committables)
        self._fence.check()
        for sink_id, committer in self._committers.items():
            log = self._logs.get(sink_id)
            if sink_id in self._at_once:
                continue
            if sink_id not in prepared:
                if log is not None:
                    log.set_aside(checkpoint_id)  # of an earlier run of this batch, which does not count
            elif log is not None:
                log.put(checkpoint_id, prepared[sink_id])
            elif self._waits(sink_id, committer):
                raise RuntimeError("SinkCommitters.start() was not called")
            else:
                self._commit(sink_id, committer, committer.commit, prepared[sink_id], checkpoint_id)

    def publish(self, reports: list[TaskReport], number: int) -> None:
        """Commit what tasks prepared for sinks that publish at once. Each call has a higher number."""
        if not self._at_once:
            return
        prepared: dict[str, list[Any]] = {}
        for report in sorted(reports, key=lambda report: (report.vertex, report.subtask)):
            for sink_id, committables in report.committables:
                if sink_id in self._at_once:
                    prepared.setdefault(sink_id, []).extend(committables)
        for sink_id, committables in prepared.items():
            committer = self._committers[sink_id]
            self._commit(sink_id, committer, committer.commit, committables, number)

    def checkpoint_complete(self, up_to: int | None = None, *, final: bool = False) -> None:
        """Commit what is in the logs, oldest first, because these batches (all, or those up to an id) are durable (rule
        U08). Committables that must wait stay in the log, unless this is the final call.
        """
        if any(log.entries() for log in self._logs.values()):
            self._fence.check()
        for sink_id, log in self._logs.items():
            committer = self._committers[sink_id]
            for checkpoint_id, committables in log.entries():
                if up_to is not None and checkpoint_id > up_to:
                    break
                commit = committer.recommit if checkpoint_id in log.uncertain else committer.commit
                try:
                    self._commit(sink_id, committer, commit, committables, checkpoint_id, retry=final)
                except RetryCommitError:
                    break  # keep the order: later entries wait, too
                except PenstockError:
                    log.uncertain.add(checkpoint_id)
                    raise
                log.remove(checkpoint_id)
            log.forget_former()
        for sink_id, committer in self._committers.items():
            self._guarded(sink_id, "clean up", partial(committer.checkpoint_complete, final=final))

    def completed_by_the_driver_before(self, checkpoint_id: int) -> None:
        """Commit what the previous driver has prepared. It completed a batch that this driver has also run, because it
        was paused just before. Sinks that commit within the batch have recognized it by its id.
        """
        for log in self._logs.values():
            log.completed_by_the_driver_before(checkpoint_id)

    def _guarded(self, sink_id: str, label: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except PenstockError:
            raise
        except Exception as error:
            raise JobExecutionError(
                f"sink '{self._names[sink_id]}' failed to {label}: {type(error).__name__}: {error}\n"
                f"{user_traceback(error)}"
            ) from error

    def _commit(
        self,
        sink_id: str,
        committer: Committer,
        commit: Callable[[list[Any], int], None],
        committables: list[Any],
        checkpoint_id: int,
        *,
        retry: bool = True,
    ) -> None:
        failures = 0
        while True:
            try:
                self._guarded(sink_id, f"commit batch {checkpoint_id}", partial(commit, committables, checkpoint_id))
            except RetryCommitError as error:
                failures += 1
                if not retry:
                    raise
                if failures > committer.max_retries:
                    raise JobExecutionError(
                        f"sink '{self._names[sink_id]}' could not commit batch {checkpoint_id} in {failures} attempts: "
                        f"{error}; restart the job from its checkpoint when the external system is available"
                    ) from error
                wait = committer.retry_backoff_ms * min(2 ** (failures - 1), _LONGEST_BACKOFF)
                self._sleep(wait / 1000)
            else:
                return

    def close(self, *, failed: bool = False) -> None:
        """Close all committers, even if one of them fails. If the job has failed, errors of closing are ignored."""
        errors: list[PenstockError] = []
        committers, self._committers = self._committers, {}
        for sink_id, committer in committers.items():
            try:
                self._guarded(sink_id, "close its committer", committer.close)
            except PenstockError as error:
                errors.append(error)
        if errors and not failed:
            raise errors[0]
