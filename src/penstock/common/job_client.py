"""The handle of a running job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import UnsupportedFeatureError
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus

__all__ = ["JobClient"]


class JobClient(ABC):
    """Controls a running job. Each executor has its own client; ``execute_async`` returns one."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The job's id."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stops the job; the future is done when it has stopped."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stops the job and leaves a savepoint; ``advance_to_end_of_event_time`` fires all timers first (drain)."""

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Takes a savepoint while the job runs on; the future gives its path."""

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Takes a savepoint and cancels the job; it runs on if the savepoint fails."""
        raise UnsupportedFeatureError(f"{type(self).__name__} takes no savepoints")

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Gives the job another parallelism: savepoint, stop and restart in one step, exactly once across it.

        Only operators whose parallelism was not set follow. The future is done when the job runs again.
        """
        raise UnsupportedFeatureError(f"{type(self).__name__} cannot be rescaled")

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The values of all accumulators now."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result, once the job is over; the error if it failed, a ``JobCancelledError`` if it was cancelled."""
