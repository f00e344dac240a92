"""The guarantees of a checkpoint."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """State always counts every record exactly once here; AT_LEAST_ONCE is accepted and gives no less."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
