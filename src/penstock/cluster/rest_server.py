"""Serves an ASGI application in a separate thread, on a TCP port or on a Unix socket."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from penstock.common.errors import InvalidProgramError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from penstock.cluster.tls import TlsFiles

__all__ = ["RestServer", "bind"]

_STOP_SECONDS = 5.0
_BACKLOG = 128
_CONNECTIONS = 500
_HEADER_BYTES = 64 * 1024
_RENEW_SECONDS = 2.0
_LOG = logging.getLogger(__name__)


def bind(host: str, ports: str) -> socket.socket:
    """Return a socket on the first free port of `8081`, `0` or `8081-8090`."""
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
    """A running server. `close` stops it and gives pending requests a few seconds."""

    def __init__(self, app: ASGIApp, listening: socket.socket, tls: TlsFiles | None = None) -> None:
        self._listening = listening
        self._tls = tls
        context = None if tls is None else tls.context()
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=int(_STOP_SECONDS),
            limit_concurrency=_CONNECTIONS,
            h11_max_incomplete_event_size=_HEADER_BYTES,
        )
        config.load()
        config.ssl = context
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="penstock-rest", daemon=True)
        self._thread.start()
        self._closed = threading.Event()
        if tls is not None and context is not None:
            threading.Thread(target=self._renew, args=(tls, context), name="penstock-tls", daemon=True).start()

    @classmethod
    def on_port(cls, app: ASGIApp, host: str, ports: str, tls: TlsFiles | None = None) -> RestServer:
        """Serve on the first free port of a range."""
        return cls(app, bind(host, ports), tls)

    @classmethod
    def on_unix_socket(cls, app: ASGIApp, path: Path) -> RestServer:
        """Serve on a Unix socket. Its directory must be private, so that only its user can open it."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen(_BACKLOG)
        return cls(app, listening)

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):
            self._server.run(sockets=[self._listening])

    def _renew(self, tls: TlsFiles, context: ssl.SSLContext) -> None:
        """Reload certificates that are replaced while the service runs."""
        while not self._closed.wait(_RENEW_SECONDS):
            if tls.has_changed():
                try:
                    tls.load(context)
                except InvalidProgramError as error:  # connections keep the old certificate
                    _LOG.warning("%s", error)

    @property
    def address(self) -> str:
        """`http://host:port`, or the path of the socket."""
        name = self._listening.getsockname()
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)

    def close(self) -> None:
        """Stop accepting requests and stop the server."""
        self._closed.set()
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS + 1)
        self._listening.close()

    def wait(self) -> None:
        """Wait until the server stops."""
        while self._thread.is_alive():
            self._thread.join(1.0)
