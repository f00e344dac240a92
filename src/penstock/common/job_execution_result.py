"""The result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The result of a finished job.

    >>> result = JobExecutionResult(JobID(), 1_200, {"lines": 17})
    >>> result.get_accumulator_result("lines"), result.get_net_runtime()
    (17, 1200)
    """

    __slots__ = ("_accumulators", "_job_id", "_net_runtime")

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return how long the job ran, in ms, without the time before its start."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the value of an accumulator, or ``None`` if the job has no such accumulator."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self._accumulators)

    def __repr__(self) -> str:
        return f"<JobExecutionResult job {self._job_id}, {self._net_runtime} ms>"
