"""Settings of a job that are not part of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.execution_mode import ExecutionMode
from penstock.common.input_dependency_constraint import InputDependencyConstraint
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration

__all__ = ["ExecutionConfig"]

MAX_PARALLELISM = 1 << 15


class ExecutionConfig:
    """Parallelism, watermark interval, restarts, job parameters.

    Switches for Flink's Java serializers are accepted so that programs run. They have no effect.

    >>> config = ExecutionConfig().set_parallelism(4).set_auto_watermark_interval(50)
    >>> config.get_parallelism(), config.get_auto_watermark_interval()
    (4, 50)
    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self) -> None:
        self._parallelism = ExecutionConfig.PARALLELISM_DEFAULT
        self._max_parallelism = -1
        self._auto_watermark_interval = 200
        self._latency_tracking_interval = 0
        self._task_cancellation_interval = 30_000
        self._task_cancellation_timeout = 180_000
        self._global_job_parameters: dict[str, str] = {}
        self._restart_strategy: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()
        self._execution_mode = ExecutionMode.PIPELINED
        self._input_dependency_constraint = InputDependencyConstraint.ANY
        self._switches: dict[str, bool] = {"closure_cleaner": True, "generic_types": True, "auto_generated_uids": True}

    # Parallelism

    def get_parallelism(self) -> int:
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that set none; -1 for the executor's default."""
        if parallelism != ExecutionConfig.PARALLELISM_UNKNOWN:
            if parallelism < 1 and parallelism != ExecutionConfig.PARALLELISM_DEFAULT:
                raise InvalidProgramError(f"the parallelism must be at least 1 (or -1, the default), got {parallelism}")
            self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, which is the upper limit for rescaling."""
        if not 0 < max_parallelism <= MAX_PARALLELISM:
            raise InvalidProgramError(f"max parallelism must be from 1 to {MAX_PARALLELISM}, got {max_parallelism}")
        self._max_parallelism = max_parallelism
        return self

    # Time

    def get_auto_watermark_interval(self) -> int:
        return self._auto_watermark_interval

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of periodic watermarks, in milliseconds; 0 turns them off."""
        self._auto_watermark_interval = _interval(interval, "the watermark interval")
        return self

    def get_latency_tracking_interval(self) -> int:
        return self._latency_tracking_interval

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        self._latency_tracking_interval = _interval(interval, "the latency tracking interval")
        return self

    def get_task_cancellation_interval(self) -> int:
        return self._task_cancellation_interval

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        self._task_cancellation_interval = _interval(interval, "the task cancellation interval")
        return self

    def get_task_cancellation_timeout(self) -> int:
        return self._task_cancellation_timeout

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        self._task_cancellation_timeout = _interval(timeout, "the task cancellation timeout")
        return self

    # Failures

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        return self._restart_strategy

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> ExecutionConfig:
        self._restart_strategy = restart_strategy
        return self

    # Job parameters

    def get_global_job_parameters(self) -> dict[str, str]:
        return dict(self._global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters: Mapping[str, Any]) -> ExecutionConfig:
        """Set parameters that functions read with ``get_runtime_context().get_job_parameter``."""
        self._global_job_parameters = {key: str(value) for key, value in global_job_parameters.items()}
        return self

    # Scheduling hints

    def get_execution_mode(self) -> ExecutionMode:
        return self._execution_mode

    def set_execution_mode(self, execution_mode: ExecutionMode) -> ExecutionConfig:
        self._execution_mode = execution_mode
        return self

    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        return self._input_dependency_constraint

    def set_default_input_dependency_constraint(self, constraint: InputDependencyConstraint) -> ExecutionConfig:
        self._input_dependency_constraint = constraint
        return self

    # Switches

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        return self._switch("auto_generated_uids", True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Reject jobs with operators that have no explicit uid."""
        return self._switch("auto_generated_uids", False)

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._switches["auto_generated_uids"]

    def enable_object_reuse(self) -> ExecutionConfig:
        return self._switch("object_reuse", True)

    def disable_object_reuse(self) -> ExecutionConfig:
        return self._switch("object_reuse", False)

    def is_object_reuse_enabled(self) -> bool:
        return self._switches.get("object_reuse", False)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        return self._switch("snapshot_compression", use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        return self._switches.get("snapshot_compression", False)

    def enable_closure_cleaner(self) -> ExecutionConfig:
        return self._switch("closure_cleaner", True)

    def disable_closure_cleaner(self) -> ExecutionConfig:
        return self._switch("closure_cleaner", False)

    def is_closure_cleaner_enabled(self) -> bool:
        return self._switches["closure_cleaner"]

    def enable_generic_types(self) -> ExecutionConfig:
        return self._switch("generic_types", True)

    def disable_generic_types(self) -> ExecutionConfig:
        return self._switch("generic_types", False)

    def has_generic_types_disabled(self) -> bool:
        return not self._switches["generic_types"]

    def enable_force_kryo(self) -> ExecutionConfig:
        return self._switch("force_kryo", True)

    def disable_force_kryo(self) -> ExecutionConfig:
        return self._switch("force_kryo", False)

    def is_force_kryo_enabled(self) -> bool:
        return self._switches.get("force_kryo", False)

    def enable_force_avro(self) -> ExecutionConfig:
        return self._switch("force_avro", True)

    def disable_force_avro(self) -> ExecutionConfig:
        return self._switch("force_avro", False)

    def is_force_avro_enabled(self) -> bool:
        return self._switches.get("force_avro", False)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return an empty dict: there are no Java serializers here."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return an empty list: there are no Java serializers here."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return an empty list: there are no Java serializers here."""
        return []

    def _switch(self, name: str, on: bool) -> ExecutionConfig:
        self._switches[name] = on
        return self

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, ExecutionConfig) else NotImplemented

    def __hash__(self) -> int:
        """Return equal hashes for equal settings. Do not change an object that is a key."""
        plain = {key: value for key, value in vars(self).items() if isinstance(value, (int, str, type(None)))}
        return hash(frozenset(plain.items()))


def _interval(value: int, label: str) -> int:
    if value < 0:
        raise InvalidProgramError(f"{label} must not be negative, got {value}")
    return value
