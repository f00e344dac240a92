"""Flink's configuration keys, and what each of them sets on the environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.common.configuration import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.common.restart_strategy import RestartStrategies
from penstock.common.time import parse_duration
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend

if TYPE_CHECKING:
    from penstock.datastream.environment_settings import EnvironmentSettings

Setter = Callable[["EnvironmentSettings", str], Any]

_BACKENDS: dict[str, type[StateBackend]] = {"hashmap": HashMapStateBackend, "rocksdb": EmbeddedRocksDBStateBackend}


def _millis(text: str) -> int:
    return parse_duration(text).to_milliseconds()


def _boolean(text: str) -> bool:
    return Configuration.from_dict({"value": text}).get_boolean("value", default_value=False)


def _member(kind: Any, text: str, key: str) -> Any:
    """Parse an enum member as written in Flink's configuration files: ``exactly-once`` or ``EXACTLY_ONCE``."""
    name = text.strip().upper().replace("-", "_")
    if name not in kind.__members__:
        choices = ", ".join(kind.__members__)
        raise InvalidProgramError(f"configuration {key!r} must be one of {choices}, not {text!r}")
    return kind[name]


def _state_backend(env: EnvironmentSettings, text: str) -> None:
    name = text.strip().lower()
    if name not in _BACKENDS:
        raise InvalidProgramError(f"configuration 'state.backend.type' must be hashmap or rocksdb, not {text!r}")
    env.set_state_backend(_BACKENDS[name]())


def _chaining(env: EnvironmentSettings, text: str) -> None:
    env.chaining = _boolean(text)


def _job_name(env: EnvironmentSettings, text: str) -> None:
    env.job_name = text


def _archives(env: EnvironmentSettings, text: str) -> None:
    for part in _parts(text):
        path, _, target = part.partition("#")
        env.add_python_archive(path, target or None)


def _requirements(env: EnvironmentSettings, text: str) -> None:
    path, _, cache = text.partition("#")
    env.set_python_requirements(path, cache or None)


def _python_files(env: EnvironmentSettings, text: str) -> None:
    for part in _parts(text):
        env.add_python_file(part)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _job_parameters(env: EnvironmentSettings, text: str) -> None:
    pairs = (part.partition(":") for part in _parts(text))
    env.get_config().set_global_job_parameters({key.strip(): value.strip() for key, _, value in pairs})


def _retention(key: str) -> Setter:
    return lambda env, text: env.get_checkpoint_config().set_externalized_checkpoint_retention(
        _member(ExternalizedCheckpointRetention, text, key)
    )


_SETTERS: dict[str, Setter] = {
    "parallelism.default": lambda env, text: env.set_parallelism(_integer("parallelism.default", text)),
    "pipeline.max-parallelism": lambda env, text: env.set_max_parallelism(_integer("pipeline.max-parallelism", text)),
    "pipeline.auto-watermark-interval": lambda env, text: env.get_config().set_auto_watermark_interval(_millis(text)),
    "pipeline.operator-chaining": _chaining,
    "pipeline.operator-chaining.enabled": _chaining,
    "pipeline.name": _job_name,
    "pipeline.global-job-parameters": _job_parameters,
    "execution.runtime-mode": lambda env, text: env.set_runtime_mode(
        _member(RuntimeExecutionMode, text, "execution.runtime-mode")
    ),
    "execution.buffer-timeout": lambda env, text: env.set_buffer_timeout(_millis(text)),
    "execution.buffer-timeout.interval": lambda env, text: env.set_buffer_timeout(_millis(text)),
    "execution.checkpointing.interval": lambda env, text: env.enable_checkpointing(_millis(text)),
    "execution.checkpointing.mode": lambda env, text: env.get_checkpoint_config().set_checkpointing_mode(
        _member(CheckpointingMode, text, "execution.checkpointing.mode")
    ),
    "execution.checkpointing.timeout": lambda env, text: env.get_checkpoint_config().set_checkpoint_timeout(
        _millis(text)
    ),
    "execution.checkpointing.min-pause": lambda env, text: (
        env.get_checkpoint_config().set_min_pause_between_checkpoints(_millis(text))
    ),
    "execution.checkpointing.dir": lambda env, text: env.get_checkpoint_config().set_checkpoint_storage(text),
    "state.checkpoints.dir": lambda env, text: env.get_checkpoint_config().set_checkpoint_storage(text),
    "execution.checkpointing.externalized-checkpoint-retention": _retention(
        "execution.checkpointing.externalized-checkpoint-retention"
    ),
    "execution.checkpointing.savepoint-dir": lambda env, text: env.set_default_savepoint_directory(text),
    "state.savepoints.dir": lambda env, text: env.set_default_savepoint_directory(text),
    "execution.checkpointing.num-retained": lambda env, text: env.set_retained(_integer("num-retained", text)),
    "state.checkpoints.num-retained": lambda env, text: env.set_retained(_integer("num-retained", text)),
    "execution.savepoint.path": lambda env, text: env.set_savepoint(path=text),
    "execution.state-recovery.path": lambda env, text: env.set_savepoint(path=text),
    "execution.savepoint.ignore-unclaimed-state": lambda env, text: env.set_savepoint(ignore=_boolean(text)),
    "execution.state-recovery.ignore-unclaimed-state": lambda env, text: env.set_savepoint(ignore=_boolean(text)),
    "state.backend.type": _state_backend,
    "state.backend": _state_backend,
    "state.backend.rocksdb.memory.fixed-per-slot": lambda env, text: env.set_state_memory(parse_memory_size(text)),
    "python.files": _python_files,
    "python.archives": _archives,
    "python.requirements": _requirements,
    "python.executable": lambda env, text: env.set_python_executable(text),
}


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def parse_memory_size(text: str) -> int:
    """Parse a size as written in Flink's configuration; return bytes.

    >>> parse_memory_size("64 mb"), parse_memory_size("512k"), parse_memory_size("100")
    (67108864, 524288, 100)
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or match.group(2) not in _UNITS:
        raise InvalidProgramError(f"a memory size must be a number with a unit such as 64mb, not {text!r}")
    return int(match.group(1)) * _UNITS[match.group(2)]


def _integer(key: str, text: str) -> int:
    return Configuration.from_dict({key: text}).get_integer(key, 0)


def apply_configuration(env: EnvironmentSettings, configuration: Configuration) -> None:
    """Apply the keys that the environment knows. Other keys stay in the configuration for other components."""
    for key, setter in _SETTERS.items():
        text = configuration.get_string(key)
        if text is not None:
            setter(env, text)
    restart_strategy = RestartStrategies.from_configuration(configuration)
    if restart_strategy is not None:
        env.set_restart_strategy(restart_strategy)
