"""Settings of a job, taken from the environment at execution."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.spark_execution_mode import EXECUTION_MODE, SparkExecutionMode


@dataclass(slots=True, kw_only=True)
class JobSettings:
    """The configuration of a job, without its graph."""

    job_name: str = "Penstock Streaming Job"
    parallelism: int = 1
    max_parallelism: int | None = None
    runtime_mode: str = "STREAMING"  # STREAMING, BATCH or AUTOMATIC
    chaining_enabled: bool = True
    checkpoint_interval: int | None = None
    checkpoint_dir: str | None = None
    checkpoint_retention: str | None = None
    retained_checkpoints: int | None = None
    restart_strategy: RestartStrategyConfiguration | None = None
    state_memory_budget: int | None = None
    state_store: dict[str, int | bool] = field(default_factory=dict)  # changelog, block_size_kb, block_cache_mb, ...
    savepoint_dir: str | None = None
    savepoint_path: str | None = None  # the savepoint to continue from
    ignore_unclaimed_state: bool = False
    snapshot_compression: bool = False
    job_parameters: dict[str, str] = field(default_factory=dict)
    python_files: list[str] = field(default_factory=list)
    python_archives: list[tuple[str, str | None]] = field(default_factory=list)
    python_requirements: tuple[str, str | None] | None = None
    python_executable: str | None = None
    cached_files: dict[str, str] = field(default_factory=dict)
    configuration: dict[str, str] = field(default_factory=dict)

    @property
    def execution_mode(self) -> SparkExecutionMode:
        """Return the execution mode of a streaming job: `penstock.execution.mode`."""
        return SparkExecutionMode.parse(self.configuration.get(EXECUTION_MODE, SparkExecutionMode.MICRO_BATCH.value))
