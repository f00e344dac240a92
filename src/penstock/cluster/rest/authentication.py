"""Tokens with roles, and a log of all changes.

A token file has one line for each user: `name role sha256:<hash of the token>`. The file contains no token itself.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cluster.redaction import redact_text
from penstock.cluster.rest.responses import json_response
from penstock.common.errors import InvalidProgramError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["AUDIT", "Guard", "Role", "TokenFile", "create_token", "needed_role", "token_file"]

AUDIT = logging.getLogger("penstock.audit")
_READING = {"GET", "HEAD"}


class Role(IntEnum):
    """The roles. Each one includes the permissions of those before it."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


def needed_role(method: str, path: str) -> Role | None:
    """Return the role that a request needs, or None for public ones (health checks, the dashboard's files).

    >>> needed_role("GET", "/v1/jobs"), needed_role("PATCH", "/jobs/1"), needed_role("POST", "/jars/upload")
    (<Role.VIEWER: 1>, <Role.OPERATOR: 2>, <Role.ADMIN: 3>)
    >>> needed_role("GET", "/jobs/1/yarn-cancel"), needed_role("GET", "/jobmanager/logs/a"), needed_role("GET", "/")
    (<Role.OPERATOR: 2>, <Role.OPERATOR: 2>, None)
    """
    parts = path.removeprefix("/v1").strip("/").split("/")
    if parts[0] in {"", "index.html", "assets", "health"}:
        return None if method in _READING else Role.ADMIN
    if parts[0] in {"jars", "programs", "cluster"}:
        return Role.VIEWER if method in _READING else Role.ADMIN
    if method not in _READING or parts[-1] in {"yarn-cancel", "yarn-stop"}:
        return Role.OPERATOR
    private = (
        {"log", "logs", "stdout", "thread-dump"} & set(parts) or "state" in parts[3:4] or "savepoint" in parts[1:2]
    )
    return Role.OPERATOR if private else Role.VIEWER


class TokenFile:
    """The users in a token file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = -1
        self._users: list[tuple[str, Role, str]] = []
        self._read()

    def _read(self) -> None:
        try:
            changed = self._path.stat().st_mtime_ns
            if changed == self._changed:
                return
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InvalidProgramError(f"the token file {self._path} cannot be read: {error.strerror}") from None
        users = []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                name, role, digest = line.split()
                users.append((name, Role[role.upper()], digest.removeprefix("sha256:")))
            except (ValueError, KeyError):
                raise InvalidProgramError(
                    f"{self._path}, line {number}: a line is 'name viewer|operator|admin sha256:<hash>'"
                ) from None
        self._users, self._changed = users, changed

    def user_of(self, token: str) -> tuple[str, Role] | None:
        """Return name and role. The comparison with all users takes constant time, so that it reveals nothing."""
        self._read()
        digest = _digest(token)
        found = None
        for name, role, known in self._users:
            if hmac.compare_digest(digest, known):
                found = (name, role)
        return found


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def token_file(settings: Mapping[str, str]) -> TokenFile | None:
    """Return the token file of the settings, or None if requests need no token."""
    how = settings.get("penstock.security.auth", "none")
    if how == "none":
        return None
    path = settings.get("penstock.security.token-file")
    if how != "token" or not path:
        raise InvalidProgramError(
            "penstock.security.auth must be none or token; with token, penstock.security.token-file names the file"
        )
    return TokenFile(Path(path))


def create_token(path: Path, name: str, role: Role) -> str:
    """Add a user to a token file, which only its owner can read. Return the token, which is not stored."""
    if not name or any(letter.isspace() for letter in name) or name.startswith("#"):
        raise InvalidProgramError(f"the name of a user must not contain spaces: '{name}'")
    token = secrets.token_urlsafe(32)
    path.touch(mode=0o600)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{name} {role.name.lower()} sha256:{_digest(token)}\n")
    return token


class Guard:
    """Checks the token of each request, and logs requests that change something."""

    def __init__(self, app: ASGIApp, tokens: TokenFile | None) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        role = needed_role(method, path)
        user, refusal = self._check(scope, role)
        statuses: list[int] = []

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                if statuses[0] == 401:
                    message["headers"] = [*message["headers"], (b"www-authenticate", b"Bearer")]
            await send(message)

        try:
            if refusal is None:
                await self._app(scope, receive, send_noted)
            else:
                await json_response({"errors": [refusal[1]]}, refusal[0])(scope, receive, send_noted)
        finally:
            if method not in _READING or path.endswith(("/yarn-cancel", "/yarn-stop")):
                address = (scope.get("client") or ("local",))[0]
                shown = redact_text(path).replace("\r", "").replace("\n", "")
                AUDIT.info("%s %s %s %s %s", user, address, method, shown, statuses[0] if statuses else "no answer")

    def _check(self, scope: Scope, role: Role | None) -> tuple[str, tuple[int, str] | None]:
        if self._tokens is None or role is None:
            return "-", None
        header = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), "")
        kind, _, token = header.partition(" ")
        found = self._tokens.user_of(token.strip()) if kind.lower() == "bearer" else None
        if found is None:
            return "-", (401, "This service needs a token: send the header Authorization: Bearer <token>.")
        name, has = found
        if has < role:
            return name, (403, f"The role {has.name.lower()} may not do this: it needs {role.name.lower()}.")
        return name, None
