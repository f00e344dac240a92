"""The snapshot of a stage: what a checkpoint stores besides pages, and its encoding.

An encoded snapshot is a version and a pickle of plain values: dicts, lists, tuples, strings and numbers. It names no
class, so classes can move and change. A field that the writing version did not have gets its default.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.common.errors import CheckpointError
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.exchange.frames import SplitStatus
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.state.changed_classes import adopt_changed_classes
from penstock.runtime.state.operator_state import operator_state_page
from penstock.runtime.state.pages import PageDirectory, PageStore, keyed_state_page, young_page
from penstock.runtime.state.record_types import RecordTypes

__all__ = ["OperatorSnapshot", "SourceStatus", "StageSnapshot", "TaskSnapshot"]

_VERSION = 2
_BARE_PICKLE = 0x80  # version 1 had no version byte: a pickle begins with this byte


@dataclass(slots=True)
class OperatorSnapshot:
    """The part of an operator's state that is always loaded."""

    directory: PageDirectory | None = None
    operator_state: dict[str, str] = field(default_factory=dict)  # name -> mode
    watermark: int = MIN_WATERMARK
    operator_types: dict[str, Any] = field(default_factory=dict)
    records: RecordTypes = field(default_factory=dict)  # dataclasses and named tuples in operator state

    def adopt_classes(self, operator_id: str, operator_name: str, store: PageStore) -> None:
        """Convert operator state to the current definition of its classes: see changed_classes.py."""
        if self.records:
            pages = [operator_state_page(operator_id, name) for name in self.operator_state]
            adopt_changed_classes(self.records, store, pages, operator_name, keyed=False)

    def adopt_classes_of_keyed_state(
        self, operator_id: str, operator_name: str, store: PageStore, more_pages: Iterable[str] = ()
    ) -> None:
        """Convert keyed state to the current definition of its classes."""
        directory = self.directory
        if directory is not None and directory.records:
            pages = [keyed_state_page(operator_id, index) for index in range(directory.page_count)]
            pages += [young_page(operator_id, number) for number in directory.young]
            pages += more_pages
            directory.total_bytes += adopt_changed_classes(directory.records, store, pages, operator_name, keyed=True)


@dataclass(slots=True)
class TaskSnapshot:
    """The clocks of a task's inputs (see `InputClocks.snapshot`), and the snapshots of its operators by operator id."""

    clocks: tuple[Any, ...] | None = None
    operators: dict[str, OperatorSnapshot] = field(default_factory=dict)


@dataclass(slots=True)
class SourceStatus:
    """The status of the sources in the coordinator's last batch header."""

    splits: dict[int, dict[str, SplitStatus]]
    finished: frozenset[int]


@dataclass(slots=True)
class StageSnapshot:
    """The snapshot of one channel of a stage.

    >>> snapshot = StageSnapshot(checkpoint_id=7, incarnation="1f", tasks={2: TaskSnapshot()})
    >>> StageSnapshot.decode(snapshot.encode()) == snapshot
    True
    """

    tasks: dict[int, TaskSnapshot] = field(default_factory=dict)  # by vertex id
    checkpoint_id: int | None = None
    incarnation: str = ""
    """Identifies the start of the job in which these tasks restored the union list states."""
    code_fingerprint: str = ""
    """The fingerprint of the program whose keys were compared with the state."""
    sources: SourceStatus | None = None
    """Stored only for jobs that read DataFrames, whose batches may have no header from the coordinator."""

    @property
    def is_empty(self) -> bool:
        """Whether no batch has run yet."""
        return not self.tasks and not self.incarnation and self.checkpoint_id is None

    def encode(self) -> bytes:
        """Encode the snapshot as bytes."""
        content = {
            "checkpoint_id": self.checkpoint_id,
            "incarnation": self.incarnation,
            "code_fingerprint": self.code_fingerprint,
            "sources": None if self.sources is None else _encode_sources(self.sources),
            "tasks": {
                vertex: {
                    "clocks": task.clocks,
                    "operators": {key: _encode_operator(operator) for key, operator in task.operators.items()},
                }
                for vertex, task in self.tasks.items()
            },
        }
        return bytes([_VERSION]) + pickle.dumps(content, 5)

    @classmethod
    def decode(cls, data: bytes) -> StageSnapshot:
        """Decode a snapshot of this version or an earlier one."""
        if data[0] == _BARE_PICKLE:
            return _decode_version_1(data)
        if data[0] != _VERSION:
            raise CheckpointError(
                f"the checkpoint was written by a newer version of Penstock (its snapshots have format {data[0]}, this "
                f"version reads up to {_VERSION}): update Penstock, or start from a savepoint"
            )
        content = load_stored(data[1:])
        sources = content["sources"]
        return cls(
            {
                vertex: TaskSnapshot(
                    task["clocks"], {key: _decode_operator(operator) for key, operator in task["operators"].items()}
                )
                for vertex, task in content["tasks"].items()
            },
            content["checkpoint_id"],
            content["incarnation"],
            content["code_fingerprint"],
            None if sources is None else _decode_sources(sources),
        )


def _values(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _encode_operator(operator: OperatorSnapshot) -> dict[str, Any]:
    directory = operator.directory
    return {**_values(operator), "directory": None if directory is None else _values(directory)}


def _decode_operator(content: dict[str, Any]) -> OperatorSnapshot:
    directory = content["directory"]
    return OperatorSnapshot(**{**content, "directory": None if directory is None else PageDirectory(**directory)})


def _encode_sources(sources: SourceStatus) -> tuple[Any, ...]:
    splits = {
        vertex: {split: (status.subtask, status.idle, status.finished, status.paused) for split, status in some.items()}
        for vertex, some in sources.splits.items()
    }
    return splits, sorted(sources.finished)


def _decode_sources(content: tuple[Any, ...]) -> SourceStatus:
    splits, finished = content
    return SourceStatus(
        {vertex: {name: SplitStatus(*status) for name, status in some.items()} for vertex, some in splits.items()},
        frozenset(finished),
    )


# -- version 1: a pickled dict, tasks under the ids of their vertices, the rest under negative numbers -------------

_SOURCES, _INCARNATION, _CODE, _CHECKPOINT = -1, -2, -3, -4


def _decode_version_1(data: bytes) -> StageSnapshot:
    content: dict[int, Any] = load_stored(data)
    sources = content.get(_SOURCES)
    return StageSnapshot(
        {
            vertex: TaskSnapshot(clocks, {key: _completed(operator) for key, operator in operators.items()})
            for vertex, (clocks, operators) in ((key, task) for key, task in content.items() if key >= 0)
        },
        content.get(_CHECKPOINT),
        content.get(_INCARNATION, ""),
        content.get(_CODE, ""),
        None if sources is None else SourceStatus(*sources),
    )


def _completed(operator: OperatorSnapshot) -> OperatorSnapshot:
    """Add missing fields: unpickled objects lack the fields that their class did not have when they were written."""
    known = {each.name: getattr(operator, each.name) for each in fields(operator) if hasattr(operator, each.name)}
    directory = known.get("directory")
    if directory is not None:
        present = [each.name for each in fields(directory) if hasattr(directory, each.name)]
        known["directory"] = PageDirectory(**{name: getattr(directory, name) for name in present})
    return OperatorSnapshot(**known)
