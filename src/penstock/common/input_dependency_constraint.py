"""When a task with several inputs is scheduled."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """A scheduling hint in Flink. Spark schedules by stages, so it is stored and has no effect."""

    ANY = 0
    ALL = 1
