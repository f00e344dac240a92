"""Ignores slashes at the ends of a path, as in Flink: `/jobs/` is `/jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["TrimmedPaths"]


class TrimmedPaths:
    """Removes the slashes before routing, so that no redirect is needed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            scope = {**scope, "path": "/" + scope["path"].strip("/")}
        await self._app(scope, receive, send)
