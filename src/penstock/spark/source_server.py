"""The link between Spark's planning process and the source coordinator.

Spark runs a Python data source's driver-side calls in a process of its own. All it does here is to ask the driver's
coordinator, over a local socket: so offsets, timers, draining and stopping are decided in one place.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from penstock.common.errors import CheckpointError
from penstock.core.fence import Fence
from penstock.runtime.coordinator import Offset, SourceCoordinator
from penstock.runtime.frames import BatchHeader
from penstock.runtime.serialization import dumps
from penstock.runtime.source_stage import SourceWork
from penstock.runtime.stage import encode_header

_SMALL_BATCH = 4_000
_POLL_SECONDS = 0.005
_LONG_POLL_SECONDS = 0.25


@dataclass(slots=True)
class Portion:
    """What one Spark task reads. Whoever runs it need not know the classes of the user's splits."""

    header: bytes | None
    """A frame for every channel, in the first portion only."""
    works: list[tuple[int, int, bytes]]
    """Vertex, subtask, and a pickled (SourceWork, BatchHeader)."""

    @classmethod
    def of(cls, works: list[SourceWork], header: BatchHeader, *, first: bool) -> Portion:
        """Pack work."""
        packed = [(work.vertex, work.subtask, dumps((work, header), "a split")) for work in works]
        return cls(encode_header(header) if first else None, packed)


class SourceServer:
    """Answers the planning process. A plan that Spark is about to log is checked by the fence, and has its epoch."""

    def __init__(self, coordinator: SourceCoordinator, max_partitions: int, fence: Fence | None = None) -> None:
        self._coordinator = coordinator
        self._fence = fence or Fence()
        self._max_partitions = max_partitions
        self._directory = tempfile.mkdtemp(prefix="penstock-")
        self.address = str(Path(self._directory) / "sources")
        self.secret = os.urandom(16)
        self._listener = Listener(self.address, "AF_UNIX", authkey=self.secret)
        self._connections: set[Connection] = set()
        self._stop = threading.Event()
        self._first = True
        self.boundary = threading.Event()
        """Set when Spark asks for the next batch after the job's last one: everything before is committed."""
        self.ended = False
        """Whether the job has come to its end by itself: its last batch is committed."""
        self.failure: Exception | None = None
        self.on_committed: Callable[..., None] | None = None
        """Called when Spark asks for the next batch: every batch before it is committed."""
        self._thread = threading.Thread(target=self._serve, name="penstock-source-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No further batch is planned; `boundary` is set when the running one is committed."""
        self._stop.set()

    def close(self) -> None:
        """End the server and its threads: closing a socket does not wake up whoever waits at it."""
        self._stop.set()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as knock:
            knock.connect(self.address)
        with contextlib.suppress(OSError):
            self._listener.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as twin:
                twin.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            Path(self.address).unlink()
        with contextlib.suppress(OSError):
            Path(self._directory).rmdir()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except Exception:
                if self._stop.is_set():
                    return
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        self._connections.add(connection)
        with connection, contextlib.suppress(EOFError, OSError):
            while True:
                method, *arguments = connection.recv()
                try:
                    answer = (True, getattr(self, f"_do_{method}")(*arguments))
                except Exception as error:
                    self.failure = error
                    answer = (False, f"{type(error).__name__}: {error}")
                connection.send(answer)
        self._connections.discard(connection)

    def _do_initial(self) -> Offset:
        return sealed(self._coordinator.initial_offset())

    def _do_latest(self, sealed_start: Offset) -> Offset:
        start = unsealed(sealed_start)
        last = self._stop.is_set() or start["end"]
        if self.on_committed is not None:
            self.on_committed(final=last)
        deadline = time.monotonic() + _LONG_POLL_SECONDS
        while True:
            if self._stop.is_set() or start["end"]:
                self._coordinator.commit(start)  # Spark tells of a commit with the next batch: there is none
                self.ended = bool(start["end"])
                self.boundary.set()
                return sealed_start
            end = self._coordinator.plan(start)
            if end is not None:
                self._fence.check()
                return sealed(end, self._fence.epoch)
            if time.monotonic() >= deadline:
                return sealed_start
            self._wait(start)

    def _wait(self, start: Offset) -> None:
        with self._coordinator.changed:
            self._coordinator.changed.wait(_POLL_SECONDS)

    def _do_partitions(self, start: Offset, end: Offset) -> list[bytes]:
        if start == end:
            return []
        start, end = unsealed(start), unsealed(end)
        header = self._coordinator.header(end)
        works = self._coordinator.works(start, end)
        # A subtask stays in the worker that reads it first, so the first batch is spread over all of them.
        portions = split_works(works, self._max_partitions, spread=self._first)
        self._first = False
        return [pickle.dumps(Portion.of(works, header, first=index == 0), 5) for index, works in enumerate(portions)]

    def _do_everything(self) -> list[bytes]:
        """The one batch of a batch job."""
        start = self._coordinator.initial_offset()
        return self._do_partitions(sealed(start), sealed(self._coordinator.plan_to_end(start)))

    def _do_commit(self, end: Offset) -> None:
        self._coordinator.commit(unsealed(end))


_SEAL, _EPOCH = "crc", "epoch"


def sealed(offset: Offset, epoch: int = 0) -> Offset:
    """An offset as Spark logs it: with a checksum, since a changed digit would be a position, too. The epoch is that of
    the driver that has planned it.

    >>> unsealed(sealed({"n": 1}, epoch=7))
    {'n': 1}
    """
    content = {**offset, _EPOCH: epoch} if epoch else offset
    return {**content, _SEAL: _checksum(content)}


def unsealed(offset: Offset) -> Offset:
    """An offset from Spark's log; refuses one that has changed."""
    content = {key: value for key, value in offset.items() if key != _SEAL}
    if offset.get(_SEAL) != _checksum(content):
        raise CheckpointError(
            f"the offset of batch {offset.get('n')} in the checkpoint is damaged: it does not match its checksum. Put "
            "the file back as it was, or start from a savepoint with an empty checkpoint directory"
        )
    content.pop(_EPOCH, None)
    return content


def _checksum(offset: Offset) -> int:
    return zlib.crc32(json.dumps(offset, sort_keys=True, separators=(",", ":")).encode())


def split_works(works: list[SourceWork], limit: int, *, spread: bool) -> list[list[SourceWork]]:
    """Work for the tasks of one batch: a small batch is not worth more than one task, unless it is to be spread."""
    if not spread and sum(map(_size, works)) <= _SMALL_BATCH:
        return [works]
    portions: list[list[SourceWork]] = [[] for _ in range(max(1, min(limit, len(works))))]
    for index, work in enumerate(works):
        portions[index % len(portions)].append(work)
    return portions


def _size(work: SourceWork) -> float:
    """About how many records a task reads; where offsets do not tell, many."""
    total = 0.0
    for portion in work.ranges:
        if type(portion.start) is int and type(portion.end) is int:
            total += (portion.end - portion.start) / portion.readers
        else:
            return _SMALL_BATCH + 1
    return total


class SourceClient:
    """The planning process's end of the link."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._connection = Client(address, "AF_UNIX", authkey=secret)

    def call(self, method: str, *arguments: Any) -> Any:
        """Ask the coordinator."""
        self._connection.send((method, *arguments))
        fine, answer = self._connection.recv()
        if not fine:
            raise RuntimeError(answer)
        return answer
