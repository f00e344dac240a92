"""The client of a job that runs in a thread of its own, on whichever engine."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import JobCancelledError, UnsupportedFeatureError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.runtime.job.executor_facts import ExecutorFacts
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.job.running_job import RunningJob

__all__ = ["Rescaling", "RunnableJob", "ThreadJobClient"]


@dataclass(slots=True)
class Rescaling:
    """A change of parallelism that a client asked for; times are epoch milliseconds, `ended` is -1 until it is over."""

    before: int
    wanted: int
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    ended: int = -1
    error: str | None = None
    rescaling_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def end(self, error: BaseException | None) -> None:
        """It is over, perhaps with an error."""
        self.error = None if error is None else str(error)
        self.ended = int(time.time() * 1000)


class RunnableJob(Protocol):
    """A job that a client controls: a streaming or a batch job."""

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life; when `run` has returned, at its end."""

    @property
    def graph(self) -> Any:
        """The job graph as it runs now."""

    @property
    def progress(self) -> JobProgress:
        """Records, watermarks, state."""

    def executors(self) -> list[ExecutorFacts]:
        """The processes that run its tasks; none if that is this process and its children."""

    def run(self) -> None:
        """Run to the end; raises the job's error."""

    def cancel(self) -> None:
        """Ask to stop."""


class ThreadJobClient(JobClient):
    """Handle of a submitted job. Status and result agree: both come from the one end that the job had."""

    def __init__(self, job_id: JobID, job: RunnableJob) -> None:
        self._job_id = job_id
        self.job: Any = job
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture.computing()
        self._started = time.monotonic()
        self.rescalings: list[Rescaling] = []
        """What clients have asked for, the oldest first."""
        self._thread = threading.Thread(target=self._run, name=f"penstock-job-{job_id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.job.run()
        except BaseException as error:
            self._result.complete_exceptionally(error)
            return
        if self.job.status is JobStatus.CANCELED:  # a partial result must not look complete
            cancelled = JobCancelledError(f"job '{self.job.graph.name}' was cancelled", job_id=str(self._job_id))
            cancelled.__cause__ = getattr(self.job, "failure", None)
            self._result.complete_exceptionally(cancelled)
            return
        runtime = int((time.monotonic() - self._started) * 1000)
        self._result.complete(JobExecutionResult(self._job_id, runtime, self.job.progress.metrics))

    @property
    def progress(self) -> JobProgress:
        """Records, watermarks, state and metrics of the committed batches."""
        progress: JobProgress = self.job.progress
        return progress

    @property
    def job_name(self) -> str:
        """The job's name."""
        return str(self.job.graph.name)

    def _repr_html_(self) -> str:
        """In a notebook: what the job has done so far."""
        from penstock.runtime.job.job_html import job_html

        return job_html(self)

    def _ipython_display_(self) -> None:
        """In a notebook: the same, kept up to date while the job runs."""
        from penstock.runtime.job.job_html import show_live

        show_live(self)

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""
        return CompletableFuture.completed(self.job.status)

    def cancel(self) -> CompletableFuture[None]:
        """Stop after the running batch; the future is done when the job is over, cancelled or finished just before."""
        self.job.cancel()
        done: CompletableFuture[None] = CompletableFuture()
        self._result.add_done_callback(lambda _: done.complete(None))
        return done

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result, once the job is over; the error if it failed or was cancelled."""
        return self._result

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The metrics of the committed batches."""
        return CompletableFuture.completed(dict(self.job.progress.metrics))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint at the end of the next batch; the job runs on. The future gives its path."""
        return self._streaming.savepoint(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Write a savepoint with the job's last batch; the future is done when the job has stopped.

        With ``advance_to_end_of_event_time`` all windows and timers fire first: for a job that will not be resumed.
        """
        future = self._streaming.savepoint(savepoint_directory, stop=True, drain=advance_to_end_of_event_time)
        return self._when_over(future)

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Like :meth:`stop_with_savepoint` without draining; the job ends as cancelled."""
        return self._when_over(self._streaming.savepoint(savepoint_directory, cancel=True))

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Continue with another parallelism; the future is done when the job runs again."""
        future = self._streaming.rescale(parallelism)
        rescaling = Rescaling(self.job.graph.settings.parallelism, parallelism)
        self.rescalings.append(rescaling)
        future.add_done_callback(lambda done: rescaling.end(done.exception()))
        return future

    @property
    def _streaming(self) -> RunningJob:
        if not isinstance(self.job, RunningJob):
            raise UnsupportedFeatureError("a batch job has no state to save: it starts again from the beginning")
        return self.job

    def _when_over(self, taken: CompletableFuture[str]) -> CompletableFuture[str]:
        """The path of a savepoint, once the job is over as well."""
        over: CompletableFuture[str] = CompletableFuture()

        def on_taken(done: CompletableFuture[str]) -> None:
            error = done.exception()
            if error is not None:
                over.complete_exceptionally(error)
            else:
                self._result.add_done_callback(lambda _: over.complete(done.result()))

        taken.add_done_callback(on_taken)
        return over
