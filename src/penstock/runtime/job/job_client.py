"""The client of a job that runs in its own thread, on any engine."""

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
    """A change of parallelism requested by a client. Times are epoch milliseconds; `ended` is -1 until it is over."""

    before: int
    wanted: int
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    ended: int = -1
    error: str | None = None
    rescaling_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def end(self, error: BaseException | None) -> None:
        """Record the end, possibly with an error."""
        self.error = None if error is None else str(error)
        self.ended = int(time.time() * 1000)


class RunnableJob(Protocol):
    """A job that a client controls: a streaming or a batch job."""

    @property
    def status(self) -> JobStatus:
        """The status of the job. When `run` has returned, it is terminal."""

    @property
    def graph(self) -> Any:
        """The current job graph."""

    @property
    def progress(self) -> JobProgress:
        """The progress: records, watermarks, state."""

    def executors(self) -> list[ExecutorFacts]:
        """Return the processes that run its tasks. Empty if these are this process and its children."""

    def run(self) -> None:
        """Run to the end. Raise the job's error."""

    def cancel(self) -> None:
        """Ask the job to stop."""


class ThreadJobClient(JobClient):
    """The client of a submitted job. Status and result always agree, because both come from the same end of the job."""

    def __init__(self, job_id: JobID, job: RunnableJob) -> None:
        self._job_id = job_id
        self.job: Any = job
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture.computing()
        self._started = time.monotonic()
        self.rescalings: list[Rescaling] = []
        """The requested changes of parallelism, oldest first."""
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
        """The progress in committed batches: records, watermarks, state and metrics."""
        progress: JobProgress = self.job.progress
        return progress

    @property
    def job_name(self) -> str:
        """The job's name."""
        return str(self.job.graph.name)

    def _repr_html_(self) -> str:
        """Show the progress in a notebook."""
        from penstock.runtime.job.job_html import job_html

        return job_html(self)

    def _ipython_display_(self) -> None:
        """Show the progress in a notebook, and update it while the job runs."""
        from penstock.runtime.job.job_html import show_live

        show_live(self)

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the status of the job."""
        return CompletableFuture.completed(self.job.status)

    def cancel(self) -> CompletableFuture[None]:
        """Stop after the running batch. The future completes when the job has ended (or has finished before)."""
        self.job.cancel()
        done: CompletableFuture[None] = CompletableFuture()
        self._result.add_done_callback(lambda _: done.complete(None))
        return done

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result when the job has ended. The future fails if the job failed or was cancelled."""
        return self._result

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the metrics of the committed batches."""
        return CompletableFuture.completed(dict(self.job.progress.metrics))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint at the end of the next batch, and continue. The future has the path of the savepoint."""
        return self._streaming.savepoint(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Write a savepoint with the job's last batch. The future completes when the job has stopped.

        With ``advance_to_end_of_event_time``, all windows and timers fire first: use it for a job that will not be
        resumed.
        """
        future = self._streaming.savepoint(savepoint_directory, stop=True, drain=advance_to_end_of_event_time)
        return self._when_over(future)

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Like :meth:`stop_with_savepoint` without draining. The job ends as cancelled."""
        return self._when_over(self._streaming.savepoint(savepoint_directory, cancel=True))

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Continue with another parallelism. The future completes when the job runs again."""
        future = self._streaming.rescale(parallelism)
        rescaling = Rescaling(self.job.graph.settings.parallelism, parallelism)
        self.rescalings.append(rescaling)
        future.add_done_callback(lambda done: rescaling.end(done.exception()))
        return future

    @property
    def _streaming(self) -> RunningJob:
        if not isinstance(self.job, RunningJob):
            raise UnsupportedFeatureError("a batch job has no state to save: it always starts from the beginning")
        return self.job

    def _when_over(self, taken: CompletableFuture[str]) -> CompletableFuture[str]:
        """Return the path of a savepoint after the job has ended."""
        over: CompletableFuture[str] = CompletableFuture()

        def on_taken(done: CompletableFuture[str]) -> None:
            error = done.exception()
            if error is not None:
                over.complete_exceptionally(error)
            else:
                self._result.add_done_callback(lambda _: over.complete(done.result()))

        taken.add_done_callback(on_taken)
        return over
