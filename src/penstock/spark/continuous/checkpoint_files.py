"""The files of checkpoints in the continuous mode.

Every task writes one file for each checkpoint: the pages that have changed since the one before, or now and then all of
them. A manifest, written last and in one step, names the files that make up the checkpoint. It is what completes it.

Names carry the epoch of the driver and the number of the attempt, so a driver or a task that was replaced never writes
a file that its successor uses. The manifest with the highest epoch counts: a driver that takes over first writes the
last checkpoint under its own epoch. A manifest that the previous driver still writes after that is never read.
"""

from __future__ import annotations

import json
import pickle
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.common.errors import CheckpointError, SavepointError
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.runtime.storage.checked_file import seal, unseal

__all__ = ["CheckpointFiles", "LevelState", "Manifest", "StateFile", "write_state"]

_MANIFEST = "manifest"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that a task has written for one checkpoint."""

    name: str
    size: int
    checksum: int
    whole: bool
    """Whether it has all state of the task, so that files before it are not needed."""


@dataclass(slots=True)
class LevelState:
    """The state of one stage in one channel, or how it has changed."""

    pages: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    snapshot: bytes = b""

    def apply(self, change: LevelState) -> None:
        """Add what has changed since."""
        for page_id in change.removed:
            self.pages.pop(page_id, None)
        self.pages.update(change.pages)
        self.snapshot = change.snapshot


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
        """The names of all its files."""
        return {file.name for files in self.tasks.values() for file in files} | {self.name}

    @property
    def name(self) -> str:
        """Of the manifest itself."""
        return f"{_MANIFEST}-{self.epoch}-{self.checkpoint_id}"

    def encode(self) -> bytes:
        """As it is written."""
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
        """Read a manifest."""
        content: dict[str, Any] = json.loads(unseal(data, where))
        if content["version"] > _VERSION:
            raise CheckpointError(
                f"{where} was written by a newer version of Penstock (its format is {content['version']}, this version "
                f"reads up to {_VERSION}): update Penstock, or start from a savepoint"
            )
        return cls(
            content["checkpoint"],
            content["epoch"],
            Offset.from_json(content["offset"]),
            {int(task): [StateFile(**file) for file in files] for task, files in content["tasks"].items()},
        )


def write_state(
    location: str, name: str, checkpoint_id: int, task: int, levels: dict[int, LevelState], *, whole: bool
) -> StateFile:
    """Write what a task keeps with a checkpoint; returns what the manifest says about it."""
    content = {
        "checkpoint": checkpoint_id,
        "task": task,
        "levels": {level: (state.pages, sorted(state.removed), state.snapshot) for level, state in levels.items()},
    }
    data = pickle.dumps(content, 5)
    try:
        with directory_at(location).create(name) as stream:
            stream.write(data)
    except SavepointError as error:
        raise CheckpointError(f"task {task} cannot write checkpoint {checkpoint_id}: {error}") from error
    return StateFile(name, len(data), zlib.crc32(data), whole)


class CheckpointFiles:
    """The directory that checkpoints are in; the driver writes manifests, tasks read and write their own files."""

    def __init__(self, location: str, *, epoch: int = 0, retained: int = 1) -> None:
        self.location = location
        self._epoch = epoch
        self._retained = max(1, retained)
        self._directory: Directory = directory_at(location)
        self._complete: list[Manifest] = []

    def last(self) -> Manifest | None:
        """The last complete checkpoint."""
        numbers = [_numbers(name) for name in self._directory.files() if name.startswith(f"{_MANIFEST}-")]
        newest = max((number for number in numbers if number is not None), default=None)
        return None if newest is None else self._manifest(*newest)

    def _manifest(self, epoch: int, checkpoint_id: int) -> Manifest:
        name = f"{_MANIFEST}-{epoch}-{checkpoint_id}"
        return Manifest.decode(self._read(name), f"the file {name} in checkpoint {self.location}")

    def adopt(self) -> Manifest | None:
        """Take over: the last complete checkpoint, under the epoch of this driver. Removes what is of no use."""
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

    def complete(self, checkpoint_id: int, offset: Offset, written: dict[int, StateFile]) -> Manifest:
        """All tasks have written their state: complete the checkpoint."""
        before = self._complete[-1].tasks if self._complete else {}
        tasks = {
            task: [file] if file.whole else [*before.get(task, ()), file] for task, file in sorted(written.items())
        }
        manifest = Manifest(checkpoint_id, self._epoch, offset, tasks)
        self._write(manifest)
        self._complete.append(manifest)
        while len(self._complete) > self._retained:
            old = self._complete.pop(0)
            for name in old.names - set().union(*(kept.names for kept in self._complete)):
                with suppress(SavepointError, OSError):  # the next driver removes it
                    self._directory.remove(name)
        return manifest

    def load(self, task: int, files: list[StateFile]) -> dict[int, LevelState]:
        """The state of a task, by level."""
        levels: dict[int, LevelState] = {}
        for file in files:
            data = self._read(file.name)
            if len(data) != file.size or zlib.crc32(data) != file.checksum:
                raise self._damaged(file.name)
            content = pickle.loads(data)  # plain values: pages and snapshots are decoded by those who know them
            if content["task"] != task:
                raise self._damaged(file.name)
            for level, (pages, removed, snapshot) in content["levels"].items():
                change = LevelState(pages, set(removed), snapshot)
                if file.whole or level not in levels:
                    levels[level] = change
                else:
                    levels[level].apply(change)
        return levels

    def _damaged(self, name: str) -> CheckpointError:
        return CheckpointError(
            f"the file {name} in checkpoint {self.location} is damaged (it does not match its checksum): put it back "
            "as it was, or start from a savepoint with an empty checkpoint directory"
        )

    def _write(self, manifest: Manifest) -> None:
        with self._directory.create(manifest.name) as stream:
            stream.write(manifest.encode())

    def _read(self, name: str) -> bytes:
        try:
            with self._directory.open(name) as stream:
                return stream.read()
        except (SavepointError, OSError) as error:
            raise CheckpointError(
                f"cannot read the file {name} of checkpoint {self.location} ({error}): put it back, or start from a "
                "savepoint with an empty checkpoint directory"
            ) from error


def _numbers(name: str) -> tuple[int, int] | None:
    """Epoch and checkpoint in the name of a manifest."""
    _, *numbers = name.split("-")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])
