"""Checkpointing modes."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee for state. State always counts each record exactly once here, even with AT_LEAST_ONCE."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
