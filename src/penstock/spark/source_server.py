"""The link between Spark's planning process and the driver.

Spark runs the driver-side calls of a Python data source in a separate process. That process only forwards them over a
local socket, so offsets, timers, draining and stopping are decided in one place.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol

__all__ = ["PlanningCalls", "SourceClient", "SourceServer"]


class PlanningCalls(Protocol):
    """Answers the calls of the planning process."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Answer one call. Arguments and answer are picklable."""


class SourceServer:
    """Accepts connections of the planning process."""

    def __init__(self, calls: PlanningCalls) -> None:
        self._calls = calls
        self._directory = tempfile.mkdtemp(prefix="penstock-")
        self.address = str(Path(self._directory) / "sources")
        self.secret = os.urandom(16)
        self.failure: Exception | None = None
        """The last error that a call has raised. Spark sees only its text."""
        self._listener = Listener(self.address, "AF_UNIX", authkey=self.secret)
        self._connections: set[Connection] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="penstock-source-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server and its threads. Closing a socket does not wake a thread that waits for it."""
        self._closed = True
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
                if self._closed:
                    return
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        self._connections.add(connection)
        with connection, contextlib.suppress(EOFError, OSError):
            while True:
                method, *arguments = connection.recv()
                try:
                    answer = (True, self._calls.call(method, *arguments))
                except Exception as error:
                    self.failure = error
                    answer = (False, f"{type(error).__name__}: {error}")
                connection.send(answer)
        self._connections.discard(connection)


class SourceClient:
    """The planning process's side of the link."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._connection = Client(address, "AF_UNIX", authkey=secret)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call the driver."""
        self._connection.send((method, *arguments))
        ok, answer = self._connection.recv()
        if not ok:
            raise RuntimeError(answer)
        return answer
