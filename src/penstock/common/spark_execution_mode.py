"""The execution modes of a streaming job on Spark."""

from __future__ import annotations

from enum import Enum

from penstock.common.errors import InvalidProgramError

__all__ = ["EXECUTION_MODE", "SparkExecutionMode"]

EXECUTION_MODE = "penstock.execution.mode"
"""The configuration key."""


class SparkExecutionMode(Enum):
    """The execution mode of a streaming job on Spark.

    >>> SparkExecutionMode.parse("Continuous")
    <SparkExecutionMode.CONTINUOUS: 'continuous'>
    """

    MICRO_BATCH = "micro-batch"
    """One streaming query. Every micro-batch is a checkpoint."""
    CONTINUOUS = "continuous"
    """One barrier stage with tasks that live as long as the job. Latency is milliseconds."""

    @classmethod
    def parse(cls, text: str) -> SparkExecutionMode:
        """Return the mode with this name."""
        try:
            return cls(text.strip().lower().replace("_", "-"))
        except ValueError:
            names = " or ".join(mode.value for mode in cls)
            raise InvalidProgramError(f"{EXECUTION_MODE} is {text!r}: use {names}") from None
