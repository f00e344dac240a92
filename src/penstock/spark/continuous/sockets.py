"""Links between processes: Unix sockets on one machine, TCP between machines, encrypted if Spark's connections are.

Tasks always read what arrives, and a step is complete before the next one begins, so at most one step is buffered. See
`connections` for the protocol of a single connection.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import selectors
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.errors import JobExecutionError
from penstock.spark.continuous.connections import (
    Connection,
    Greeting,
    Splitter,
    accept_greeting,
    greet,
    secured,
)
from penstock.spark.continuous.messages import Closed, Failed, Message, Stop
from penstock.spark.continuous.tls import TlsFiles

__all__ = [
    "Accepted",
    "Listener",
    "NetworkSettings",
    "SocketDriverLinks",
    "SocketTaskLinks",
    "TaskLostError",
    "connect",
    "connect_tasks",
    "exit_process",
]

_CONNECT_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The settings that all connections of one attempt share.

    :param secret: generated for the attempt
    :param ports: the first and the last port to use, for firewalls; None means any port
    :param tls: for TCP; None means no encryption
    """

    secret: bytes
    ports: tuple[int, int] | None = None
    tls: TlsFiles | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A connection whose other side knows the secret."""

    task: int
    generation: int
    connection: Connection


class Listener:
    """Accepts connections of one attempt.

    :param host: the name of this machine, for TCP; None means a Unix socket
    :param bind: the address to listen on, if it differs from the name (in a container)
    """

    def __init__(self, host: str | None, network: NetworkSettings, bind: str | None = None) -> None:
        self._network = network
        self._directory: str | None = None
        self._tls: TlsFiles | None = None
        if host is None:
            self._directory = tempfile.mkdtemp(prefix="penstock-")
            path = f"{self._directory}/socket"
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(path)
            self._socket.listen(256)
            self.address = f"unix:{path}"
        else:
            self._socket = _bound(bind or host, network.ports)
            self._tls = network.tls
            self.address = f"tcp:{host}:{self._socket.getsockname()[1]}"

    def accept(self, seconds: float) -> Accepted | None:
        """Return a connection and its task, or None if there was none in this time, or without the secret."""
        self._socket.settimeout(seconds)
        try:
            accepted, _ = self._socket.accept()
        except TimeoutError:
            return None
        accepted.settimeout(_GRACE_SECONDS)
        try:
            connection = secured(accepted, self._tls, server=True)
            greeting = accept_greeting(connection, self._network.secret)
        except (OSError, EOFError, JobExecutionError):
            accepted.close()
            return None
        if greeting is None:
            connection.close()
            return None
        connection.set_timeout(None)
        _disable_delay(accepted)
        return Accepted(greeting.task, greeting.generation, connection)

    def close(self) -> None:
        """Stop accepting connections."""
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


def connect(address: str, network: NetworkSettings, task: int, generation: int) -> Connection:
    """Open a connection to a listener.

    :param generation: increases each time Spark starts the tasks
    """
    kind, _, place = address.partition(":")
    if kind == "unix":
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.settimeout(_CONNECT_SECONDS)
        opened.connect(place)
    else:
        host, _, port = place.rpartition(":")
        opened = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
    try:
        connection = secured(opened, network.tls if kind == "tcp" else None, server=False)
        greet(connection, network.secret, Greeting(task, generation))
    except EOFError:
        opened.close()
        raise ConnectionAbortedError(f"{address} has closed the connection") from None
    except BaseException:
        opened.close()
        raise
    connection.set_timeout(None)
    _disable_delay(opened)
    return connection


def connect_tasks(
    listener: Listener, network: NetworkSettings, index: int, generation: int, addresses: Sequence[str]
) -> tuple[dict[int, Connection], list[Connection]]:
    """Connect a task to all others. Return the connections to send over, and those to receive from.

    All tasks do this at the same time. Each waits for the greetings of the others, so it must accept while it connects.
    """
    others = [other for other in range(len(addresses)) if other != index]
    failed = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        accepting = thread.submit(_accept_tasks, listener, len(others), generation, failed)
        try:
            outgoing = {other: connect(addresses[other], network, index, generation) for other in others}
        except BaseException:
            failed.set()
            raise
        return outgoing, accepting.result()


def _accept_tasks(listener: Listener, count: int, generation: int, failed: threading.Event) -> list[Connection]:
    accepted: list[Connection] = []
    end = time.monotonic() + _CONNECT_SECONDS
    while len(accepted) < count and not failed.is_set():
        new = listener.accept(_LOOK_SECONDS)
        if new is not None and new.generation == generation:
            accepted.append(new.connection)
        elif time.monotonic() > end:
            raise JobExecutionError(
                f"{count - len(accepted)} of {count} other tasks did not connect to a task of the continuous mode "
                f"within {_CONNECT_SECONDS:.0f} s: check that executors reach the ports of each other"
            )
    return accepted


def _disable_delay(connection: socket.socket) -> None:
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class SocketDriverLinks:
    """The driver's links to tasks in other processes."""

    def __init__(self, connections: dict[int, Connection]) -> None:
        self.count = len(connections)
        self._connections = connections
        self._received: deque[Message] = deque()
        self._splitters = {task: Splitter() for task in connections}
        self._over: set[int] = set()  # tasks that have sent their last message
        self._selector = selectors.DefaultSelector()
        for task, connection in connections.items():
            self._selector.register(connection, selectors.EVENT_READ, task)

    def send(self, task: int, message: Message) -> None:
        """Send a message over the task's connection."""
        try:
            self._connections[task].send_message(pickle.dumps(message, 5))
        except OSError:
            if not isinstance(message, Stop):
                raise TaskLostError(task) from None

    def receive(self, seconds: float) -> Message | None:
        """Return the next message of any task."""
        if not self._received:
            for key, _ in self._selector.select(seconds):
                self._read(key.data)
        return self._received.popleft() if self._received else None

    def _read(self, task: int) -> None:
        connection = self._connections[task]
        try:
            piece = connection.receive()
        except OSError:
            piece = None
        if piece is None:
            self._selector.unregister(connection)
            if task in self._over:
                return
            raise TaskLostError(task)
        for data in self._splitters[task].feed(piece):
            message: Message = pickle.loads(data)
            self._received.append(message)
            if isinstance(message, (Closed, Failed)):
                self._over.add(task)

    def close(self) -> None:
        """Close all connections, which ends the tasks."""
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

    :param give_up: called if the task is still running some time after the driver has ended
    """

    def __init__(self, driver: Connection, outgoing: dict[int, Connection], give_up: Callable[[], None]) -> None:
        self._driver = driver
        self._outgoing = outgoing
        # Messages as they were sent. Only the task itself unpickles them: of two threads that import modules at the
        # same time, one may see a half-imported module.
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._give_up = give_up
        self._incoming: list[Connection] = []
        threading.Thread(target=self._listen_to_driver, daemon=True).start()

    def add_incoming(self, connection: Connection) -> None:
        """Add a connection over which another task will send."""
        self._incoming.append(connection)
        threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def send(self, task: int, message: Message) -> None:
        """Send a message to another task. If that task is gone, the driver notices, and stops this one."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._outgoing[task].send_message(pickle.dumps(message, 5))

    def tell_driver(self, message: Message) -> None:
        """Send a message to the driver."""
        self._driver.send_message(pickle.dumps(message, 5))

    def receive(self) -> Message:
        """Return the next message."""
        message: Message = pickle.loads(self._inbox.get())
        return message

    def poll(self) -> Message | None:
        """Return the next message if there is one."""
        try:
            message: Message = pickle.loads(self._inbox.get_nowait())
        except queue.Empty:
            return None
        return message

    def close(self) -> None:
        """Close all connections: the task has ended."""
        self._ended.set()
        for connection in (self._driver, *self._outgoing.values(), *self._incoming):
            connection.close()

    def _listen(self, connection: Connection) -> None:
        splitter = Splitter()
        with contextlib.suppress(OSError, ValueError):
            while (piece := connection.receive()) is not None:
                for message in splitter.feed(piece):
                    self._inbox.put(message)

    def _listen_to_driver(self) -> None:
        self._listen(self._driver)
        self._inbox.put(pickle.dumps(Stop()))
        if not self._ended.wait(_GRACE_SECONDS):
            self._give_up()


def exit_process() -> None:
    """End this process immediately: a user function may be in an endless loop."""
    time.sleep(0.1)
    os._exit(1)
