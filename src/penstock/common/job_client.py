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
        """Return the job's id."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the job's status."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job. The future completes when the job has stopped."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stop the job with a savepoint. With ``advance_to_end_of_event_time``, fire all timers first (drain)."""

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint while the job continues. The future returns its path."""

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint and cancel the job. If the savepoint fails, the job continues."""
        raise UnsupportedFeatureError(f"{type(self).__name__} does not support savepoints")

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Change the job's parallelism: savepoint, stop and restart in one step, exactly-once.

        Only operators without an explicit parallelism change. The future completes when the job runs again.
        """
        raise UnsupportedFeatureError(f"{type(self).__name__} cannot be rescaled")

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the current values of all accumulators."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result. The future fails if the job fails, or with ``JobCancelledError`` if it is cancelled."""
