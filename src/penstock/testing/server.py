"""The base of all servers for tests: a directory and ports of their own, and an end with the tests.

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
    """The server cannot run on this machine; the message says why."""


class TemporaryServer(ABC):
    """Processes that run from :meth:`start` to :meth:`stop`, in a directory that goes with them; a context manager."""

    _directory: Path | None = None

    @property
    def directory(self) -> Path:
        """Where the server keeps its data and its logs while it runs."""
        assert self._directory is not None, "the server does not run"
        return self._directory

    def start(self) -> Self:
        """Start it and wait until it answers."""
        self._directory = Path(tempfile.mkdtemp(prefix=f"penstock-{type(self).__name__.lower()}-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it and remove its data."""
        self._stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _stop(self) -> None: ...

    def _launch(self, name: str, command: list[str], env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A process that writes to a log of this name."""
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
    """End a process at once, if there is one."""
    if process is not None:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Distinct free ports of this machine.

    They lie below those that the system gives to clients: a server that starts slowly would find one of those taken.
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
    """A server must not outlive the tests, even if they are killed. Linux only; elsewhere nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
