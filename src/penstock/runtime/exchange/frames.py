"""Frames: what crosses an exchange. One frame holds many records of one edge from one sender to one channel.

A frame's payload is a list of elements in stream order: `(values, timestamps)` for records, an int for a watermark,
a bool for the idle status. So watermarks keep their exact place between records without frames of their own.
Between table operators, `values` is a column batch (`penstock.runtime.table.batch`) in the place of a list.
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
"""The batch header, sent to every channel of every stage first."""
REPORT_EDGE = -2
"""What tasks tell the driver at the end of a batch."""


@dataclass(slots=True, order=True)
class Frame:
    """A decoded frame head and the still encoded payload. Frames sort in the order they are processed."""

    sequence: int
    edge: int
    origin: str
    payload: bytes = field(compare=False)
    target_level: int = field(compare=False, default=0)

    def elements(self) -> list[Element]:
        """The payload."""
        elements: list[Element] = pickle.loads(self.payload)
        return elements


def encode_frame(edge: int, target_level: int, origin: str, sequence: int, payload: Any, label: str) -> bytes:
    """One frame as bytes."""
    name = origin.encode()
    return _HEAD.pack(edge, target_level, sequence, len(name)) + name + dumps(payload, label)


def decode_frame(data: bytes) -> Frame:
    """The head of a frame; the payload is decoded when it is needed."""
    edge, target_level, sequence, length = _HEAD.unpack_from(data)
    start = _HEAD.size + length
    return Frame(sequence, edge, data[_HEAD.size : start].decode(), data[start:], target_level)


@dataclass(slots=True)
class SplitStatus:
    """A source split as the driver sees it in this batch: the subtask that reads it, and its state."""

    subtask: int
    idle: bool | None = None  # None: the driver does not watch over it, the split itself says so
    finished: bool = False
    paused: bool = False  # it is too far ahead of its alignment group, and not read


@dataclass(slots=True)
class SplitProgress:
    """The event time of a split in an alignment group."""

    watermark: int
    idle: bool = False


@dataclass(slots=True)
class BatchHeader:
    """The facts about a batch that every task needs before the first record."""

    checkpoint_id: int
    now: int
    splits: dict[int, dict[str, SplitStatus]] = field(default_factory=dict)  # source vertex -> split -> status
    finished_sources: frozenset[int] = frozenset()  # source vertices that will never send again
    end_of_input: bool = False  # the last batch of a bounded job
    closing: bool = False  # the job ends with this batch: close user functions
    savepoint: Any = None  # a SavepointRequest: write all state at the end of this batch
    queries: list[Any] = field(default_factory=list)  # StateQuery: to be answered at the end of this batch
    secondary: bool = False  # from a partition of a DataFrame: counts only if the coordinator planned nothing
    # In an engine that takes several steps from one checkpoint to the next:
    checkpoint: bool = True  # state is written at the end of this batch
    step: int = 0  # counts the steps of an attempt; 0 if every batch is a checkpoint
    completed: int = 0  # the checkpoint that has become complete since the last step

    @property
    def number(self) -> int:
        """Counts the batches."""
        return self.step or self.checkpoint_id

    @property
    def completed_checkpoint(self) -> int:
        """The checkpoint to tell operators of; 0 if there is none."""
        return self.completed if self.step else self.checkpoint_id - 1


@dataclass(frozen=True, slots=True)
class Level:
    """The value of a metric that does not add up over time."""

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
    metrics: dict[str, Any]  # what was added to totals in the batch, and levels that changed
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0  # of the frames received, and of those sent
    bytes_out: int = 0
    busy_seconds: float = 0.0  # spent in the task's operators
    state_bytes: int = 0
    written_bytes: int = 0  # of state, in this batch
    savepoint: Any = None  # a TaskPart, if the batch asked for it
    answers: list[Any] = field(default_factory=list)  # StateAnswer, ScanAnswer
    unions: dict[tuple[str, str], list[Any]] = field(default_factory=dict)  # union list states that changed
    splits: dict[tuple[int, str], SplitProgress] = field(default_factory=dict)  # (source vertex, split), if aligned
    output_watermark: int | None = None  # the last one sent to another task in this batch
