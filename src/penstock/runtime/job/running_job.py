"""A streaming job from start to end: one master per parallelism, one after the other.

An engine defines its masters (`Master`) and how one follows another (`RunningJob._successor`).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import JobExecutionError, SavepointError
from penstock.common.job_status import JobStatus
from penstock.runtime.job.executor_facts import ExecutorFacts
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.savepoint.savepoint_queue import SavepointTicket, savepoint_root
from penstock.runtime.savepoint.storage import directory_at, join

__all__ = ["Master", "RunningJob", "carried_progress", "dispose_of_rescaling"]


class Master(Protocol):
    """Runs a job at one parallelism."""

    @property
    def graph(self) -> Any:
        """The job graph."""

    @property
    def progress(self) -> JobProgress:
        """Return the progress of the job."""

    @property
    def stopped_with(self) -> SavepointTicket | None:
        """The savepoint with which it has stopped."""

    def run(self) -> JobStatus:
        """Run to the end. Return the final status, or RESTARTING if the job continues at another parallelism.

        Raise the job's error.
        """

    def cancel(self) -> None:
        """Stop soon: the job was cancelled."""


class RunningJob(ABC):
    """The job behind the client of a streaming job. Requests go to the job's life, which all its masters share."""

    def __init__(self, life: JobLife, savepoint_dir: str | None) -> None:
        self.life = life
        self.failure: BaseException | None = None
        """The error of a job that failed after it had been cancelled."""
        self._savepoint_dir = savepoint_dir
        self._master: Any = None
        # Set while a master has stopped and its successor does not run yet.
        self._rescaling: CompletableFuture[None] | None = None

    @abstractmethod
    def _successor(self, parallelism: int, savepoint: str, on_running: Callable[[], None]) -> Master:
        """Create a master that continues from a savepoint. It calls `on_running` when the job runs again."""

    @abstractmethod
    def _check_parallelism(self, parallelism: int) -> None:
        """Reject a parallelism that the job cannot have, before the job stops for it."""

    def _check_savepoint(self) -> None:
        """Reject a savepoint that the job cannot take."""

    def _release(self, status: JobStatus) -> None:
        """Release the resources of all masters: the job has ended with this status."""

    @property
    def _lasting_directory(self) -> str | None:
        """The parent directory of savepoints for rescaling. None means a temporary directory."""
        return self._savepoint_dir

    def executors(self) -> list[ExecutorFacts]:
        """Return the processes that run its tasks. Empty if these are this process and its children."""
        return []

    # -- requests of the client ---------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        """The status of the job."""
        return self.life.status

    @property
    def progress(self) -> JobProgress:
        """The progress: records, watermarks, state."""
        progress: JobProgress = self._master.progress
        return progress

    @property
    def graph(self) -> Any:
        """The current job graph."""
        return self._master.graph

    def cancel(self) -> None:
        """Stop after the running batch, even while the job is being rescaled."""
        if self.life.cancel():
            self._master.cancel()  # a successor that is just starting checks this itself

    def savepoint(
        self, directory: str | None, *, stop: bool = False, drain: bool = False, cancel: bool = False
    ) -> CompletableFuture[str]:
        """Take a savepoint. With `stop` or `cancel`, the job ends with it."""
        root = savepoint_root(directory, self._savepoint_dir)
        self._check_savepoint()
        return self.life.savepoints.submit(root, stop=stop, drain=drain, cancel=cancel).future

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Continue with another parallelism, after earlier requests."""
        self._check_parallelism(parallelism)
        self._check_savepoint()
        done: CompletableFuture[None] = CompletableFuture()
        known = self._lasting_directory
        root = tempfile.mkdtemp(prefix="penstock-rescaled-") if known is None else join(known, "rescaled")
        ticket = self.life.savepoints.submit(root, parallelism=parallelism)
        ticket.future.add_done_callback(partial(self._on_savepoint_to_rescale, root, done))
        return done

    def _on_savepoint_to_rescale(self, root: str, done: CompletableFuture[None], taken: CompletableFuture[str]) -> None:
        error = taken.exception()
        if error is None:
            self._rescaling = done
            return
        with contextlib.suppress(OSError):  # it was created for this rescaling, or is in use
            os.rmdir(root)  # noqa: PTH106 - it may be a URI
        done.complete_exceptionally(error)

    # -- the job's thread ---------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end, through all rescalings. Raise the job's error."""
        error: BaseException | None = None
        try:
            status = self._run_masters()
            self._release(status)
        except BaseException as raised:
            error = raised
            cancelled = isinstance(raised, Exception) and self.life.cancelled.is_set()
            status = JobStatus.CANCELED if cancelled else JobStatus.FAILED
            with contextlib.suppress(Exception):  # report the first error
                self._release(status)
        if error is not None and status is JobStatus.FAILED:
            self.progress.failed(error)
        self._end(status, error)
        if error is not None and status is JobStatus.FAILED:
            raise error
        self.failure = error

    def _run_masters(self) -> JobStatus:
        while True:
            status: JobStatus = self._master.run()
            if status is not JobStatus.RESTARTING:
                return status
            ticket: SavepointTicket = self._master.stopped_with
            if self.life.cancelled.is_set():
                return JobStatus.CANCELED
            self.life.transition_to(JobStatus.RESTARTING)
            assert ticket.parallelism is not None
            try:
                self._master = self._successor(ticket.parallelism, ticket.request.location, self._on_running_again)
            except BaseException:
                if self._lasting_directory is None:  # the job cannot continue from there
                    dispose_of_rescaling(ticket.request.location)
                raise
            ticket.future.complete(ticket.request.location)

    def _on_running_again(self) -> None:
        done, self._rescaling = self._rescaling, None
        if done is not None:
            done.complete(None)

    def _end(self, status: JobStatus, error: BaseException | None = None) -> None:
        """Set the final status, and complete everything for which callers wait."""
        ticket: SavepointTicket | None = self._master.stopped_with
        stopped = ticket is not None and ticket.parallelism is None
        location = ticket.request.location if ticket is not None and stopped else None
        self.life.end(status, location if error is None else None)
        if ticket is not None:
            self._resolve(ticket, status, error)
        done, self._rescaling = self._rescaling, None
        if done is not None:
            done.complete_exceptionally(self._not_rescaled(status, error))

    def _resolve(self, ticket: SavepointTicket, status: JobStatus, error: BaseException | None) -> None:
        """Complete the future of the savepoint with which the job has stopped, if it is still open."""
        location = ticket.request.location
        if ticket.parallelism is not None:
            if error is None:  # the job was cancelled, and does not continue from it
                with contextlib.suppress(Exception):
                    dispose_of_rescaling(location)
            ticket.future.complete_exceptionally(self._not_rescaled(status, error))
        elif error is not None:
            ticket.future.complete_exceptionally(
                SavepointError(
                    f"the savepoint {location} is complete, but the job ended as {status.name} before it had stopped "
                    f"({_first_line(error)}). Commits after the checkpoint may be missing in sinks: restart the job "
                    "from its checkpoint directory, if it has one"
                )
            )
        else:
            ticket.future.complete(location)

    def _not_rescaled(self, status: JobStatus, error: BaseException | None) -> JobExecutionError:
        how = "was cancelled" if status is JobStatus.CANCELED else "failed"
        why = "" if error is None else f": {_first_line(error)}"
        return JobExecutionError(f"job '{self.life.job_name}' {how} while it was rescaled{why}")


def _first_line(error: BaseException) -> str:
    """Return the first line of an error. The job's result has the whole error."""
    return str(error).partition("\n")[0] or type(error).__name__


def carried_progress(progress: JobProgress) -> JobProgress:
    """Return the progress of a job that is rescaled: totals continue, and tasks report the rest again."""
    for vertex in progress.vertices.values():
        vertex.rescaled()
    return progress


def dispose_of_rescaling(savepoint: str) -> None:
    """Remove the savepoint that was used to rescale a job without a checkpoint directory."""
    directory_at(savepoint).dispose()
    with contextlib.suppress(OSError):  # it was created for this savepoint, but may contain another one by now
        os.rmdir(savepoint.rpartition("/")[0])  # noqa: PTH106 - it may be a URI
