"""Where a stage lives between batches: in the worker that ran it first, whichever worker Spark asks next.

Spark hands tasks to whatever Python worker is idle, so a channel wanders between workers. Its live tasks (decoded
state, the user's opened functions) must not: building them anew for every other batch would cost more than the batch.
A worker that is asked for a channel that lives in another one on the same machine passes the frames on, serves the
pages from its own link to Spark, and hands back the results. Every live stage runs in a thread of its own, so that
the user's functions always see the same thread.

A live stage may only be used if the state it was left with is the state in the store. Every batch writes a random
token with its state, and the host compares. A retried, speculative or lost attempt can therefore never leave a wrong
cache behind; a host that is gone costs a reload.
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
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any, Protocol

from penstock.runtime.stage import Row
from penstock.spark import worker
from penstock.spark.failures import TaskFailureError, raise_encoded

__all__ = ["StageStore", "run_stage"]

_META = "meta"
_TOKEN_BYTES = 12
_GET, _PUT, _REMOVE, _DONE, _FAILED, _STALE = range(6)
_MAX_CONNECTIONS = 64
_BIND_ATTEMPTS = 20
_BIND_PAUSE = 0.002

StageKey = tuple[str, int, int]
"""Job file, level, channel."""


class StageStore(Protocol):
    """Where the pages of a channel are kept."""

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""

    def remove(self, page_id: str) -> None:
        """Remove a page."""


def run_stage(job_file: str, level: int, channel: int, store: StageStore, frames: list[bytes]) -> list[Row]:
    """Run one batch of a channel where it lives; here, if it lives nowhere."""
    key = (job_file, level, channel)
    stored = store.get(_META)  # a random token, then the small part of the state
    token = None if stored is None else stored[:_TOKEN_BYTES]
    hosted = _hosted.get(key)
    rows = None
    if hosted is not None:
        rows = hosted.run(token, store, frames)
    if rows is None and token is not None:
        rows = _relay(key, token, store, frames)
    if rows is not None:
        return rows
    snapshots = {} if stored is None else pickle.loads(stored[_TOKEN_BYTES:])
    hosted = HostedStage(key, store, snapshots, token)
    rows = hosted.run(token, store, frames)
    assert rows is not None
    return rows


# -- the host's side --------------------------------------------------------------------------------------------


class HostedStage:
    """A live stage and its thread."""

    def __init__(self, key: StageKey, store: StageStore, snapshots: dict[int, Any], token: bytes | None) -> None:
        self._key = key
        self._token = token
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._busy = threading.Lock()
        self._listener: socket.socket | None = None
        self._live = worker.new_stage(*key, store, snapshots)
        name = f"penstock-stage-{key[1]}-{key[2]}"
        threading.Thread(target=self._work, name=name, daemon=True).start()
        _hosted[key] = self
        self._listen()

    def run(self, token: bytes | None, store: StageStore, frames: list[bytes]) -> list[Row] | None:
        """One batch; None if the state has moved on without this stage, which is then given up."""
        with self._busy:
            if token != self._token or _hosted.get(self._key) is not self:
                self.drop()
                return None
            answer: queue.SimpleQueue[list[Row] | BaseException] = queue.SimpleQueue()
            self._calls.put(lambda: answer.put(self._batch(store, frames)))
            result = answer.get()
            if isinstance(result, BaseException):
                self.drop()
                raise result
            if self._live.stage.closed:
                self.drop()
            return result

    def _batch(self, store: StageStore, frames: list[bytes]) -> list[Row] | BaseException:
        """In the stage's thread."""
        live = self._live
        live.store.target = store
        try:
            rows = list(live.stage.run(frames))
            token = os.urandom(_TOKEN_BYTES)
            store.put(_META, token + pickle.dumps(live.stage.snapshots, 5))
        except BaseException as error:
            return error
        self._token = token
        worker.settle()
        return rows

    def drop(self) -> None:
        """Give the stage up: whoever is asked next starts from the store."""
        if _hosted.get(self._key) is self:
            del _hosted[self._key]
        self._calls.put(None)
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # ends a waiting accept, which close alone does not
            self._listener.close()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    # -- for other workers --------------------------------------------------------------------------------------

    def _listen(self) -> None:
        if sys.platform != "linux":  # only Linux has socket names that vanish with their process
            return
        listener = socket.socket(socket.AF_UNIX)
        for _ in range(_BIND_ATTEMPTS):
            try:
                listener.bind(_address(self._key))
            except OSError:  # a host that gave up a moment ago
                time.sleep(_BIND_PAUSE)
                continue
            listener.listen()
            self._listener = listener
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            return
        listener.close()  # the stage works without; other workers will not find it

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


class _RelayedStore:
    """The pages of a channel whose link to Spark is in another worker."""

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


_hosted: dict[StageKey, HostedStage] = {}


def drop_job(job_file: str) -> None:
    """Give up all stages of a job."""
    for key in [key for key in _hosted if key[0] == job_file]:
        _hosted[key].drop()


worker.forget_job.append(drop_job)

# -- the asked worker's side ------------------------------------------------------------------------------------

_connections: dict[StageKey, Connection] = {}


def _relay(key: StageKey, token: bytes, store: StageStore, frames: list[bytes]) -> list[Row] | None:
    """Let the stage's host run a batch; None if there is none, or not with this state."""
    connection = _connections.pop(key, None) or _connect(key)
    if connection is None:
        return None
    observed = _ObservedStore(store)
    try:
        connection.send_bytes(token)
        connection.send_bytes(pickle.dumps(frames, 5))
        rows = _answer(connection, observed)
    except (EOFError, OSError):  # the host is gone
        connection.close()
        if observed.changed:  # half a batch is in the store: it must not be committed
            raise_encoded(ConnectionError(f"the worker that hosts stage {key[1]}, channel {key[2]} has ended"))
        return None
    if rows is None:
        connection.close()
    else:
        if len(_connections) >= _MAX_CONNECTIONS:
            _connections.pop(next(iter(_connections))).close()
        _connections[key] = connection
    return rows


class _ObservedStore:
    """Remembers whether anything was written."""

    def __init__(self, store: StageStore) -> None:
        self.get = store.get
        self._store = store
        self.changed = False

    def put(self, page_id: str, blob: bytes) -> None:
        self.changed = True
        self._store.put(page_id, blob)

    def remove(self, page_id: str) -> None:
        self.changed = True
        self._store.remove(page_id)


def _connect(key: StageKey) -> Connection | None:
    if sys.platform != "linux":
        return None
    try:
        return Client(_address(key), "AF_UNIX", authkey=_secret(key))
    except (EOFError, OSError, AuthenticationError):
        return None


def _answer(connection: Connection, store: _ObservedStore) -> list[Row] | None:
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
    """Known to whoever may read the job."""
    return hashlib.sha256(worker.job_bytes(key[0])).digest()
