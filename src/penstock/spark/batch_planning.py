"""Spark's planning of batches: its calls become steps of the checkpoint coordinator.

`StreamingPlanning` serves a streaming query, which asks for one offset after the other. `WholeInput` serves a batch
job, which has only one batch.
"""

from __future__ import annotations

import json
import pickle
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import CheckpointError
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch, CheckpointCoordinator
from penstock.runtime.exchange.frames import BatchHeader
from penstock.runtime.plan.offset import Offset
from penstock.runtime.records.serialization import dumps
from penstock.runtime.source.source_stage import SourceWork
from penstock.runtime.task.stage import encode_header

__all__ = ["Portion", "StreamingPlanning", "WholeInput"]

SealedOffset = dict[str, Any]
"""An offset as JSON, with a checksum."""

_SMALL_BATCH = 4_000
_POLL_SECONDS = 0.005
_LONG_POLL_SECONDS = 0.25
_SEAL, _EPOCH = "crc", "epoch"


@dataclass(slots=True)
class Portion:
    """The work of one Spark task. The user's split classes stay pickled until it runs."""

    header: bytes | None
    """A frame for every channel, only in the first portion."""
    assignments: list[tuple[int, int, bytes]]
    """Vertex, subtask, and a pickled (SourceWork, BatchHeader)."""

    @classmethod
    def of(cls, assignments: list[SourceWork], header: BatchHeader, *, first: bool) -> Portion:
        """Pack work into a portion."""
        packed = [(work.vertex, work.subtask, dumps((work, header), "a split")) for work in assignments]
        return cls(encode_header(header) if first else None, packed)


class StreamingPlanning:
    """Plans the batches of a streaming query.

    Spark asks for the next offset when the previous batch is durable, and logs the answer before it runs the batch.
    """

    def __init__(self, checkpoints: CheckpointCoordinator, max_partitions: int) -> None:
        self._checkpoints = checkpoints
        self._max_partitions = max_partitions
        self._first = True
        self.last_batch_complete = threading.Event()
        """Set when Spark asks for another batch after the last one of this attempt: all earlier batches are durable."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Answer the planning process."""
        match method:
            case "initial":
                return seal(self._checkpoints.sources.initial_offset)
            case "latest":
                return self._latest(*arguments)
            case "partitions":
                return self._partitions(*arguments)
        raise ValueError(f"unknown call: {method}")

    def _latest(self, sealed_start: SealedOffset) -> SealedOffset:
        """Return the end of the next batch, or the same offset if there is nothing to do for a while."""
        start, checkpoints = unseal(sealed_start), self._checkpoints
        final = checkpoints.stopping or start.is_last
        checkpoints.complete(start)
        deadline = time.monotonic() + _LONG_POLL_SECONDS
        while not (checkpoints.stopping or start.is_last):
            end = checkpoints.plan(start)
            if end is not None:
                return seal(end, checkpoints.fence.epoch)
            if time.monotonic() >= deadline:
                return sealed_start
            checkpoints.sources.wait_for_change(_POLL_SECONDS)
        if not final:
            checkpoints.complete(start)  # sinks must know that there will be no further checkpoint
        self.last_batch_complete.set()
        return sealed_start

    def _partitions(self, sealed_start: SealedOffset, sealed_end: SealedOffset) -> list[bytes]:
        if sealed_start == sealed_end:
            return []
        batch = self._checkpoints.begin(unseal(sealed_start), unseal(sealed_end))
        # A subtask stays in the worker that reads it first, so the first batch is spread over all workers.
        spread, self._first = self._first, False
        return portions(batch, self._max_partitions, spread=spread)


class WholeInput:
    """Serves the one batch of a batch job.

    :param batch: plans the batch, or returns the planned one
    """

    def __init__(self, batch: Callable[[], Batch], max_partitions: int) -> None:
        self._batch = batch
        self._max_partitions = max_partitions

    def call(self, method: str, *arguments: Any) -> Any:
        """Answer the planning process."""
        if method != "everything":
            raise ValueError(f"unknown call: {method}")
        return portions(self._batch(), self._max_partitions, spread=True)


def portions(batch: Batch, limit: int, *, spread: bool) -> list[bytes]:
    """Return the portions of a batch, pickled."""
    divided = split_works(batch.assignments, limit, spread=spread)
    return [pickle.dumps(Portion.of(w, batch.header, first=index == 0), 5) for index, w in enumerate(divided)]


def split_works(assignments: list[SourceWork], limit: int, *, spread: bool) -> list[list[SourceWork]]:
    """Divide work among tasks. A small batch is not worth more than one task, unless it should be spread."""
    if not spread and sum(map(_size, assignments)) <= _SMALL_BATCH:
        return [assignments]
    divided: list[list[SourceWork]] = [[] for _ in range(max(1, min(limit, len(assignments))))]
    for index, work in enumerate(assignments):
        divided[index % len(divided)].append(work)
    return divided


def _size(work: SourceWork) -> float:
    """Estimate how many records a task reads. Assume many if the offsets are not numbers."""
    total = 0.0
    for portion in work.ranges:
        if type(portion.start) is int and type(portion.end) is int:
            total += (portion.end - portion.start) / portion.readers
        else:
            return _SMALL_BATCH + 1
    return total


def seal(offset: Offset, epoch: int = 0) -> SealedOffset:
    """Return an offset as Spark logs it, with a checksum: a changed digit would still be a valid position.

    The epoch identifies the driver that planned it.

    >>> unseal(seal(Offset(7), epoch=3)) == Offset(7)
    True
    """
    content = {**offset.to_json(), _EPOCH: epoch} if epoch else offset.to_json()
    return {**content, _SEAL: _checksum(content)}


def unseal(sealed: SealedOffset) -> Offset:
    """Return an offset from Spark's log, or raise an error if it has changed."""
    content = {key: value for key, value in sealed.items() if key != _SEAL}
    if sealed.get(_SEAL) != _checksum(content):
        number = content.get("checkpoint", content.get("n"))
        raise CheckpointError(
            f"the offset of batch {number} in the checkpoint is damaged: it does not match its checksum. Restore the "
            "file, or start from a savepoint with an empty checkpoint directory"
        )
    return Offset.from_json(content)


def _checksum(content: SealedOffset) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
