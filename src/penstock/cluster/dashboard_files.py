"""The files of the dashboard, which `make dashboard` builds from `dashboard/` into the package."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

__all__ = ["dashboard_routes"]

_DIRECTORY = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MISSING = "The dashboard was not built into this installation. The REST API is here: see /overview and /jobs.\n"


def dashboard_routes(directory: Path = _DIRECTORY) -> list[BaseRoute]:
    """Return the routes of `/` and its files. They are read once, and no other file can be requested."""
    if not (directory / "index.html").is_file():
        return [Route("/", _missing)]
    return [
        Route("/" if path.name == "index.html" else f"/{path.relative_to(directory).as_posix()}", _file(path))
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    ]


async def _missing(request: Request) -> Response:
    return Response(_MISSING, media_type="text/plain")


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"content-security-policy": _POLICY, "etag": tag, "cache-control": "no-cache"}

    async def respond(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return respond
