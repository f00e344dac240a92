"""The receive log: what a source without memory of its own has received, kept until it is processed for good.

Sockets and hand-written source functions cannot be asked again. What they deliver is appended to files on the driver
before a batch that reads it is planned; after a crash the batch is read from the files (spec: ch. 8, resettable
sources). Positions count elements from the beginning of the job.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
from pathlib import Path
from typing import Any

from penstock.runtime.serialization import dumps

_SEGMENT_ELEMENTS = 50_000


class ReceiveLog:
    """Elements received so far: the tail in memory, everything not yet committed in segment files.

    >>> log = ReceiveLog(None)
    >>> log.extend(["a", "b"])
    >>> log.seal(0, 10)
    2
    >>> log.read(0, 2)
    ['a', 'b']
    >>> log.close()
    """

    def __init__(self, directory: str | None) -> None:
        self._owned = tempfile.TemporaryDirectory(prefix="penstock-received-") if directory is None else None
        self._directory = Path(self._owned.name if self._owned is not None else directory)  # type: ignore[arg-type]
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Condition()
        self._waiting: list[Any] = []
        self._segments: dict[int, list[Any]] = {}
        for path in sorted(self._directory.glob("*.log")):
            start = int(path.stem)
            self._segments[start] = pickle.loads(path.read_bytes())
        self._end = max((start + len(part) for start, part in self._segments.items()), default=0)

    def append(self, element: Any) -> None:
        """Receive one element."""
        with self._lock:
            self._waiting.append(element)

    def extend(self, elements: list[Any]) -> None:
        """Receive several elements."""
        with self._lock:
            self._waiting.extend(elements)

    def seal(self, start: int, limit: int) -> int:
        """Make up to `limit` elements behind `start` durable; returns the position behind the last of them."""
        with self._lock:
            self._end = max(self._end, start)
            already = self._end - start
            room = min(limit - already, len(self._waiting), _SEGMENT_ELEMENTS)
            if room > 0:
                segment, self._waiting = self._waiting[:room], self._waiting[room:]
                temporary = self._directory / f"{self._end:020d}.tmp"
                temporary.write_bytes(dumps(segment, "what a source received"))
                temporary.rename(self._directory / f"{self._end:020d}.log")
                self._segments[self._end] = segment
                self._end += room
            return min(self._end, start + limit)

    def read(self, start: int, end: int) -> list[Any]:
        """The elements from one position to another."""
        with self._lock:
            elements: list[Any] = []
            for first in sorted(self._segments):
                part = self._segments[first]
                if first < end and first + len(part) > start:
                    elements += part[max(0, start - first) : end - first]
            return elements

    def truncate(self, position: int) -> None:
        """Everything before this position is processed for good."""
        with self._lock:
            for first in [f for f, part in self._segments.items() if f + len(part) <= position]:
                del self._segments[first]
                (self._directory / f"{first:020d}.log").unlink(missing_ok=True)

    @property
    def pending(self) -> int:
        """Elements received but not yet in a batch."""
        return len(self._waiting)

    @property
    def end(self) -> int:
        """Position behind the last durable element."""
        return self._end

    def close(self) -> None:
        """Remove a log nobody asked to keep."""
        if self._owned is not None:
            self._owned.cleanup()
