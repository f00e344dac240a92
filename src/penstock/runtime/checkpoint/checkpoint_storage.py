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
"""The directory for what sinks have prepared to commit after a checkpoint."""
RECEIVED = "received"
"""The directory for what receivers have received."""


class CheckpointStorage(Protocol):
    """Where the driver finds its part of the checkpoints again after a crash."""

    @property
    def base(self) -> int:
        """Checkpoint ids continue from here: the id of the savepoint that the job started from, or 0."""

    @property
    def union_files(self) -> UnionFiles:
        """Where union list states are kept."""

    def directory(self, name: str) -> str | None:
        """A directory for logs of the driver; None if they can only live as long as the process."""

    def last_checkpoint(self) -> int:
        """The id of the last complete checkpoint; the base if there is none."""

    def check(self) -> None:
        """Called before sinks commit: raise an error if the storage is no longer there."""

    def source_positions(self, checkpoint_id: int, directory: Directory) -> dict[str, Json]:
        """For a savepoint, by operator id: where the sources are that the engine reads itself."""


class MemoryCheckpointStorage:
    """Checkpoints that live as long as the process; logs of the driver may be kept in a directory.

    :param last_checkpoint: the checkpoint that the job continues from
    :param unions: the files of union list states, by checkpoint id
    :param keeps_received: whether a job that starts again reads what its receivers have received before
    :param epoch: of the lease on the directory, if another driver may take it over
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
        """A directory below the one given."""
        if self._directory is None or (name == RECEIVED and not self._keeps_received):
            return None
        return str(adopt_directory(self._directory, name, self._epoch))

    def last_checkpoint(self) -> int:
        """The last one noted."""
        return self._last_checkpoint

    def complete(self, checkpoint_id: int) -> None:
        """Note that a checkpoint is complete."""
        self._last_checkpoint = checkpoint_id

    def check(self) -> None:
        """Memory stays."""

    def source_positions(self, checkpoint_id: int, directory: Directory) -> dict[str, Json]:
        """There are no such sources."""
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
