"""The runtime context of conditions and pattern functions. It has no state, because matching has its own."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.common.errors import UnsupportedFeatureError
from penstock.core.functions import DistributedCache, RuntimeContext
from penstock.metrics import MetricGroup

__all__ = ["CepRuntimeContext"]


class CepRuntimeContext(RuntimeContext):
    """Provides information about the task, and rejects access to keyed state."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._context.get_task_name()

    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""
        return self._context.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._context.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        """The index of the subtask."""
        return self._context.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        """Return the number of restarts of the job."""
        return self._context.get_attempt_number()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""
        return self._context.get_job_parameter(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """The operator's metrics."""
        return self._context.get_metrics_group()

    def get_distributed_cache(self) -> DistributedCache:
        """The registered files."""
        return self._context.get_distributed_cache()

    def _refuse(self, state_descriptor: Any) -> NoReturn:
        raise UnsupportedFeatureError(
            f"conditions and pattern functions have no keyed state, but operator '{self.get_task_name()}' requested "
            "some: get events of the match from the condition's context, or use state in a function after the pattern"
        )

    get_state = _refuse
    get_list_state = _refuse
    get_map_state = _refuse
    get_reducing_state = _refuse
    get_aggregating_state = _refuse
