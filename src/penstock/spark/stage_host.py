"""Hosts live stages between batches: in the worker that ran a stage first, whichever worker Spark selects next.

Spark assigns tasks to any idle Python worker, so a channel moves between workers. Its live tasks (decoded state, opened
functions of the user) must not move: building them again for every other batch would cost more than the batch. A worker
that receives a channel whose tasks live in another process of the machine forwards the frames, serves the pages from
its own connection to Spark, and returns the results. Every live stage runs in its own thread, so that the user's
functions always see the same thread.

A live stage may be used only if its state is the state in the store. Every batch writes a random token with its state,
and the host compares it. A retried, speculative or lost attempt can therefore never leave a wrong cache behind. A host
may end at any time: Spark ends workers that it considers idle, and does not know which ones run a batch for another
worker. Writes of a host are therefore held back until its batch is done. If it ends before, the batch runs here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import queue
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any, Protocol

from penstock.runtime.source.source_stage import SourceStage
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.runtime.task.stage import Row
from penstock.spark import worker
from penstock.spark.failures import TaskFailureError, raise_encoded

__all__ = ["META_PAGE", "StageStore", "drop_job", "run_source", "run_stage", "snapshot_of"]

META_PAGE = "meta"
"""The page with the small part of a stage's state, after a token."""
_TOKEN_BYTES = 12
_GET, _PUT, _REMOVE, _DONE, _FAILED, _STALE = range(6)
_MAX_CONNECTIONS = 64
_HELD_BYTES = 128 * 1024 * 1024
_BIND_ATTEMPTS = 20
_BIND_PAUSE = 0.002

StageKey = tuple[str, int, Any]
"""Job file, level, channel. For a source: level 0, (vertex, subtask)."""


class StageStore(Protocol):
    """Stores the pages of a channel."""

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""

    def remove(self, page_id: str) -> None:
        """Remove a page."""


def run_stage(job_file: str, level: int, channel: int, store: StageStore, frames: list[bytes]) -> list[Row]:
    """Run one batch of a channel in its host, or here if there is none."""
    key = (job_file, level, channel)
    stored = store.get(META_PAGE)  # a random token, then the small part of the state
    token = b"" if stored is None else stored[:_TOKEN_BYTES]
    rows = _run_elsewhere(key, token, store, frames)
    if rows is None:
        snapshot = StageSnapshot() if stored is None else StageSnapshot.decode(snapshot_of(stored))
        rows = HostedStage(key, worker.new_stage(*key, store, snapshot), token).run(token, store, frames)
    assert rows is not None
    return rows


def snapshot_of(page: bytes) -> bytes:
    """Return the snapshot of a stage from its page."""
    return page[_TOKEN_BYTES:]


def run_source(job_file: str, vertex: int, subtask: int, work: bytes) -> list[Row]:
    """Read one subtask's part of a batch in its host. ``work`` is a pickled (SourceWork, BatchHeader).

    Sources have no state here, so any token is accepted.
    """
    key = (job_file, 0, (vertex, subtask))
    rows = _run_elsewhere(key, b"", _NO_STORE, [work])
    if rows is None:
        rows = HostedSource(key, worker.new_source_stage(job_file)).run(b"", _NO_STORE, [work])
    assert rows is not None
    return rows


def _run_elsewhere(key: StageKey, token: bytes, store: StageStore, frames: list[bytes]) -> list[Row] | None:
    """Run a batch in an existing host, in this process or in another."""
    hosted = _hosted.get(key)
    rows = None if hosted is None else hosted.run(token, store, frames)
    return _relay(key, token, store, frames) if rows is None else rows


# -- the host's side --------------------------------------------------------------------------------------------


class Hosted(ABC):
    """A live stage or source, and its thread."""

    def __init__(self, key: StageKey, token: bytes) -> None:
        self._key = key
        self._token = token
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._busy = threading.Lock()
        self._listener: socket.socket | None = None
        name = f"penstock-stage-{key[1]}-{key[2]}"
        threading.Thread(target=self._work, name=name, daemon=True).start()
        _hosted[key] = self
        self._listen()

    @abstractmethod
    def batch(self, store: StageStore, frames: list[bytes]) -> tuple[list[Row], bytes]:
        """Run a batch in the stage's own thread. Return the rows and the token of the resulting state."""

    @abstractmethod
    def close(self) -> None:
        """Close the user's functions in the same thread, unless they are closed."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the job has ended here."""

    def run(self, token: bytes, store: StageStore, frames: list[bytes]) -> list[Row] | None:
        """Run one batch. Return None, and give up, if the state has advanced without this host."""
        with self._busy:
            if token != self._token or _hosted.get(self._key) is not self:
                self.drop()
                return None
            answer: queue.SimpleQueue[list[Row] | BaseException] = queue.SimpleQueue()
            self._calls.put(lambda: answer.put(self._attempt(store, frames)))
            result = answer.get()
            if isinstance(result, BaseException):
                self.drop()
                raise result
            if self.closed:
                self.drop()
            elif self._listener is None:  # the name was taken
                self._listen(attempts=1)
            return result

    def _attempt(self, store: StageStore, frames: list[bytes]) -> list[Row] | BaseException:
        try:
            rows, self._token = self.batch(store, frames)
        except BaseException as error:
            return error
        worker.settle()
        return rows

    def drop(self) -> None:
        """Drop the live stage: the next worker starts from the store."""
        if _hosted.get(self._key) is self:
            del _hosted[self._key]
        self._calls.put(self._close_quietly)
        self._calls.put(None)
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # ends a waiting accept(), which close() does not
            self._listener.close()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def _close_quietly(self) -> None:
        with contextlib.suppress(Exception):  # the first error counts
            self.close()

    # -- for other workers --------------------------------------------------------------------------------------

    def _listen(self, attempts: int = _BIND_ATTEMPTS) -> None:
        if sys.platform != "linux":  # only Linux has socket names that vanish with their process
            return
        listener = socket.socket(socket.AF_UNIX)
        for left in reversed(range(attempts)):
            try:
                listener.bind(_address(self._key))
            except OSError:  # of a host that gave up just now
                if left:
                    time.sleep(_BIND_PAUSE)
                continue
            listener.listen()
            self._listener = listener
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            return
        listener.close()  # the stage works without it, but other workers cannot find it until it has tried again

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listener.accept()
                connection = Connection(accepted.detach())
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, contextlib.suppress(EOFError, OSError, AuthenticationError):
            secret = _secret(self._key)
            deliver_challenge(connection, secret)
            answer_challenge(connection, secret)
            while True:
                token = connection.recv_bytes()
                frames = pickle.loads(connection.recv_bytes())
                try:
                    rows = self.run(token, _RelayedStore(connection), frames)
                except BaseException as error:
                    connection.send((_FAILED, _encoded(error)))
                    return
                if rows is None:
                    connection.send((_STALE, None))
                    return
                connection.send((_DONE, rows))


class HostedStage(Hosted):
    """The tasks of one channel of a stage with state."""

    def __init__(self, key: StageKey, live: worker.LiveStage, token: bytes) -> None:
        self._live = live
        super().__init__(key, token)

    def batch(self, store: StageStore, frames: list[bytes]) -> tuple[list[Row], bytes]:
        """Run a batch, which writes a new token with its state."""
        live = self._live
        live.store.target = store
        rows = list(live.stage.run(frames))
        token = os.urandom(_TOKEN_BYTES)
        store.put(META_PAGE, token + live.stage.snapshot.encode())
        return rows, token

    def close(self) -> None:
        """Close all tasks."""
        self._live.stage.close()

    @property
    def closed(self) -> bool:
        """Whether the last batch of the job has run."""
        return self._live.stage.closed


class HostedSource(Hosted):
    """One subtask of a source, with its reader and the chained functions."""

    closed = False

    def __init__(self, key: StageKey, stage: SourceStage) -> None:
        self._stage = stage
        super().__init__(key, b"")

    def batch(self, store: StageStore, frames: list[bytes]) -> tuple[list[Row], bytes]:
        """Read what the only frame requests."""
        work, header = pickle.loads(frames[0])
        rows = list(self._stage.run([work], header, first=False))
        self.closed = header.closing
        return rows, b""

    def close(self) -> None:
        """Close the reader and the functions."""
        self._stage.close()


class _NoStore:
    """An empty store: sources keep no state."""

    def get(self, page_id: str) -> bytes | None:
        return None

    def put(self, page_id: str, blob: bytes) -> None:
        raise NotImplementedError

    def remove(self, page_id: str) -> None:
        raise NotImplementedError


_NO_STORE = _NoStore()


class _RelayedStore:
    """The pages of a channel whose connection to Spark is in another worker."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, page_id: str) -> bytes | None:
        self._connection.send((_GET, page_id))
        blob: bytes | None = self._connection.recv()
        return blob

    def put(self, page_id: str, blob: bytes) -> None:
        self._connection.send((_PUT, (page_id, blob)))

    def remove(self, page_id: str) -> None:
        self._connection.send((_REMOVE, page_id))


_hosted: dict[StageKey, Hosted] = {}


def drop_job(job_file: str) -> None:
    """Drop all stages of a job."""
    for key in [key for key in _hosted if key[0] == job_file]:
        _hosted[key].drop()


worker.forget_job.append(drop_job)

# -- the other worker's side ------------------------------------------------------------------------------------

_connections: dict[StageKey, Connection] = {}


def _relay(key: StageKey, token: bytes, store: StageStore, frames: list[bytes]) -> list[Row] | None:
    """Let the stage's host run a batch. Return None if there is no host with this state."""
    for connection in _connections_to(key):
        held = HeldStore(store)
        try:
            connection.send_bytes(token)
            connection.send_bytes(pickle.dumps(frames, 5))
            rows = _answer(connection, held)
        except (EOFError, OSError):  # the host has ended
            connection.close()
            if held.changed:  # the store has half a batch, which must not be committed
                raise_encoded(ConnectionError(f"the worker that hosts stage {key[1]}, channel {key[2]} has ended"))
            continue
        if rows is None:
            connection.close()
        else:
            held.release()
            if len(_connections) >= _MAX_CONNECTIONS:
                _connections.pop(next(iter(_connections))).close()
            _connections[key] = connection
        return rows
    return None


def _connections_to(key: StageKey) -> Iterator[Connection]:
    """Yield the connection to the host, and if it has ended, one to a possible new host."""
    known = _connections.pop(key, None)
    if known is not None:
        yield known
    new = _connect(key)
    if new is not None:
        yield new


class HeldStore:
    """Buffers writes, so that the store is unchanged if the writer fails."""

    def __init__(self, store: StageStore) -> None:
        self._store = store
        self._held: dict[str, bytes | None] = {}
        self._bytes = 0
        self.changed = False
        """Whether the buffer was full, so that some writes have reached the store."""

    def get(self, page_id: str) -> bytes | None:
        """Read a page as last written by the writer."""
        return self._held[page_id] if page_id in self._held else self._store.get(page_id)

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""
        self._hold(page_id, blob)

    def remove(self, page_id: str) -> None:
        """Remove a page."""
        self._hold(page_id, None)

    def _hold(self, page_id: str, blob: bytes | None) -> None:
        self._bytes += len(blob or b"") - len(self._held.get(page_id) or b"")
        self._held[page_id] = blob
        if self._bytes > _HELD_BYTES:
            self.release()

    def release(self) -> None:
        """Pass all buffered writes to the store."""
        for page_id, blob in self._held.items():
            self.changed = True
            if blob is None:
                self._store.remove(page_id)
            else:
                self._store.put(page_id, blob)
        self._held.clear()
        self._bytes = 0


def _connect(key: StageKey) -> Connection | None:
    if sys.platform != "linux":
        return None
    try:
        return Client(_address(key), "AF_UNIX", authkey=_secret(key))
    except (EOFError, OSError, AuthenticationError):
        return None


def _answer(connection: Connection, store: HeldStore) -> list[Row] | None:
    while True:
        kind, content = connection.recv()
        if kind == _GET:
            connection.send(store.get(content))
        elif kind == _PUT:
            store.put(*content)
        elif kind == _REMOVE:
            store.remove(content)
        elif kind == _FAILED:
            connection.close()
            raise TaskFailureError(content)
        else:
            rows: list[Row] | None = content
            return rows


def _encoded(error: BaseException) -> str:
    try:
        raise_encoded(error)
    except TaskFailureError as encoded:
        return str(encoded)


def _address(key: StageKey) -> str:
    return "\0penstock-" + hashlib.sha256(repr(key).encode()).hexdigest()[:32]


def _secret(key: StageKey) -> bytes:
    """Return a secret that only readers of the job know."""
    return hashlib.sha256(worker.job_bytes(key[0])).digest()
