"""Union list state after a failure: every subtask receives the elements of all subtasks (rule 3.8).

In a savepoint, the parts of all subtasks are together. Between savepoints, each part is in the pages of its own
channel, where other channels cannot read it. Therefore tasks report changed union state to the driver, the driver
stores all parts in a file per checkpoint with changes, and a restarted job receives them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.common.errors import CheckpointError
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.state.operator_state import UnionPart
from penstock.runtime.storage.checked_file import seal, unseal

__all__ = ["UnionFiles", "UnionStart", "UnionStates"]

_KEPT = 2  # the file of the last commit, and of the batch that is being committed
_VERSION = 2
_BARE_PICKLE = 0x80  # version 1 had no version byte, and pickled the parts as they are

Parts = dict[tuple[str, str], dict[int, list[Any]]]
"""The elements of each subtask, by operator id and state name."""


@dataclass(frozen=True, slots=True)
class UnionStart:
    """The union states at the start of a job. Each task restores them once."""

    states: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """By operator id and state name: the elements of all subtasks."""
    incarnation: str = ""
    """Identifies this start."""


class UnionFiles(Protocol):
    """Stores the files, at most one per checkpoint."""

    def checkpoints(self) -> list[int]:
        """Return the checkpoint ids, in any order."""

    def read(self, checkpoint_id: int) -> bytes:
        """Read the union states of a checkpoint."""

    def write(self, checkpoint_id: int, content: bytes) -> None:
        """Write the union states of a checkpoint, atomically."""

    def remove(self, checkpoint_id: int) -> None:
        """Remove a file, if it exists."""


class UnionStates:
    """The union list states of a job, on the driver."""

    def __init__(self, vertices: list[JobVertex], files: UnionFiles | None = None) -> None:
        self._parallelism = {c.operator_id: vertex.parallelism for vertex in vertices for c in vertex.operators}
        self._files = files
        self._parts: Parts = {}
        self._begun = False

    def begin(self, committed: int) -> UnionStart:
        """Start or restart the job after a checkpoint."""
        self._load(committed)
        return self.restart()

    def restart(self) -> UnionStart:
        """Restart the job with the known states."""
        states: dict[str, dict[str, list[Any]]] = {}
        for (operator_id, name), parts in self._parts.items():
            together = [element for _, part in sorted(parts.items()) for element in part]
            states.setdefault(operator_id, {})[name] = together
            for subtask in range(self._parallelism.get(operator_id, 0)):
                parts[subtask] = together
        self._begun = bool(states)
        return UnionStart(states, os.urandom(8).hex())

    def batch(self, reports: list[TaskReport], checkpoint_id: int) -> None:
        """Store the states that tasks report, durably, before the batch is committed."""
        changed, self._begun = self._begun, False
        for report in reports:
            for key, elements in report.unions.items():
                self._parts.setdefault(key, {})[report.subtask] = elements
                changed = True
        if self._files is None:
            return
        if changed:
            self._files.write(checkpoint_id, seal(_encode(self._parts)))
            for old in sorted(i for i in self._files.checkpoints() if i <= checkpoint_id)[:-_KEPT]:
                self._files.remove(old)

    @property
    def parts(self) -> Parts:
        """The parts of all subtasks."""
        return self._parts

    @parts.setter
    def parts(self, parts: Parts) -> None:
        self._parts = parts

    def _load(self, committed: int) -> None:
        if self._files is None:
            return
        self._parts = {}
        known = self._files.checkpoints()
        for uncommitted in [number for number in known if number > committed]:
            self._files.remove(uncommitted)  # written by an uncommitted run of a batch
        newest = max((number for number in known if number <= committed), default=None)
        if newest is None:
            return
        data = unseal(self._files.read(newest), f"the file of union list states of checkpoint {newest}")
        try:
            self._parts = _decode(data)
        except Exception as error:
            raise CheckpointError(f"the union list states of checkpoint {newest} cannot be read: {error}") from error


def _encode(parts: Parts) -> bytes:
    """Encode the parts as plain values. Elements stored by a very old version are not in parts, and are kept."""
    content = {
        key: {
            subtask: [(p.blob, p.records) if isinstance(p, UnionPart) else (None, p) for p in elements]
            for subtask, elements in subtasks.items()
        }
        for key, subtasks in parts.items()
    }
    return bytes([_VERSION]) + dumps(content, "union list state")


def _decode(data: bytes) -> Parts:
    if data[0] == _BARE_PICKLE:
        parts: Parts = load_stored(data)
        return parts
    if data[0] != _VERSION:
        raise CheckpointError(f"they have format {data[0]}, this version of Penstock reads up to {_VERSION}")
    return {
        key: {
            subtask: [other if blob is None else UnionPart(blob, other) for blob, other in elements]
            for subtask, elements in subtasks.items()
        }
        for key, subtasks in load_stored(data[1:]).items()
    }
