"""Storage for the driver's part of a job's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from penstock.runtime.lease.epoch_directory import adopt_directory
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.savepoint.storage import Directory
from penstock.runtime.task.union_states import UnionFiles

__all__ = ["COMMITTABLES", "RECEIVED", "CheckpointStorage", "MemoryCheckpointStorage"]

COMMITTABLES = "committables"
"""The directory of committables that wait for their checkpoint."""
RECEIVED = "received"
"""The directory of the receive logs."""


class CheckpointStorage(Protocol):
    """Stores the driver's part of the checkpoints, so that it survives a crash."""

    @property
    def base(self) -> int:
        """The id of the savepoint from which the job started, or 0. Checkpoint ids continue from here."""

    @property
    def union_files(self) -> UnionFiles:
        """The storage of union list states."""

    def directory(self, name: str) -> str | None:
        """Return a directory for logs of the driver, or None if they cannot outlive the process."""

    def last_checkpoint(self) -> int:
        """Return the id of the last complete checkpoint, or the base."""

    def check(self) -> None:
        """Raise an error if the storage is no longer available. Called before sinks commit."""

    def source_positions(self, checkpoint_id: int, directory: Directory) -> dict[str, Json]:
        """For a savepoint, return the positions of the sources that the engine reads itself, by operator id."""


class MemoryCheckpointStorage:
    """Checkpoints that live as long as the process. Logs of the driver may be in a directory.

    :param last_checkpoint: the checkpoint that the job continues from
    :param unions: the files of union list states, by checkpoint id
    :param keeps_received: whether a restarted job reads what its receivers received earlier
    :param epoch: the epoch of the lease on the directory, if another driver may take it over
    """

    base = 0

    def __init__(
        self,
        directory: str | None = None,
        *,
        last_checkpoint: int = 0,
        unions: dict[int, bytes] | None = None,
        keeps_received: bool = True,
        epoch: int = 0,
    ) -> None:
        self.union_files = _UnionFiles(unions or {})
        self._directory = None if directory is None else Path(directory)
        self._last_checkpoint = last_checkpoint
        self._keeps_received = keeps_received
        self._epoch = epoch

    def directory(self, name: str) -> str | None:
        """Return a subdirectory of the given directory."""
        if self._directory is None or (name == RECEIVED and not self._keeps_received):
            return None
        return str(adopt_directory(self._directory, name, self._epoch))

    def last_checkpoint(self) -> int:
        """Return the last recorded checkpoint."""
        return self._last_checkpoint

    def complete(self, checkpoint_id: int) -> None:
        """Record that a checkpoint is complete."""
        self._last_checkpoint = checkpoint_id

    def check(self) -> None:
        """Do nothing: memory is always available."""

    def source_positions(self, checkpoint_id: int, directory: Directory) -> dict[str, Json]:
        """Return nothing: the engine reads no sources itself."""
        return {}


class _UnionFiles:
    def __init__(self, files: dict[int, bytes]) -> None:
        self.files = files

    def checkpoints(self) -> list[int]:
        return list(self.files)

    def read(self, checkpoint_id: int) -> bytes:
        return self.files[checkpoint_id]

    def write(self, checkpoint_id: int, content: bytes) -> None:
        self.files[checkpoint_id] = content

    def remove(self, checkpoint_id: int) -> None:
        self.files.pop(checkpoint_id, None)
