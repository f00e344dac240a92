"""State pages in memory that remember which of them have changed since the last checkpoint."""

from __future__ import annotations

from penstock.runtime.state.pages import MemoryPageStore

__all__ = ["ChangedPages"]


class ChangedPages(MemoryPageStore):
    """A page store.

    >>> store = ChangedPages({"a": b"1"})
    >>> store.put("b", b"2")
    >>> store.remove("a")
    >>> store.take()
    ({'b': b'2'}, {'a'})
    >>> store.take()
    ({}, set())
    """

    __slots__ = ("_changed", "_removed")

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        super().__init__(blobs)
        self._changed: dict[str, bytes] = {}
        self._removed: set[str] = set()

    def put(self, page_id: str, blob: bytes) -> None:
        """Keep a blob."""
        super().put(page_id, blob)
        self._changed[page_id] = blob
        self._removed.discard(page_id)

    def remove(self, page_id: str) -> None:
        """Forget a blob."""
        super().remove(page_id)
        self._changed.pop(page_id, None)
        self._removed.add(page_id)

    def take(self) -> tuple[dict[str, bytes], set[str]]:
        """Return the pages that have changed since the last call, and the keys of those that are gone."""
        changed, removed, self._changed, self._removed = self._changed, self._removed, {}, set()
        return changed, removed
