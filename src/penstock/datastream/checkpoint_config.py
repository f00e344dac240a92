"""Settings of checkpoints.

Here, every micro-batch commit is a completed checkpoint. The interval therefore limits how long a batch may run before
it is committed, not how often state is written. Settings about barriers (alignment, concurrent checkpoints) are stored
and have no effect, because there are no barriers.
"""

from __future__ import annotations

from datetime import timedelta

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, to_millis
from penstock.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.externalized_checkpoint_retention import (
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
)

__all__ = ["CheckpointConfig", "ExternalizedCheckpointCleanup"]


class CheckpointConfig:
    """Interval, mode, storage and retention of checkpoints.

    >>> config = CheckpointConfig()
    >>> config.is_checkpointing_enabled()
    False
    >>> config.set_checkpoint_interval(1_000).set_checkpoint_storage(
    ...     "file:///tmp/checkpoints"
    ... ).get_checkpoint_interval()
    1000
    """

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1

    def __init__(self) -> None:
        self._interval = -1
        self._mode = CheckpointConfig.DEFAULT_MODE
        self._timeout = CheckpointConfig.DEFAULT_TIMEOUT
        self._min_pause = CheckpointConfig.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS
        self._max_concurrent = CheckpointConfig.DEFAULT_MAX_CONCURRENT_CHECKPOINTS
        self._tolerable_failures = 0
        self._retention: ExternalizedCheckpointRetention | None = None
        self._unaligned = False
        self._force_unaligned = False
        self._alignment_timeout = Duration.of_millis(0)
        self._storage: CheckpointStorage | None = None
        self.savepoint_dir: str | None = None

    def is_checkpointing_enabled(self) -> bool:
        return self._interval > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        if not isinstance(checkpointing_mode, CheckpointingMode):
            raise InvalidProgramError(f"expected a CheckpointingMode, got {checkpointing_mode!r}")
        self._mode = checkpointing_mode
        return self

    get_checkpointing_consistency_mode = get_checkpointing_mode
    set_checkpointing_consistency_mode = set_checkpointing_mode

    def get_checkpoint_interval(self) -> int:
        """Return the interval in ms, or -1 if checkpointing is not enabled."""
        return self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        self._interval = _at_least(checkpoint_interval, 10, "the checkpoint interval")
        return self

    def get_checkpoint_timeout(self) -> int:
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        self._timeout = _at_least(checkpoint_timeout, 10, "the checkpoint timeout")
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        self._min_pause = _at_least(min_pause_between_checkpoints, 0, "the pause between checkpoints")
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        return self._max_concurrent

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        self._max_concurrent = _at_least(max_concurrent_checkpoints, 1, "the number of concurrent checkpoints")
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self._tolerable_failures == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        self._tolerable_failures = 0 if fail_on_checkpointing_errors else 2**31 - 1
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        self._tolerable_failures = _at_least(tolerable_checkpoint_failure_number, 0, "the number of failures")
        return self

    # Retention and storage

    def is_externalized_checkpoints_enabled(self) -> bool:
        return self._retention not in (None, ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return the retention, or ``NO_EXTERNALIZED_CHECKPOINTS`` if none is set, as in Flink.

        If you choose a checkpoint directory, it is kept unless the retention says otherwise.
        """
        return self._retention or ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    @property
    def chosen_retention(self) -> ExternalizedCheckpointRetention | None:
        """The retention that the program sets, if any."""
        return self._retention

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Flink 1's name of ``set_externalized_checkpoint_retention``."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Flink 1's name of ``set_externalized_checkpoint_retention``."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        """Flink 1's name of ``get_externalized_checkpoint_retention``."""
        return self.get_externalized_checkpoint_retention()

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        if not isinstance(retention_mode, ExternalizedCheckpointRetention):
            raise InvalidProgramError(f"expected an ExternalizedCheckpointRetention, got {retention_mode!r}")
        self._retention = retention_mode
        return self

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        if self._storage is not None:
            self._storage.savepoint_path = self.savepoint_dir
        return self._storage

    def set_checkpoint_storage(self, storage: CheckpointStorage | str) -> CheckpointConfig:
        """Set the checkpoint storage, or the path of a directory."""
        if isinstance(storage, str):
            storage = FileSystemCheckpointStorage(storage)
        if not isinstance(storage, CheckpointStorage):
            raise InvalidProgramError(f"expected a CheckpointStorage or a path, got {storage!r}")
        self._storage = storage
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Set the directory for checkpoints."""
        return self.set_checkpoint_storage(checkpoint_path)

    # Barriers: stored, without effect

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._unaligned

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        self._unaligned = enabled
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(enabled=False)

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._force_unaligned

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        self._force_unaligned = force_unaligned_checkpoints
        return self

    def get_alignment_timeout(self) -> Duration:
        return self._alignment_timeout

    def set_alignment_timeout(self, alignment_timeout: Duration | Time | timedelta | int) -> CheckpointConfig:
        self._alignment_timeout = Duration.of_millis(to_millis(alignment_timeout))
        return self

    get_aligned_checkpoint_timeout = get_alignment_timeout
    set_aligned_checkpoint_timeout = set_alignment_timeout


def _at_least(value: int, least: int, label: str) -> int:
    if not is_int(value) or value < least:
        raise InvalidProgramError(f"{label} must be an int of at least {least}, got {value!r}")
    return value
