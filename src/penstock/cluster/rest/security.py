"""Protects a service on loopback against web pages that its user visits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.cluster.rest.responses import RestError, json_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_BYTES", "BrowserGuard", "host_names"]

_HEADERS = {
    b"access-control-allow-origin": b"*",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
_READING = {"GET", "HEAD", "OPTIONS"}
MOST_BYTES = 100 * 1024 * 1024


def host_names(host: str, settings: Mapping[str, str]) -> frozenset[str]:
    """Return the host names under which browsers may reach a service that listens on this host.

    >>> sorted(host_names("10.0.0.7", {"rest.address": "penstock.example.com"}))
    ['10.0.0.7', '127.0.0.1', '[::1]', 'localhost', 'penstock.example.com']
    """
    more = [settings.get("rest.address", ""), *settings.get("penstock.security.allowed-hosts", "").split(",")]
    return frozenset({"localhost", "127.0.0.1", "[::1]", host, *(name.strip() for name in more if name.strip())})


class BrowserGuard:
    """Checks `Host` against DNS rebinding, rejects cross-site writes, and adds headers to all responses.

    :param most_bytes: the maximum size of a body, whether or not the client announces it
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str], most_bytes: int = MOST_BYTES) -> None:
        self._app = app
        self._hosts = frozenset(allowed_hosts)
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal, status = self._refusal(scope["method"], headers), 403
        length = headers.get(b"content-length", "0")
        too_large = f"The body must have at most {self._most_bytes} bytes (rest.server.max-content-length)."
        if refusal is None and (not length.isdigit() or int(length) > self._most_bytes):
            refusal, status = too_large, 413
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most_bytes:
                raise RestError(413, too_large)
            return message

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((k, v) for k, v in _HEADERS.items() if k not in present)]
            await send(message)

        if refusal is None:
            await self._app(scope, receive_limited, send_guarded)
        else:
            await json_response({"errors": [refusal]}, status)(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: dict[bytes, str]) -> str | None:
        host = headers.get(b"host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self._hosts and name not in self._hosts:
            return f"The host {name!r} is not one of this service's names."
        if method not in _READING and not self._is_of_our_pages(host, headers):
            return "Requests from another site must not change anything."
        return None

    @staticmethod
    def _is_of_our_pages(host: str, headers: dict[bytes, str]) -> bool:
        """Whether the browser says that our page sent the request. Other clients send nothing.

        A proxy may change `Host`, so `Origin` only decides if a browser sends no `Sec-Fetch-Site`.
        """
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site in {"same-origin", "none"}
        origin = headers.get(b"origin", "")
        return not origin or origin.partition("://")[2] == host
