"""The details that EXPLAIN can add to a plan."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExplainDetail"]


class ExplainDetail(Enum):
    """The arguments of `explain`. Here, a plan always shows changelog modes."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
