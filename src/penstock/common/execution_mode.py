"""Modes of data exchange between the operators of a batch job."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """A hint Flink takes for exchanges; Spark decides this by itself, so it is kept and has no effect."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
