"""The settings of the environment: parallelism, checkpoints, state, restarts, dependencies, and configuration keys.

This module imports one module for each kind of setting.
"""

from __future__ import annotations

from typing import Self
from weakref import WeakSet

from penstock.common.checks import is_int, require_name
from penstock.common.configuration import Configuration
from penstock.common.cpus import usable_cpus
from penstock.common.errors import EnvironmentStoppedError, InvalidProgramError
from penstock.common.execution_config import ExecutionConfig
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from penstock.common.spark_execution_mode import EXECUTION_MODE, SparkExecutionMode
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.configuration_keys import apply_configuration
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.datastream.state_backend import StateBackend
from penstock.datastream.stream_settings import check_max_parallelism, check_parallelism
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation


class EnvironmentSettings:
    """Settings for all jobs of an environment."""

    _default_local_parallelism: int | None = None  # of the class: set_default_local_parallelism is process-wide

    def __init__(self) -> None:
        self._closed = False
        self._configuration = Configuration()
        self._config = ExecutionConfig()
        self._at_default_parallelism: WeakSet[Transformation] = WeakSet()
        self._checkpoint_config = CheckpointConfig()
        self._runtime_mode = RuntimeExecutionMode.STREAMING
        self.chaining = True
        self._chaining_of_different_max_parallelism = True
        self._buffer_timeout = 100
        self._state_backend: StateBackend | None = None
        self._changelog: bool | None = None
        self._savepoint_dir: str | None = None
        self._savepoint_path: str | None = None
        self._ignore_unclaimed_state = False
        self._retained_checkpoints: int | None = None
        self._state_memory: int | None = None
        self.job_name: str | None = None
        self._python_files: list[str] = []
        self._python_archives: list[tuple[str, str | None]] = []
        self._python_requirements: tuple[str, str | None] | None = None
        self._python_executable: str | None = None
        self._cached_files: dict[str, str] = {}
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}

    def check_open(self) -> None:
        if self._closed:
            raise EnvironmentStoppedError(
                "the environment is closed: create one with StreamExecutionEnvironment.get_execution_environment()"
            )

    # Parallelism and mode

    def get_config(self) -> ExecutionConfig:
        return self._config

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that set none. By default it is the number of CPU cores."""
        parallelism = self._config.get_parallelism()
        return parallelism if parallelism > 0 else self.get_default_local_parallelism()

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the parallelism of operators that you define from now on and that set none; -1 restores the default."""
        self.check_open()
        before = self.get_parallelism()
        default = parallelism == ExecutionConfig.PARALLELISM_DEFAULT
        self._config.set_parallelism(parallelism if default else check_parallelism(parallelism))
        if self.get_parallelism() != before:
            for transformation in self._at_default_parallelism:
                transformation.parallelism = transformation.parallelism or before
            self._at_default_parallelism.clear()
        return self

    def note_default_parallelism(self, transformation: Transformation) -> None:
        """Fix the current parallelism for an operator that sets none, in case the environment's changes later."""
        if transformation.parallelism is None:
            self._at_default_parallelism.add(transformation)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, or -1 if it is derived from the parallelism."""
        return self._config.get_max_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        self.check_open()
        self._config.set_max_parallelism(check_max_parallelism(max_parallelism))
        return self

    def get_default_local_parallelism(self) -> int:
        default = EnvironmentSettings._default_local_parallelism
        return default if default is not None else usable_cpus()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism of all environments in this process that set none."""
        EnvironmentSettings._default_local_parallelism = check_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set the mode: STREAMING (the default), BATCH, or AUTOMATIC: BATCH if all sources are bounded."""
        self.check_open()
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise InvalidProgramError(f"expected a RuntimeExecutionMode, got {execution_mode!r}")
        self._runtime_mode = execution_mode
        return self

    def get_runtime_mode(self) -> RuntimeExecutionMode:
        return self._runtime_mode

    def set_spark_execution_mode(self, mode: SparkExecutionMode | str) -> Self:
        """Set how streaming jobs run on Spark: `micro-batch` (the default) or `continuous` (latency in milliseconds).

        This is the setting `penstock.execution.mode`.
        """
        self.check_open()
        mode = mode if isinstance(mode, SparkExecutionMode) else SparkExecutionMode.parse(mode)
        self._configuration.set_string(EXECUTION_MODE, mode.value)
        return self

    def disable_operator_chaining(self) -> Self:
        self.check_open()
        self.chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        return self.chaining

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        return self._chaining_of_different_max_parallelism

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accepted without effect: records leave with their micro-batch and never wait in a buffer."""
        self.check_open()
        if not is_int(timeout_millis) or timeout_millis < -1:
            raise InvalidProgramError(f"the buffer timeout must be at least -1, got {timeout_millis!r}")
        self._buffer_timeout = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        return self._buffer_timeout

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        self.check_open()
        known = self._slot_sharing_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise InvalidProgramError(
                f"slot sharing group '{known.get_name()}' is already registered with other resources"
            )
        return self

    # Checkpoints, state, failures

    def get_checkpoint_config(self) -> CheckpointConfig:
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int = 500, mode: CheckpointingMode | None = None) -> Self:
        """Write checkpoints at this interval in ms. State is durable after each micro-batch in any case."""
        self.check_open()
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._checkpoint_config.get_checkpointing_mode()

    get_checkpointing_consistency_mode = get_checkpointing_mode

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Set how a running job keeps state in memory."""
        self.check_open()
        if not isinstance(state_backend, StateBackend):
            raise InvalidProgramError(f"expected a StateBackend, got {state_backend!r}")
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        return self._state_backend

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Set whether a checkpoint writes only what changed since the last one. The default is True."""
        self.check_open()
        self._changelog = enabled
        return self

    def _state_store(self) -> dict[str, int | bool]:
        """Return the settings of the state store: those of the backend, and whether it writes a changelog."""
        wanted = {} if self._state_backend is None else self._state_backend.store_settings()
        return wanted if self._changelog is None else {**wanted, "changelog": self._changelog}

    def is_changelog_state_backend_enabled(self) -> bool | None:
        return self._changelog

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> Self:
        """Set what happens when a job fails."""
        self.check_open()
        if not isinstance(restart_strategy, RestartStrategyConfiguration):
            raise InvalidProgramError(f"expected a restart strategy of RestartStrategies, got {restart_strategy!r}")
        self._config.set_restart_strategy(restart_strategy)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        return self._config.get_restart_strategy()

    def set_default_savepoint_directory(self, directory: str) -> Self:
        self.check_open()
        self._savepoint_dir = require_name(directory, "the savepoint directory")
        self._checkpoint_config.savepoint_dir = self._savepoint_dir
        return self

    def set_state_memory(self, budget: int) -> None:
        self._state_memory = budget

    def set_retained(self, number: int) -> None:
        if number < 1:
            raise InvalidProgramError(f"at least one checkpoint must be retained, got {number}")
        self._retained_checkpoints = number

    def set_savepoint(self, *, path: str | None = None, ignore: bool | None = None) -> None:
        """Set the savepoint that jobs start from, and whether they may ignore state in it that no operator claims."""
        if path is not None:
            self._savepoint_path = path.strip() or None
        if ignore is not None:
            self._ignore_unclaimed_state = ignore

    def get_default_savepoint_directory(self) -> str | None:
        return self._savepoint_dir

    # Dependencies

    def add_python_file(self, file_path: str) -> None:
        """Add a module, package directory or wheel to the ``PYTHONPATH`` of the workers."""
        self.check_open()
        self._python_files.append(require_name(file_path, "the path of a Python file"))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Add an archive that is unpacked in the working directory of the workers."""
        self.check_open()
        self._python_archives.append((require_name(archive_path, "the path of an archive"), target_dir))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Set the requirements file whose packages the workers install."""
        self.check_open()
        path = require_name(requirements_file_path, "the path of a requirements file")
        self._python_requirements = (path, requirements_cache_dir)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter of the workers. It needs the version and the packages of the driver's.

        Set it before the first job: Spark reads it at startup, and starts only once per process.
        """
        self.check_open()
        self._python_executable = require_name(python_exec, "the path of the Python interpreter")

    def add_jars(self, *jars_path: str) -> None:
        """Add JAR files to Spark."""
        self.check_open()
        self._append_to_list("spark.jars", jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Add entries to the classpath of Spark's driver."""
        self.check_open()
        self._append_to_list("spark.driver.extraClassPath", classpaths, separator=":")

    def _append_to_list(self, key: str, paths: tuple[str, ...], separator: str = ",") -> None:
        known = self._configuration.get_string(key, "")
        parts = [known] if known else []
        self._configuration.set_string(key, separator.join([*parts, *paths]))

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Register a file that functions find with ``get_runtime_context().get_distributed_cache().get_file(name)``."""
        self.check_open()
        self._cached_files[require_name(name, "the name of a cached file")] = require_name(file_path, "a path")

    # Configuration keys

    def configure(self, configuration: Configuration) -> Self:
        """Apply all keys of a configuration. Other settings keep their values."""
        self.check_open()
        self._configuration.add_all(configuration)
        apply_configuration(self, configuration)
        return self

    def get_configuration(self) -> Configuration:
        """Return all settings that were given as configuration keys."""
        return Configuration(self._configuration)

    def _state_memory_budget(self) -> int | None:
        if self._state_backend is None or not self._state_backend.spills:
            return None
        return self._state_memory or self._state_backend.DEFAULT_MEMORY

    def job_settings(self, job_name: str | None) -> JobSettings:
        checkpoints, storage = self._checkpoint_config, self._checkpoint_config.get_checkpoint_storage()
        retention = checkpoints.chosen_retention
        max_parallelism = self._config.get_max_parallelism()
        settings = JobSettings(
            parallelism=self.get_parallelism(),
            max_parallelism=max_parallelism if max_parallelism > 0 else None,
            runtime_mode=self._runtime_mode.name,
            chaining_enabled=self.chaining,
            checkpoint_interval=checkpoints.get_checkpoint_interval()
            if checkpoints.is_checkpointing_enabled()
            else None,
            checkpoint_dir=None if storage is None else storage.get_checkpoint_path(),
            checkpoint_retention=None if retention is None else retention.name,
            retained_checkpoints=self._retained_checkpoints,
            restart_strategy=RestartStrategies.effective(
                self._config.get_restart_strategy(), checkpointing_enabled=checkpoints.is_checkpointing_enabled()
            ),
            state_memory_budget=self._state_memory_budget(),
            state_store=self._state_store(),
            savepoint_dir=self._savepoint_dir,
            savepoint_path=self._savepoint_path,
            ignore_unclaimed_state=self._ignore_unclaimed_state,
            snapshot_compression=self._config.is_use_snapshot_compression(),
            job_parameters=self._config.get_global_job_parameters(),
            python_files=list(self._python_files),
            python_archives=list(self._python_archives),
            python_requirements=self._python_requirements,
            python_executable=self._python_executable,
            cached_files=dict(self._cached_files),
            configuration=self._configuration.to_dict(),
        )
        settings.job_name = job_name or self.job_name or settings.job_name
        return settings
