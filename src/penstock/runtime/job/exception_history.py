"""The exceptions of a job: every failure that restarted it, and the one that ended it."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

KEPT = 16
"""The number of entries to keep, like `web.exception-history-size` in Flink."""


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """One failure. The time is in epoch milliseconds."""

    name: str
    message: str
    timestamp: int
    operator: str | None = None
    """The operator that failed, if known, and its subtask."""
    subtask: int | None = None


class ExceptionHistory:
    """The last failures of a job.

    >>> history = ExceptionHistory()
    >>> history.add(ValueError("bad record"), 5)
    >>> [(entry.name, entry.message) for entry in history.newest_first()]
    [('builtins.ValueError', 'bad record')]
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._entries: deque[ExceptionEntry] = deque(maxlen=kept)
        self.total = 0

    def add(self, error: BaseException, time_ms: int | None = None) -> None:
        """Add a failure."""
        now = int(time.time() * 1000) if time_ms is None else time_ms
        kind = type(error)
        name = f"{kind.__module__}.{kind.__qualname__}"
        operator, subtask = getattr(error, "operator_name", None), getattr(error, "subtask", None)
        self._entries.append(ExceptionEntry(name, str(error), now, operator, subtask))
        self.total += 1

    @property
    def truncated(self) -> bool:
        """Whether older entries have been dropped."""
        return self.total > len(self._entries)

    def newest_first(self) -> list[ExceptionEntry]:
        """Return all entries."""
        return list(reversed(self._entries))
