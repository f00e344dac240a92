"""SQL dialects."""

from __future__ import annotations

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """DEFAULT is Flink's own; HIVE is not supported."""

    DEFAULT = 0
    HIVE = 1
