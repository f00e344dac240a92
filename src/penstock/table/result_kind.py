"""The kinds of results of a statement."""

from __future__ import annotations

from enum import Enum

__all__ = ["ResultKind"]


class ResultKind(Enum):
    """SUCCESS has no rows, SUCCESS_WITH_CONTENT has rows."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
