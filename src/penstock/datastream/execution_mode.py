"""The execution modes of a job: streaming, batch, automatic."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING runs until cancelled or the input ends; BATCH needs bounded input and emits final results only."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
    """BATCH if all sources are bounded, otherwise STREAMING."""
