"""The manifests of checkpoints in the continuous mode.

When all tasks have written their state, a manifest completes the checkpoint. It is written atomically, and names all
files of the checkpoint.

Names contain the epoch of the driver and the number of the attempt, so a replaced driver or task never writes a file
that its successor uses. The manifest with the highest epoch counts: a driver that takes over first writes the last
checkpoint under its own epoch. A manifest that the previous driver writes after that is never read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from penstock.common.errors import CheckpointError, SavepointError
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.runtime.storage.checked_file import seal, unseal
from penstock.spark.continuous.state_files import StateFile

__all__ = ["CheckpointFiles", "Manifest"]

_MANIFEST = "manifest"
_VERSION = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete checkpoint."""

    checkpoint_id: int
    epoch: int
    offset: Offset
    tasks: dict[int, list[StateFile]]
    """The files of every task, oldest first."""

    @property
    def names(self) -> set[str]:
        """Return the names of all its files."""
        return {file.name for files in self.tasks.values() for file in files} | {self.name}

    @property
    def name(self) -> str:
        """The name of the manifest."""
        return f"{_MANIFEST}-{self.epoch}-{self.checkpoint_id}"

    def encode(self) -> bytes:
        """Encode the manifest."""
        content = {
            "version": _VERSION,
            "checkpoint": self.checkpoint_id,
            "epoch": self.epoch,
            "offset": self.offset.to_json(),
            "tasks": {str(task): [asdict(file) for file in files] for task, files in self.tasks.items()},
        }
        return seal(json.dumps(content).encode())

    @classmethod
    def decode(cls, data: bytes, where: str) -> Manifest:
        """Decode a manifest."""
        content: dict[str, Any] = json.loads(unseal(data, where))
        if content["version"] > _VERSION:
            raise CheckpointError(
                f"{where} was written by a newer version of Penstock (its format is {content['version']}, this version "
                f"reads up to {_VERSION}): update Penstock, or start from a savepoint"
            )
        if content["version"] < _VERSION:
            raise CheckpointError(
                f"{where} was written by an early version of the continuous mode, whose checkpoints are no longer "
                "supported: start from a savepoint with an empty checkpoint directory"
            )
        return cls(
            content["checkpoint"],
            content["epoch"],
            Offset.from_json(content["offset"]),
            {int(task): [StateFile(**file) for file in files] for task, files in content["tasks"].items()},
        )


class CheckpointFiles:
    """The directory of checkpoints. Tasks write state files, and the driver writes manifests."""

    def __init__(self, location: str, *, epoch: int = 0, retained: int = 1) -> None:
        self.location = location
        self._epoch = epoch
        self._retained = max(1, retained)
        self._directory: Directory = directory_at(location)
        self._complete: list[Manifest] = []

    def last(self) -> Manifest | None:
        """Return the last complete checkpoint."""
        numbers = [_numbers(name) for name in self._directory.files() if name.startswith(f"{_MANIFEST}-")]
        newest = max((number for number in numbers if number is not None), default=None)
        return None if newest is None else self._manifest(*newest)

    def _manifest(self, epoch: int, checkpoint_id: int) -> Manifest:
        name = f"{_MANIFEST}-{epoch}-{checkpoint_id}"
        return Manifest.decode(self._read(name), f"the file {name} in checkpoint {self.location}")

    def adopt(self) -> Manifest | None:
        """Take over: return the last complete checkpoint under the epoch of this driver, and remove unused files."""
        found = self.last()
        if found is not None and found.epoch != self._epoch:
            found = Manifest(found.checkpoint_id, self._epoch, found.offset, found.tasks)
            self._write(found)
        self._complete = [] if found is None else [found]
        needed = set() if found is None else found.names
        for name in self._directory.files():
            if name not in needed:
                self._directory.remove(name)
        return found

    def complete(self, checkpoint_id: int, offset: Offset, tasks: dict[int, list[StateFile]]) -> Manifest:
        """Complete the checkpoint: all tasks have written their state."""
        manifest = Manifest(checkpoint_id, self._epoch, offset, dict(sorted(tasks.items())))
        self._write(manifest)
        self._complete.append(manifest)
        while len(self._complete) > self._retained:
            old = self._complete.pop(0)
            for name in old.names - set().union(*(kept.names for kept in self._complete)):
                with suppress(SavepointError, OSError):  # the next driver removes it
                    self._directory.remove(name)
        return manifest

    def _write(self, manifest: Manifest) -> None:
        with self._directory.create(manifest.name) as stream:
            stream.write(manifest.encode())

    def _read(self, name: str) -> bytes:
        try:
            with self._directory.open(name) as stream:
                return stream.read()
        except (SavepointError, OSError) as error:
            raise CheckpointError(
                f"cannot read the file {name} of checkpoint {self.location} ({error}): restore it, or start from a "
                "savepoint with an empty checkpoint directory"
            ) from error


def _numbers(name: str) -> tuple[int, int] | None:
    """Return epoch and checkpoint from the name of a manifest."""
    _, *numbers = name.split("-")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])
