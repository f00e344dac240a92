"""The queryable state server: other processes query the state of a running job over a socket."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.runtime.task.queries import QueryBoard

_ANSWER_SECONDS = 60.0
_servers: dict[int, QueryServer] = {}
_lock = threading.Lock()


def secret_file(port: int) -> Path:
    """Return the file with the secret of the server on a port of this machine. Only this user can read it."""
    directory = Path(tempfile.gettempdir()) / f"penstock-queryable-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise InvalidProgramError(f"{directory} belongs to another user: remove it")
    return directory / str(port)


class QueryServer:
    """Answers clients. There is one server per port of this process, for all jobs that use it."""

    def __init__(self, port: int) -> None:
        self._secret = os.urandom(24)
        try:
            self._listener = Listener(("127.0.0.1", port), "AF_INET")
        except OSError as error:
            raise InvalidProgramError(
                f"the queryable state server cannot use port {port} ({error}): set queryable-state.proxy.ports to "
                "another port, or to 0 for any"
            ) from None
        self.port = int(self._listener.address[1])
        self._file = secret_file(self.port)
        self._file.touch(mode=0o600)
        self._file.write_bytes(self._secret)
        self._boards: dict[str, QueryBoard] = {}
        threading.Thread(target=self._serve, name="penstock-queryable-state", daemon=True).start()

    @staticmethod
    def on_port(port: int) -> QueryServer:
        """Return the server of this process on a port. The first call starts it."""
        with _lock:
            server = _servers.get(port)
            if server is None:
                server = _servers[port] = QueryServer(port)
            return server

    def register(self, job_id: str, board: QueryBoard) -> None:
        """Accept queries for the job."""
        self._boards[job_id] = board

    def unregister(self, job_id: str) -> None:
        """Stop accepting queries for the job."""
        self._boards.pop(job_id, None)

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        """Serve one client. A client that is silent, or sends a wrong secret, does not delay the others."""
        with connection, contextlib.suppress(EOFError, OSError, AuthenticationError):
            deliver_challenge(connection, self._secret)
            answer_challenge(connection, self._secret)
            while True:
                try:
                    connection.send(self._ask(*connection.recv()))
                except (EOFError, OSError):
                    raise
                except Exception as error:  # for instance a class that only one side knows
                    connection.send((False, f"{type(error).__name__}: {error}"))

    def _ask(self, job_id: str, name: str, key: Any, uid: str | None) -> tuple[bool, Any]:
        board = self._boards.get(job_id)
        if board is None:
            return False, f"no job {job_id} is running here"
        try:
            answer = board.ask(name, key, uid).result(_ANSWER_SECONDS)
        except TimeoutError:
            return False, (
                f"job {job_id} has not answered within {_ANSWER_SECONDS:g} s: it is restarting, or its batches take "
                "longer than that. Try again"
            )
        except Exception as error:
            return False, str(error) or type(error).__name__
        return True, (answer.kind, answer.value)
