"""Modes of data exchange between the operators of a batch job."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """A hint for exchanges in Flink. Spark decides this itself, so it is stored and has no effect."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
