"""Frames: the unit of an exchange. One frame contains many records of one edge from one sender to one channel.

A frame's payload is a list of elements in stream order: `(values, timestamps)` for records, an int for a watermark, a
bool for the idle status. Watermarks therefore keep their exact place between records without separate frames. Between
table operators, `values` is a column batch (`penstock.runtime.table.batch`) instead of a list.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field
from typing import Any

from penstock.runtime.records.serialization import dumps

Element = tuple[list[Any], list[Any] | None] | int | bool

_HEAD = struct.Struct("<iiiH")

HEADER_EDGE = -1
"""The batch header, which every channel of every stage receives first."""
REPORT_EDGE = -2
"""The reports of tasks to the driver at the end of a batch."""


@dataclass(slots=True, order=True)
class Frame:
    """A decoded frame head with a payload that is still encoded. Frames sort in processing order."""

    sequence: int
    edge: int
    origin: str
    payload: bytes = field(compare=False)
    target_level: int = field(compare=False, default=0)

    def elements(self) -> list[Element]:
        """Decode the payload."""
        elements: list[Element] = pickle.loads(self.payload)
        return elements


def encode_frame(edge: int, target_level: int, origin: str, sequence: int, payload: Any, label: str) -> bytes:
    """Encode a frame as bytes."""
    name = origin.encode()
    return _HEAD.pack(edge, target_level, sequence, len(name)) + name + dumps(payload, label)


def decode_frame(data: bytes) -> Frame:
    """Decode the head of a frame. The payload is decoded on demand."""
    edge, target_level, sequence, length = _HEAD.unpack_from(data)
    start = _HEAD.size + length
    return Frame(sequence, edge, data[_HEAD.size : start].decode(), data[start:], target_level)


@dataclass(slots=True)
class SplitStatus:
    """A source split from the driver's view in this batch: the subtask that reads it, and its state."""

    subtask: int
    idle: bool | None = None  # None: the split reports its own idleness, without the driver
    finished: bool = False
    paused: bool = False  # too far ahead of its alignment group, so not read


@dataclass(slots=True)
class SplitProgress:
    """The event time of a split in an alignment group."""

    watermark: int
    idle: bool = False


@dataclass(slots=True)
class BatchHeader:
    """What every task must know about a batch before the first record."""

    checkpoint_id: int
    now: int
    splits: dict[int, dict[str, SplitStatus]] = field(default_factory=dict)  # source vertex -> split -> status
    finished_sources: frozenset[int] = frozenset()  # source vertices that will not send again
    end_of_input: bool = False  # the last batch of a bounded job
    closing: bool = False  # the job ends with this batch: close user functions
    savepoint: Any = None  # a SavepointRequest: write all state at the end of this batch
    queries: list[Any] = field(default_factory=list)  # StateQuery: to answer at the end of this batch
    secondary: bool = False  # from a partition of a DataFrame: counts only if the coordinator planned nothing
    # In an engine that takes several steps per checkpoint:
    checkpoint: bool = True  # state is written at the end of this batch
    step: int = 0  # number of the step in its attempt; 0 if every batch is a checkpoint
    completed: int = 0  # the checkpoint that has become complete since the last step

    @property
    def number(self) -> int:
        """The number of the batch."""
        return self.step or self.checkpoint_id

    @property
    def completed_checkpoint(self) -> int:
        """The completed checkpoint to notify operators of, or 0."""
        return self.completed if self.step else self.checkpoint_id - 1


@dataclass(frozen=True, slots=True)
class Level:
    """The value of a metric that is not a total."""

    value: Any


@dataclass(slots=True)
class TaskReport:
    """The report of a task to the driver at the end of a batch."""

    vertex: int
    subtask: int
    name: str
    watermark: int
    next_wakeup: int | None
    committables: list[tuple[str, list[Any]]]  # (sink operator id, committables)
    metrics: dict[str, Any]  # additions to totals in the batch, and changed levels
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0  # of the frames received and sent
    bytes_out: int = 0
    busy_seconds: float = 0.0  # spent in the task's operators
    state_bytes: int = 0
    written_bytes: int = 0  # of state, in this batch
    savepoint: Any = None  # a TaskPart, if the batch requested it
    answers: list[Any] = field(default_factory=list)  # StateAnswer, ScanAnswer
    unions: dict[tuple[str, str], list[Any]] = field(default_factory=dict)  # union list states that changed
    splits: dict[tuple[int, str], SplitProgress] = field(default_factory=dict)  # (source vertex, split), if aligned
    output_watermark: int | None = None  # the last one sent to another task in this batch
