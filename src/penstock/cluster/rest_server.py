"""Serves an ASGI application in a thread of its own, on a TCP port or on a Unix socket."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from penstock.common.errors import InvalidProgramError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["RestServer", "bind"]

_STOP_SECONDS = 5.0
_BACKLOG = 128


def bind(host: str, ports: str) -> socket.socket:
    """A socket on the first free port of `8081`, `0` or `8081-8090`."""
    first, dash, last = ports.partition("-")
    if not first.strip().isdigit() or (dash and not last.strip().isdigit()):
        raise InvalidProgramError(f"rest.bind-port must be a port or a range of ports such as 8081-8090, not '{ports}'")
    errors: list[str] = []
    for port in range(int(first), int(last if dash else first) + 1):
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            errors.append(f"{port}: {error.strerror or error}")
        else:
            return listening
    raise InvalidProgramError(
        f"no port of {ports} is free on {host} ({'; '.join(errors)}): choose another one with --port or rest.bind-port"
    )


class RestServer:
    """A running server. `close` ends it; requests under way get a few seconds."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        self._listening = listening
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=int(_STOP_SECONDS),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="penstock-rest", daemon=True)
        self._thread.start()

    @classmethod
    def on_port(cls, app: ASGIApp, host: str, ports: str) -> RestServer:
        """Serve on the first free port of a range."""
        return cls(app, bind(host, ports))

    @classmethod
    def on_unix_socket(cls, app: ASGIApp, path: Path) -> RestServer:
        """Serve on a Unix socket that only its user can open: its directory must be private."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen(_BACKLOG)
        return cls(app, listening)

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):
            self._server.run(sockets=[self._listening])

    @property
    def address(self) -> str:
        """`http://host:port`, or the path of the socket."""
        name = self._listening.getsockname()
        return f"http://{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)

    def close(self) -> None:
        """Stop accepting requests and end."""
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS + 1)
        self._listening.close()

    def wait(self) -> None:
        """Until the server ends."""
        while self._thread.is_alive():
            self._thread.join(1.0)
