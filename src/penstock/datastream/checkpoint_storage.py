"""Checkpoint storages: where checkpoints are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.unsupported import refuse_missing_names

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage:
    """Base class of checkpoint storages."""

    def get_checkpoint_path(self) -> str | None:
        """Return the checkpoint directory, or None to let the engine choose one."""
        return None

    savepoint_path: str | None = None

    def get_savepoint_path(self) -> str | None:
        """Return the default directory for savepoints, if there is one."""
        return self.savepoint_path


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory that the engine chooses. It is deleted with the job unless you give a path."""

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = None if checkpoint_path is None else str(checkpoint_path)
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        if not is_int(self._max_state_size) or self._max_state_size <= 0:
            raise InvalidProgramError(f"the maximum state size must be a positive int, got {max_state_size!r}")

    def get_checkpoint_path(self) -> str | None:
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        return self._max_state_size

    def __repr__(self) -> str:
        return f"JobManagerCheckpointStorage({self._checkpoint_path!r})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory that Spark can write to: local, HDFS, object store.

    >>> FileSystemCheckpointStorage("file:///tmp/checkpoints").get_checkpoint_path()
    'file:///tmp/checkpoints'
    """

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not checkpoint_path:
            raise InvalidProgramError("FileSystemCheckpointStorage needs a directory path")
        self._checkpoint_path = str(checkpoint_path).rstrip("/") or "/"
        self._threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        if not 0 <= self._threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise InvalidProgramError(
                f"the file size threshold must be from 0 to {self.MAX_FILE_STATE_THRESHOLD}, got {self._threshold}"
            )
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        return self._checkpoint_path

    def get_min_file_size_threshold(self) -> int:
        return self._threshold

    def get_write_buffer_size(self) -> int:
        return max(self._write_buffer_size, self._threshold)

    def __repr__(self) -> str:
        return f"FileSystemCheckpointStorage({self._checkpoint_path!r})"


class CustomCheckpointStorage(CheckpointStorage):
    """Wraps a Java object in PyFlink; not supported."""

    def __init__(self, j_custom_checkpoint_storage: object) -> None:
        raise UnsupportedFeatureError("CustomCheckpointStorage wraps a Java object: use FileSystemCheckpointStorage")


if not TYPE_CHECKING:
    __getattr__ = refuse_missing_names(__name__)
