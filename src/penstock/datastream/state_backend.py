"""State backends: how a running job keeps its state.

While a batch runs, state lives in Python dicts; between batches, in pages of Spark's state store. The backend decides
how many decoded pages stay in memory: all of them (hash map), or only those in use (RocksDB).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.local_path import local_path
from penstock.common.unsupported import refuse_missing_names

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend:
    """Base class of state backends."""

    #: The name in ``state.backend.type``.
    type_name = "hashmap"
    #: Whether to evict decoded state from memory when it exceeds the budget.
    spills = False
    #: The memory budget for each operator in each subtask, in bytes of encoded state.
    DEFAULT_MEMORY = 64 * 1024 * 1024

    def store_settings(self) -> dict[str, int | bool]:
        """Return the settings of the state store."""
        return {}


class HashMapStateBackend(StateBackend):
    """Keeps all state that a task touches decoded in its worker's memory. The fastest backend, if the state fits.

    Each batch writes its changes to the store, so this memory affects only speed.
    """

    def __repr__(self) -> str:
        return "HashMapStateBackend()"


class PredefinedOptions(Enum):
    """Settings of RocksDB for a kind of disk. Those that Spark's state store also has take effect."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3

    @property
    def store_settings(self) -> dict[str, int | bool]:
        """Return Flink's values for the options that Spark's state store has."""
        return dict(_PREDEFINED[self])


_PREDEFINED: dict[PredefinedOptions, dict[str, int | bool]] = {
    PredefinedOptions.DEFAULT: {},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED: {"max_open_files": -1},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM: {
        "max_open_files": -1,
        "block_cache_mb": 256,
        "block_size_kb": 128,
        "write_buffer_mb": 64,
        "write_buffers": 4,
    },
    PredefinedOptions.FLASH_SSD_OPTIMIZED: {"max_open_files": -1},
}


class EmbeddedRocksDBStateBackend(StateBackend):
    """Allows state larger than memory: only a budget of it stays decoded; the rest is read when a key needs it.

    The budget is per operator and subtask, in bytes as stored. Decoded Python objects take about three to six times
    that. Set it with ``state.backend.rocksdb.memory.fixed-per-slot``; the default is 64 MB. The least recently used
    pages leave memory after a batch, and during a batch that touches more than twice the budget.

    >>> EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=True).is_incremental_checkpoints_enabled()
    True
    """

    type_name = "rocksdb"
    spills = True

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing
        self._db_storage_paths: list[str] | None = None
        self._options: str | None = None
        self._predefined_options = PredefinedOptions.DEFAULT
        self._transfer_threads = 4

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint writes only changes. The default is True."""
        return self._incremental is not False

    def store_settings(self) -> dict[str, int | bool]:
        wanted = self._predefined_options.store_settings
        return wanted if self._incremental is None else {**wanted, "changelog": self._incremental}

    def set_db_storage_paths(self, *paths: str) -> None:
        """Accepted without effect. Of a URI, only the path is used, even if it names a host by mistake."""
        self._db_storage_paths = [_path_in(path) for path in paths] or None

    def get_db_storage_paths(self) -> list[str] | None:
        return self._db_storage_paths

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        self._options = options_factory_class_name

    def get_options(self) -> str | None:
        return self._options

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        self._transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        return self._transfer_threads

    def __repr__(self) -> str:
        return f"EmbeddedRocksDBStateBackend(enable_incremental_checkpointing={self._incremental})"


class CustomStateBackend(StateBackend):
    """Wraps a Java object in PyFlink; not supported."""

    def __init__(self, j_custom_state_backend: object) -> None:
        raise UnsupportedFeatureError(
            "CustomStateBackend wraps a Java object: use HashMapStateBackend or EmbeddedRocksDBStateBackend"
        )


def _path_in(address: str) -> str:
    try:
        return local_path(address) or address
    except InvalidProgramError:
        return urlsplit(address).path.rstrip("/")


if not TYPE_CHECKING:
    __getattr__ = refuse_missing_names(__name__)
