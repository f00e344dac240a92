"""The base of all servers for tests: each has its own directory and ports, and ends with the tests.

>>> len(set(free_ports(3)))
3
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.common.errors import PenstockError

__all__ = ["ServerUnavailableError", "TemporaryServer", "free_ports"]

_PR_SET_PDEATHSIG = 1


class ServerUnavailableError(PenstockError):
    """The server cannot run on this machine. The message tells why."""


class TemporaryServer(ABC):
    """Processes that run from :meth:`start` to :meth:`stop`, with a temporary directory. A context manager."""

    _directory: Path | None = None

    @property
    def directory(self) -> Path:
        """The directory of the running server's data and logs."""
        assert self._directory is not None, "the server does not run"
        return self._directory

    def start(self) -> Self:
        """Start the server, and wait until it responds."""
        self._directory = Path(tempfile.mkdtemp(prefix=f"penstock-{type(self).__name__.lower()}-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server, and remove its data."""
        self._stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _stop(self) -> None: ...

    def _launch(self, name: str, command: list[str], env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a process that writes to a log with this name."""
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - a program of this machine, with the caller's arguments
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509
            )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def end(process: subprocess.Popen[bytes] | None) -> None:
    """Kill a process, if there is one."""
    if process is not None:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Return distinct free ports of this machine.

    They are below the system's range for clients, from which a port may be taken before a slow server has started.
    """
    with contextlib.ExitStack() as taken:
        ports: list[int] = []
        while len(ports) < count:
            port = random.randrange(15_000, 32_000)  # noqa: S311 - nothing secret
            with contextlib.suppress(OSError):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
        return ports


def _end_with_parent() -> None:
    """Ensure that a server does not outlive the tests, even if they are killed. Only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
