"""Time to live of state: when values expire, and whether expired values can be read."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, to_millis

__all__ = ["StateTtlConfig"]

Length = Time | Duration | timedelta | int | str


class _UpdateType(Enum):
    """Which accesses extend the life of a value."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class _StateVisibility(Enum):
    """Whether an expired value that is not removed yet can be read."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class _TtlTimeCharacteristic(Enum):
    """The clock by which values expire."""

    ProcessingTime = 0


class _Strategies(Enum):
    """The kinds of cleanup."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _CleanupStrategy:
    """The base class of cleanup strategies."""


class _EmptyCleanupStrategy(_CleanupStrategy):
    """A strategy without settings."""


class _IncrementalCleanupStrategy(_CleanupStrategy):
    """Checks some entries with each access."""

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        if cleanup_size <= 0:
            raise InvalidProgramError(f"the number of entries to clean up must be positive, got {cleanup_size}")
        self._cleanup_size = cleanup_size
        self._run_cleanup_for_every_record = run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        return self._run_cleanup_for_every_record


class _RocksdbCompactFilterCleanupStrategy(_CleanupStrategy):
    """Drops expired entries when the store rewrites its files."""

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        self._query_time_after_num_entries = query_time_after_num_entries
        self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

    def get_query_time_after_num_entries(self) -> int:
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        return self._periodic_compaction_time


class _CleanupStrategies:
    """The configured cleanup strategies."""

    Strategies = _Strategies
    CleanupStrategy = _CleanupStrategy
    EmptyCleanupStrategy = _EmptyCleanupStrategy
    IncrementalCleanupStrategy = _IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = _RocksdbCompactFilterCleanupStrategy

    EMPTY_STRATEGY = _EmptyCleanupStrategy()

    def __init__(self, strategies: dict[_Strategies, _CleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        return _Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> _IncrementalCleanupStrategy | None:
        strategy = self._strategies.get(_Strategies.INCREMENTAL_CLEANUP)
        if isinstance(strategy, _IncrementalCleanupStrategy):
            return strategy
        # The background cleanup is on by default. Like Flink, it checks 5 entries.
        return _IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> _RocksdbCompactFilterCleanupStrategy | None:
        strategy = self._strategies.get(_Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(strategy, _RocksdbCompactFilterCleanupStrategy):
            return strategy
        return _RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None


class _Builder:
    """Builds a :class:`StateTtlConfig`."""

    def __init__(self, ttl: Length) -> None:
        self._ttl = ttl
        self._update_type = _UpdateType.OnCreateAndWrite
        self._state_visibility = _StateVisibility.NeverReturnExpired
        self._ttl_time_characteristic = _TtlTimeCharacteristic.ProcessingTime
        self._is_cleanup_in_background = True
        self._strategies: dict[_Strategies, _CleanupStrategy] = {}

    def set_ttl(self, ttl: Length) -> _Builder:
        self._ttl = ttl
        return self

    def set_update_type(self, update_type: _UpdateType) -> _Builder:
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> _Builder:
        return self.set_update_type(_UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> _Builder:
        return self.set_update_type(_UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: _StateVisibility) -> _Builder:
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> _Builder:
        return self.set_state_visibility(_StateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> _Builder:
        return self.set_state_visibility(_StateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(self, ttl_time_characteristic: _TtlTimeCharacteristic) -> _Builder:
        self._ttl_time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> _Builder:
        return self.set_ttl_time_characteristic(_TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> _Builder:
        self._strategies[_Strategies.FULL_STATE_SCAN_SNAPSHOT] = _EmptyCleanupStrategy()
        return self

    def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> _Builder:
        self._strategies[_Strategies.INCREMENTAL_CLEANUP] = _IncrementalCleanupStrategy(
            cleanup_size, run_cleanup_for_every_record
        )
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
    ) -> _Builder:
        self._strategies[_Strategies.ROCKSDB_COMPACTION_FILTER] = _RocksdbCompactFilterCleanupStrategy(
            query_time_after_num_entries, periodic_compaction_time
        )
        return self

    def disable_cleanup_in_background(self) -> _Builder:
        self._is_cleanup_in_background = False
        return self

    def build(self) -> StateTtlConfig:
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._ttl_time_characteristic,
            self._ttl,
            _CleanupStrategies(self._strategies, self._is_cleanup_in_background),
        )


class StateTtlConfig:
    """The time to live of values, in processing time.

    >>> config = StateTtlConfig.new_builder(Time.days(1)).update_ttl_on_read_and_write().build()
    >>> config.ttl_millis, config.get_update_type().name, config.get_state_visibility().name
    (86400000, 'OnReadAndWrite', 'NeverReturnExpired')
    """

    UpdateType = _UpdateType
    StateVisibility = _StateVisibility
    TtlTimeCharacteristic = _TtlTimeCharacteristic
    CleanupStrategies = _CleanupStrategies
    Builder = _Builder

    def __init__(
        self,
        update_type: _UpdateType,
        state_visibility: _StateVisibility,
        ttl_time_characteristic: _TtlTimeCharacteristic,
        ttl: Length,
        cleanup_strategies: _CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._cleanup_strategies = cleanup_strategies
        self.ttl_millis = to_millis(ttl)
        self._ttl = ttl if isinstance(ttl, (Time, Duration)) else Duration.of_millis(self.ttl_millis)
        if self.ttl_millis <= 0:
            raise InvalidProgramError(f"the time to live of state must be at least 1 ms, got {self.ttl_millis} ms")

    @staticmethod
    def new_builder(ttl: Length) -> _Builder:
        return _Builder(ttl)

    def get_update_type(self) -> _UpdateType:
        return self._update_type

    def get_state_visibility(self) -> _StateVisibility:
        return self._state_visibility

    def get_ttl(self) -> Time | Duration:
        return self._ttl

    def get_ttl_time_characteristic(self) -> _TtlTimeCharacteristic:
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        return self._update_type is not _UpdateType.Disabled

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig({self._ttl!r}, {self._update_type.name}, {self._state_visibility.name}, "
            f"{self._ttl_time_characteristic.name})"
        )
