"""The RuntimeContext that user functions receive in `open`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common.errors import InvalidProgramError, StateAccessError, shorten
from penstock.core.functions import DistributedCache, RuntimeContext
from penstock.core.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.metrics import MetricGroup

if TYPE_CHECKING:
    from penstock.runtime.operators.operator import JobInfo
    from penstock.runtime.state.keyed_store import KeyedStateFactory


class StreamingRuntimeContext(RuntimeContext):
    """Where a function runs, and its keyed state."""

    def __init__(
        self,
        *,
        operator_name: str,
        subtask: int,
        parallelism: int,
        max_parallelism: int,
        job: JobInfo,
        metrics: MetricGroup,
        states: KeyedStateFactory | None,
    ) -> None:
        self._operator_name = operator_name
        self._subtask = subtask
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._job = job
        self._metrics = metrics
        self._states = states

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._operator_name

    def get_task_name_with_subtasks(self) -> str:
        """Name and subtask, for instance ``Map (1/4)``."""
        return f"{self._operator_name} ({self._subtask + 1}/{self._parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the operator."""
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Number of key groups."""
        return self._max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Index of the subtask, from 0."""
        return self._subtask

    def get_attempt_number(self) -> int:
        """Number of restarts of the job."""
        return self._job.attempt

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""
        return self._job.parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """The operator's metrics."""
        return self._metrics

    def get_distributed_cache(self) -> DistributedCache:
        """The registered files by name, as paths on this machine."""
        return DistributedCache(self._job.cached_files)

    def _create(self, descriptor: Any, kind: type[StateDescriptor]) -> Any:
        if not isinstance(descriptor, kind):
            raise InvalidProgramError(
                f"operator '{self._operator_name}' requested state with {shorten(descriptor)}, which is not a "
                f"{kind.__name__}"
            )
        if self._states is None:
            raise StateAccessError(
                f"operator '{self._operator_name}' requested keyed state '{descriptor.name}', but its stream "
                "has no keys: call key_by() before it"
            )
        return self._states.create(descriptor)

    def get_state(self, state_descriptor: Any) -> Any:
        """Value state."""
        return self._create(state_descriptor, ValueStateDescriptor)

    def get_list_state(self, state_descriptor: Any) -> Any:
        """List state."""
        return self._create(state_descriptor, ListStateDescriptor)

    def get_map_state(self, state_descriptor: Any) -> Any:
        """Map state."""
        return self._create(state_descriptor, MapStateDescriptor)

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        """Reducing state."""
        return self._create(state_descriptor, ReducingStateDescriptor)

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        """Aggregating state."""
        return self._create(state_descriptor, AggregatingStateDescriptor)
