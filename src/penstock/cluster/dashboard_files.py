"""The files of the dashboard, which are built into the package: the page at `/` and what it loads."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

__all__ = ["dashboard_routes"]

_DIRECTORY = Path(__file__).parent / "static"
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
_MISSING = "The dashboard was not built into this installation. The REST API is here: see /overview and /jobs.\n"


class _GuardedFiles(StaticFiles):
    """Files that may load nothing from other sites."""

    async def get_response(self, path: str, scope: object) -> Response:
        """A file, with the policy for it."""
        response = await super().get_response(path, scope)  # type: ignore[arg-type]
        response.headers["Content-Security-Policy"] = _POLICY
        return response


def dashboard_routes(directory: Path = _DIRECTORY) -> list[BaseRoute]:
    """To be put behind all others; without built files the page says so."""
    if (directory / "index.html").is_file():
        return [Mount("/", _GuardedFiles(directory=directory, html=True), name="dashboard")]

    async def missing(request: Request) -> Response:
        return Response(_MISSING, media_type="text/plain")

    return [Route("/", missing)]
