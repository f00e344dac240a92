"""An offset: everything that is needed to plan a batch again.

A batch is the step from one offset to the next. An engine logs the offset before it runs the batch, so a batch that is
replayed after a failure reads the same ranges at the same processing time.

The log holds JSON::

    {
        "version": 2,
        "checkpoint": 7,
        "time": 1700000000000,
        "last": false,
        "splits": {source: {split: [offset, state, subtask]}},
        "more": [source],
        "starts": {source: {split: offset}},
        "alignment": {source: {split: [watermark, paused]}},
    }

A source is identified by its operator id. Empty parts of the last lines are left out. Version 1 had no version field;
its keys were n, t, end, s, more, f and w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from penstock.common.errors import CheckpointError

__all__ = ["Offset", "SplitPosition", "SplitState"]

Json = dict[str, Any]

_VERSION = 2


class SplitState(IntEnum):
    """The state of a split. It is FINISHED in the batch that reads it to its end, and GONE afterwards."""

    ACTIVE = 0
    IDLE = 1
    FINISHED = 2
    GONE = 3

    @property
    def is_finished(self) -> bool:
        """Whether the split has been read to its end."""
        return self >= SplitState.FINISHED


@dataclass(frozen=True, slots=True)
class SplitPosition:
    """The position up to which a split is read."""

    offset: Any
    """The source's own position. None if only the source knows it, and no longer lists the split."""
    state: SplitState = SplitState.ACTIVE
    subtask: int | None = None
    """The subtask that reads the split. None if it is not assigned yet, for instance after a savepoint."""


Positions = dict[str, dict[str, SplitPosition]]
"""By source and split."""


@dataclass(frozen=True, slots=True)
class Offset:
    """The positions of a job's sources at the end of a batch.

    >>> offset = Offset(7, 1_700_000_000_000, splits={"source": {"0": SplitPosition(25, subtask=1)}})
    >>> offset.to_json()["splits"]
    {'source': {'0': [25, 0, 1]}}
    >>> Offset.from_json(offset.to_json()) == offset
    True
    >>> Offset.from_json({"n": 7, "t": 1_700_000_000_000, "end": False, "s": {"source": {"0": [25, 0, 1]}}}) == offset
    True
    """

    checkpoint_id: int = 0
    """The checkpoint that the batch completes."""
    processing_time: int = 0
    """The processing time of the batch in milliseconds."""
    is_last: bool = False
    """Whether the job ends with the batch."""
    splits: Positions = field(default_factory=dict)
    more: tuple[str, ...] = ()
    """Sources that have splits which are not listed yet."""
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where the new splits of the batch begin, by source and split."""
    alignment: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """For aligned sources, by source and split: the watermark before the batch, and whether the split is paused."""

    def of_source(self, source: str) -> dict[str, SplitPosition]:
        """Return the positions of one source's splits."""
        return self.splits.get(source, {})

    def to_json(self) -> Json:
        """Return the offset as it is logged."""
        content: Json = {
            "version": _VERSION,
            "checkpoint": self.checkpoint_id,
            "time": self.processing_time,
            "last": self.is_last,
            "splits": {
                source: {split: [at.offset, int(at.state), at.subtask] for split, at in positions.items()}
                for source, positions in self.splits.items()
            },
        }
        optional = {"more": list(self.more), "starts": self.starts, "alignment": self.alignment}
        return {**content, **{key: value for key, value in optional.items() if value}}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Offset:
        """Create an offset from the log of this version or an earlier one."""
        version = content.get("version", 1)
        if version > _VERSION:
            raise CheckpointError(
                f"the offset of checkpoint {content.get('checkpoint')} was written by a newer version of Penstock (its "
                f"format is {version}, this version reads up to {_VERSION}): update Penstock, or start from a savepoint"
            )
        if version == 1:
            names = {"n": "checkpoint", "t": "time", "end": "last", "s": "splits", "f": "starts", "w": "alignment"}
            content = {names.get(key, key): value for key, value in content.items()}
        return cls(
            content["checkpoint"],
            content["time"],
            bool(content["last"]),
            {
                source: {split: _position(*position) for split, position in positions.items()}
                for source, positions in content["splits"].items()
            },
            tuple(content.get("more", ())),
            content.get("starts", {}),
            content.get("alignment", {}),
        )


def _position(offset: Any, state: int, subtask: int | None = None) -> SplitPosition:
    return SplitPosition(offset, SplitState(state), subtask)
