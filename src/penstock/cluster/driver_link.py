"""Requests to the driver process of a job: HTTP over its Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

__all__ = ["DriverAnswer", "DriverGoneError", "ask_driver"]


class DriverGoneError(Exception):
    """Raised when the driver process of a job does not respond."""


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """The response of a driver."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse the body as JSON."""
        return json.loads(self.body)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask_driver(
    address: str,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    timeout: float = 10.0,
) -> DriverAnswer:
    """Send one request to a driver. `path` includes the query."""
    connection = _UnixConnection(address, timeout)
    try:
        connection.request(method, path, body=body or None, headers=headers or {})
        response = connection.getresponse()
        return DriverAnswer(response.status, dict(response.getheaders()), response.read())
    except (OSError, http.client.HTTPException) as error:
        raise DriverGoneError(str(error)) from error
    finally:
        connection.close()
