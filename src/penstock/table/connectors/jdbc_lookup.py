"""Lookups in database tables: one query per key, with an optional cache (T75)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from penstock.connectors.dbapi import Database, to_paramstyle
from penstock.table.connectors.base import LookupFunction

Rows = list[tuple[Any, ...]]


class LookupCache:
    """Caches the rows of recently used keys for a limited time.

    >>> cache = LookupCache(max_rows=1, lifetime=None)
    >>> cache.put((1,), [("a",)])
    >>> cache.put((2,), [("b",)])
    >>> cache.get((1,)), cache.get((2,))
    (None, [('b',)])
    """

    def __init__(self, max_rows: int, lifetime: float | None, *, keeps_missing: bool = True) -> None:
        self._max_rows = max_rows
        self._lifetime = lifetime
        self._keeps_missing = keeps_missing
        self._known: OrderedDict[tuple[Any, ...], tuple[float, Rows]] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> Rows | None:
        """Return the rows of a key, or None if they are not cached."""
        found = self._known.get(key)
        if found is None:
            return None
        if self._lifetime is not None and time.monotonic() - found[0] > self._lifetime:
            del self._known[key]
            return None
        self._known.move_to_end(key)
        return found[1]

    def put(self, key: tuple[Any, ...], rows: Rows) -> None:
        """Cache the rows of a key, and evict the oldest key if there are too many."""
        if not rows and not self._keeps_missing:
            return
        self._known[key] = (time.monotonic(), rows)
        while len(self._known) > self._max_rows:
            self._known.popitem(last=False)


class JdbcLookup(LookupFunction):
    """Looks up the rows of a table by the values of its key columns."""

    def __init__(
        self, database: Database, query: str, convert: Any, adapt: Any, cache: LookupCache | None, retries: int
    ) -> None:
        self.name = "JdbcLookup"
        self._database = database
        self._query = to_paramstyle(query, database.paramstyle)
        self._convert = convert
        self._adapt = adapt
        self._cache = cache
        self._retries = retries
        self._connection: Any = None

    def open(self, function_context: Any) -> None:
        """Do nothing: the connection is opened on demand."""

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def eval(self, *keys: Any) -> Rows:
        """Return the rows of a key. NULL does not equal any key."""
        if any(key is None for key in keys):
            return []
        known = None if self._cache is None else self._cache.get(keys)
        if known is None:
            known = self._look_up(keys)
            if self._cache is not None:
                self._cache.put(keys, known)
        return known

    def _look_up(self, keys: Sequence[Any]) -> Rows:
        parameters = tuple(map(self._adapt, keys))
        for attempt in range(self._retries + 1):
            try:
                if self._connection is None:
                    self._connection = self._database.connect()
                cursor = self._connection.cursor()
                cursor.execute(self._query, parameters)
                rows = cursor.fetchall()
                self._connection.rollback()  # the next query then sees current data
            except self._database.errors:
                if self._connection is not None:
                    with suppress(Exception):
                        self._connection.close()
                    self._connection = None
                if attempt == self._retries:
                    raise
            else:
                return [tuple(self._convert(row)) for row in rows]
        raise AssertionError("the last attempt raises or returns")
