"""Links between processes: Unix sockets on one machine, TCP between machines.

Every connection begins with the secret of the job's attempt, which is compared before anything else is read. After that
a message is its length and its pickle. Tasks always read what arrives, and a step is complete before the next one
begins, so no more than one step is ever buffered.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import pickle
import queue
import selectors
import socket
import struct
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from penstock.common.errors import JobExecutionError
from penstock.spark.continuous.messages import Closed, Failed, Message, Stop

__all__ = ["Accepted", "Listener", "SocketDriverLinks", "SocketTaskLinks", "TaskLostError", "connect", "exit_process"]

_LENGTH = struct.Struct("<Q")
_GREETING = struct.Struct("<iq")  # the task, and which start of the stage it belongs to
_PIECE = 1 << 18
_CONNECT_SECONDS = 60.0
_GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """A connection that has shown the secret."""

    task: int
    generation: int
    connection: socket.socket


class Listener:
    """Accepts connections of one attempt.

    :param host: for TCP; None: a Unix socket
    :param ports: the first and the last port to use, for firewalls; any if None
    """

    def __init__(self, host: str | None, secret: bytes, ports: tuple[int, int] | None = None) -> None:
        self._secret = secret
        self._directory: str | None = None
        if host is None:
            self._directory = tempfile.mkdtemp(prefix="penstock-")
            path = f"{self._directory}/socket"
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(path)
            self._socket.listen(256)
            self.address = f"unix:{path}"
        else:
            self._socket = _bound(host, ports)
            self.address = f"tcp:{host}:{self._socket.getsockname()[1]}"

    def accept(self, seconds: float) -> Accepted | None:
        """A connection and the task that opened it; None if there was none in this time, or it had no secret."""
        self._socket.settimeout(seconds)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError:
            return None
        connection.settimeout(_GRACE_SECONDS)
        try:
            greeting = _exactly(connection, len(self._secret) + _GREETING.size)
        except (OSError, EOFError):
            connection.close()
            return None
        if not hmac.compare_digest(greeting[: len(self._secret)], self._secret):
            connection.close()
            return None
        connection.settimeout(None)
        _at_once(connection)
        task, generation = _GREETING.unpack(greeting[len(self._secret) :])
        return Accepted(task, generation, connection)

    def close(self) -> None:
        """Accept nothing more."""
        self._socket.close()
        if self._directory is not None:
            with contextlib.suppress(OSError):
                Path(self._directory, "socket").unlink()
                Path(self._directory).rmdir()


def _bound(host: str, ports: tuple[int, int] | None) -> socket.socket:
    first, last = ports or (0, 0)
    for port in range(first, last + 1):
        with contextlib.suppress(OSError):
            return socket.create_server((host, port), backlog=256)
    raise JobExecutionError(
        f"no port between {first} and {last} is free on {host}: widen penstock.continuous.ports, two for each task"
        if ports
        else f"cannot listen on {host}: check the host name of this machine"
    )


def connect(address: str, secret: bytes, task: int, generation: int) -> socket.socket:
    """Open a connection to a listener.

    :param generation: grows each time Spark starts the tasks
    """
    kind, _, place = address.partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(place)
    else:
        host, _, port = place.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
    connection.settimeout(None)
    _at_once(connection)
    connection.sendall(secret + _GREETING.pack(task, generation))
    return connection


def _at_once(connection: socket.socket) -> None:
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _send(connection: socket.socket, message: Message) -> None:
    data = pickle.dumps(message, 5)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _read(stream: BinaryIO) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return stream.read(_LENGTH.unpack(head)[0])


class SocketDriverLinks:
    """The driver's links to tasks in other processes."""

    def __init__(self, connections: dict[int, socket.socket]) -> None:
        self.count = len(connections)
        self._connections = connections
        self._received: deque[Message] = deque()
        self._partial = {task: bytearray() for task in connections}
        self._over: set[int] = set()  # tasks that have sent their last message
        self._selector = selectors.DefaultSelector()
        for task, connection in connections.items():
            self._selector.register(connection, selectors.EVENT_READ, task)

    def send(self, task: int, message: Message) -> None:
        """Over the task's connection."""
        try:
            _send(self._connections[task], message)
        except OSError:
            if not isinstance(message, Stop):
                raise TaskLostError(task) from None

    def receive(self, seconds: float) -> Message | None:
        """The next message of any task."""
        if not self._received:
            for key, _ in self._selector.select(seconds):
                self._read(key.data)
        return self._received.popleft() if self._received else None

    def _read(self, task: int) -> None:
        connection, buffer = self._connections[task], self._partial[task]
        try:
            piece = connection.recv(_PIECE)
        except OSError:
            piece = b""
        if not piece:
            self._selector.unregister(connection)
            if task in self._over:
                return
            raise TaskLostError(task)
        buffer += piece
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(buffer, start)[0]
            if len(buffer) < end:
                break
            message: Message = pickle.loads(memoryview(buffer)[start + _LENGTH.size : end])
            self._received.append(message)
            if isinstance(message, (Closed, Failed)):
                self._over.add(task)
            start = end
        self._partial[task] = buffer[start:] if start else buffer

    def close(self) -> None:
        """Close all connections: tasks end."""
        self._selector.close()
        for connection in self._connections.values():
            connection.close()


class TaskLostError(JobExecutionError):
    """A task has ended without a message."""

    def __init__(self, task: int) -> None:
        super().__init__(f"task {task} of the continuous mode was lost: its Python process or its executor has ended")

    def __reduce__(self) -> tuple[Any, ...]:
        return JobExecutionError, (str(self),)


class SocketTaskLinks:
    """The links of one task.

    :param give_up: called if the task still runs some time after the driver has gone
    """

    def __init__(self, driver: socket.socket, outgoing: dict[int, socket.socket], give_up: Callable[[], None]) -> None:
        self._driver = driver
        self._outgoing = outgoing
        # Messages as they were sent. Only the task itself unpickles: two threads that import modules at the same time
        # may see half of one.
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._give_up = give_up
        self._incoming: list[socket.socket] = []
        threading.Thread(target=self._listen_to_driver, daemon=True).start()

    def add_incoming(self, connection: socket.socket) -> None:
        """Another task will send over this connection."""
        self._incoming.append(connection)
        threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def send(self, task: int, message: Message) -> None:
        """To another task. If that is gone, the driver finds out, and stops this one."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            _send(self._outgoing[task], message)

    def tell_driver(self, message: Message) -> None:
        """To the driver."""
        with self._lock:
            _send(self._driver, message)

    def receive(self) -> Message:
        """The next message."""
        message: Message = pickle.loads(self._inbox.get())
        return message

    def close(self) -> None:
        """The task has ended."""
        self._ended.set()
        for connection in (self._driver, *self._outgoing.values(), *self._incoming):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _listen(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError), connection.makefile("rb", _PIECE) as stream:
            while True:
                self._inbox.put(_read(cast("BinaryIO", stream)))

    def _listen_to_driver(self) -> None:
        self._listen(self._driver)
        self._inbox.put(pickle.dumps(Stop()))
        if not self._ended.wait(_GRACE_SECONDS):
            self._give_up()


def exit_process() -> None:
    """End this process at once: a user function may be in an endless loop."""
    time.sleep(0.1)
    os._exit(1)
