"""Databases through Python's DB-API: connections from JDBC URLs, statements in the driver's style."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from penstock.common.errors import InvalidProgramError

Connect = Callable[[], Any]

_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|\?|%|:\w+|[^'\"?%:-]+|.", re.DOTALL)


def to_paramstyle(sql: str, paramstyle: str) -> str:
    """Convert JDBC's question marks to another style. Quoted text and comments stay unchanged.

    >>> to_paramstyle("INSERT INTO t VALUES (?, '100% ?', ?)", "pyformat")
    "INSERT INTO t VALUES (%s, '100%% ?', %s)"
    """
    if paramstyle == "qmark":
        return sql
    percent = paramstyle in ("format", "pyformat")
    number = 0
    parts: list[str] = []
    for piece in _TOKENS.findall(sql):
        if piece == "?":
            number += 1
            parts.append("%s" if percent else f":{number}")
        else:
            parts.append(piece.replace("%", "%%") if percent else piece)
    return "".join(parts)


@dataclass(frozen=True)
class Database:
    """Connects to a database and adapts statements to the driver's parameter style."""

    connect: Connect
    paramstyle: str
    errors: tuple[type[Exception], ...]
    """Errors after which a new connection may help."""


def open_database(url: str, user: str | None, password: str | None, connect: Connect | None) -> Database:
    """Return the database of a JDBC URL (PostgreSQL, SQLite) or of a function that uses any DB-API driver."""
    if connect is not None:
        return _by_function(connect)
    if url.startswith("jdbc:postgresql:"):
        return _postgresql(url, user, password)
    if url.startswith("jdbc:sqlite:"):
        return _sqlite(url.removeprefix("jdbc:sqlite:"))
    raise InvalidProgramError(
        f"unknown database {url!r}: use jdbc:postgresql://host:port/database, jdbc:sqlite:/path, or pass a function "
        "that connects to with_connection_provider()"
    )


def _postgresql(url: str, user: str | None, password: str | None) -> Database:
    try:
        import psycopg
    except ImportError:
        raise InvalidProgramError("PostgreSQL needs the package psycopg: pip install 'penstock[postgresql]'") from None
    parts = urlsplit(url.removeprefix("jdbc:"))
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    options.setdefault("user", user)
    options.setdefault("password", password)
    options = {name: value for name, value in options.items() if value is not None}

    def connect() -> Any:
        return psycopg.connect(
            host=parts.hostname or "localhost",
            port=parts.port or 5432,
            dbname=parts.path.lstrip("/") or None,
            **options,
        )

    return Database(connect, "pyformat", (psycopg.OperationalError, psycopg.InterfaceError))


def _sqlite(path: str) -> Database:
    import sqlite3

    # One writer at a time: others wait for it.
    return Database(lambda: sqlite3.connect(path, timeout=60), "qmark", (sqlite3.OperationalError,))


def _by_function(connect: Connect) -> Database:
    """Find the module of a driver from the class of its connection."""
    import importlib

    connection = connect()
    try:
        package = type(connection).__module__.partition(".")[0]
        module: Any = importlib.import_module(package)
        kinds = (getattr(module, name, None) for name in ("OperationalError", "InterfaceError"))
        return Database(connect, getattr(module, "paramstyle", "qmark"), tuple(kind for kind in kinds if kind))
    finally:
        connection.close()
