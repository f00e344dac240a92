"""The receive log: elements received from a source that cannot be read again, kept until they are fully processed.

Sockets and hand-written source functions cannot be read again. The driver appends what they deliver to files before it
plans a batch that reads it. After a crash, the batch is read from the files (rules L01, L08). Positions count elements
from the start of the job.

In the continuous mode, plans become steps, hundreds per second. The input of a step is appended to a file, which
survives a crash of the driver but is not synced to the disk. There is one such file per checkpoint.

A job that is slower than its source does not use more and more memory or disk: a receiver waits while `capacity`
elements are not yet in a batch, and the files contain only batches that are not yet committed.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.common.errors import CheckpointError
from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.storage.checked_file import (
    checkpoint_writes,
    make_directory,
    read_checked,
    seal,
    whole_parts,
    write_checked,
)

CAPACITY = 50_000


class ReceiveLog:
    """The elements received so far: the tail in memory, all uncommitted elements in segment files.

    >>> log = ReceiveLog(None)
    >>> log.extend(["a", "b"])
    >>> log.seal(0, 10)
    2
    >>> log.read(0, 2)
    ['a', 'b']
    >>> log.close()

    :param arrived: called when elements begin to wait; used if many batches lead to one checkpoint
    """

    def __init__(
        self, directory: str | None, capacity: int = CAPACITY, *, arrived: Callable[[], None] | None = None
    ) -> None:
        self._arrived = arrived
        self._owned = tempfile.TemporaryDirectory(prefix="penstock-received-") if directory is None else None
        self._directory = Path(self._owned.name if self._owned is not None else directory)  # type: ignore[arg-type]
        make_directory(self._directory)
        self._lock = threading.Condition()
        self._capacity = capacity
        self._closed = False
        self._waiting: list[Any] = []
        self._segments: dict[int, list[Any]] = {}
        self._appended: dict[int, int] = {}  # files of several segments: where each begins and ends
        self._current: int | None = None  # the file that is being appended to
        self._convert_appended()
        for path in sorted(self._directory.glob("*.log")):
            start = int(path.stem)
            self._segments[start] = load_stored(read_checked(path))
        self._end = max((start + len(part) for start, part in self._segments.items()), default=0)

    def _convert_appended(self) -> None:
        """Rewrite appended files: a driver that was replaced may still have one open."""
        for path in sorted(self._directory.glob("*.appended")):
            whole = path.with_suffix(".log")
            if not whole.exists():
                parts = [load_stored(content) for content in whole_parts(path.read_bytes())]
                elements = [element for part in parts for element in part]
                if elements:
                    self._write_whole(int(path.stem), elements)
            path.unlink(missing_ok=True)

    @property
    def capacity(self) -> int:
        """The number of elements that may wait for a batch."""
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: int) -> None:
        with self._lock:
            self._capacity = capacity
            self._lock.notify_all()

    def append(self, element: Any) -> None:
        """Receive one element. Wait while there is no room."""
        self.extend([element])

    def extend(self, elements: list[Any], *, wait: bool = True) -> None:
        """Receive several elements. Wait while there is no room, unless `wait` is false."""
        with self._lock:
            while wait and not self._closed and len(self._waiting) >= self._capacity:
                self._lock.wait()
            if self._closed:  # a job that has ended receives nothing
                return
            first = bool(elements) and not self._waiting
            self._waiting.extend(elements)
        if first and self._arrived is not None:
            self._arrived()

    def wait_for_room(self) -> None:
        """Wait until an element fits without waiting, or the log is closed."""
        self.extend([])

    def seal(self, start: int, limit: int) -> int:
        """Make up to `limit` elements after `start` durable, and return the position after the last one."""
        with self._lock:
            self._end = max(self._end, start)
            already = self._end - start
            room = min(limit - already, len(self._waiting))
            if room > 0:
                segment, rest = self._waiting[:room], self._waiting[room:]
                self._write(self._end, segment)
                self._waiting = rest
                self._segments[self._end] = segment
                self._end += room
                self._lock.notify_all()
            return min(self._end, start + limit)

    def _write(self, position: int, segment: list[Any]) -> None:
        if self._arrived is None:
            self._write_whole(position, segment)
            return
        if self._current is None:
            self._current = position
        # Opened again each time: in the directory of a replaced driver, this fails.
        with checkpoint_writes(self._directory), self._path(self._current, "appended").open("ab") as file:
            file.write(seal(dumps(segment, "what a source received")))
        self._appended[self._current] = position + len(segment)

    def _write_whole(self, position: int, segment: list[Any]) -> None:
        write_checked(self._path(position, "log"), dumps(segment, "what a source received"))

    def _path(self, position: int, kind: str) -> Path:
        return self._directory / f"{position:020d}.{kind}"

    def read(self, start: int, end: int) -> list[Any]:
        """Return the elements between two positions."""
        with self._lock:
            parts: list[list[Any]] = []
            for first in reversed(self._segments):  # nearly always the last one of hundreds
                part = self._segments[first]
                if first + len(part) <= start:
                    break
                if first < end:
                    parts.append(part[max(0, start - first) : end - first])
            elements = [element for part in reversed(parts) for element in part]
            if len(elements) < end - start:
                raise CheckpointError(
                    f"the log of received elements in {self._directory} lacks elements between {start} and {end}: a "
                    "file was removed. Restore it, or start from a savepoint with an empty checkpoint directory"
                )
            return elements

    def truncate(self, position: int) -> None:
        """Remove the elements before this position, which are fully processed."""
        with self._lock:
            for first in [f for f, part in self._segments.items() if f + len(part) <= position]:
                self._remove(first)
            self._current = None
            for first in [first for first, end in self._appended.items() if end <= position]:
                del self._appended[first]
                self._path(first, "appended").unlink(missing_ok=True)

    def discard_after(self, position: int) -> None:
        """Remove elements that are not in any planned batch: their source delivers them again.

        Call it before anything is received.
        """
        with self._lock:
            for first, part in self._segments.items():
                if first < position < first + len(part):
                    self._segments[first] = part[: position - first]
                    self._write_whole(first, self._segments[first])
            for first in [first for first in self._segments if first >= position]:
                self._remove(first)
            self._end = position

    def _remove(self, first: int) -> None:
        del self._segments[first]
        if not self._is_appended(first):
            self._path(first, "log").unlink(missing_ok=True)

    def _is_appended(self, position: int) -> bool:
        return any(first <= position < end for first, end in self._appended.items())

    @property
    def pending(self) -> int:
        """Number of elements received but not yet in a batch."""
        return len(self._waiting)

    @property
    def end(self) -> int:
        """The position after the last durable element."""
        return self._end

    def release(self) -> None:
        """Stop receiving, and wake receivers that wait for room."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def close(self) -> None:
        """Remove a log that need not be kept."""
        self.release()
        if self._owned is not None:
            self._owned.cleanup()
