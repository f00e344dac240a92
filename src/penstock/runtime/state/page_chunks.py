"""Collections that are too large for their page: where they are in entries, and how they are stored beside the page.

The registration of a state locates collections in its slot that can grow (the elements of a list state, of a window).
In a page that has become large, these collections are replaced by chunked ones. From then on, the page contains only
the numbers of their chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.state.chunked_map import ChunkedMap, MapChunk
from penstock.runtime.state.chunks import Chunk, ChunkedList, ChunkStore
from penstock.runtime.state.pages import Entry, Page

Path = tuple[Any, ...]
"""The indexes that lead from a slot's value to a collection in it. Empty for the value itself."""
Growing = Callable[[Any], Iterable[Path]]
"""Locates the collections in the value of a slot."""

Chunked = ChunkedList | ChunkedMap
Place = tuple[int, Path, bool, list[tuple[Any, ...]]]
"""The position of the entry in its page, the path (slot first), whether it is a map, its chunks."""

_TAKEN_OUT = 0  # replaces a collection; must not be None


def whole_value(value: Any) -> Iterable[Path]:
    """Locate the collection in a state that is one collection."""
    return ((),)


def by_namespace(values: dict[Any, Any]) -> Iterable[Path]:
    """Locate the collections in a dict of collections."""
    return [(namespace,) for namespace in values]


class PageChunks:
    """Divides large collections of one operator's pages into chunks, and restores them."""

    __slots__ = ("_least", "growing", "page_limit", "store")

    def __init__(self, store: ChunkStore) -> None:
        self.store = store
        self.growing: dict[int, Growing] = {}  # by slot
        self.page_limit = 4 * store.chunk_bytes
        """Pages up to this size are not searched."""
        self._least = 2 * store.chunk_bytes  # smaller collections are not divided

    # -- writing ------------------------------------------------------------------------------------------------

    def divide(self, page: Page, least_count: int = 2) -> bool:
        """Replace large collections by chunked ones, and return whether there were any."""
        found = False
        for entry, path, collection in list(self._collections(page)):
            kind = type(collection)
            if (kind is list or kind is dict) and len(collection) >= least_count and self._is_large(collection):
                _put(entry, path, ChunkedList(collection) if kind is list else ChunkedMap([MapChunk(collection)]))
                found = True
        return found

    def _is_large(self, collection: list[Any] | dict[Any, Any]) -> bool:
        elements = collection if isinstance(collection, list) else list(collection.items())
        return self.store.size_of(elements) > self._least

    @contextmanager
    def taken_out(self, page: Page) -> Iterator[list[Place]]:
        """Store the chunked collections of a page. Within the context, its entries do not contain them."""
        number_of = {id(entry): number for number, entry in enumerate(page.entries.values())}
        held = [item for item in self._collections(page) if isinstance(item[2], (ChunkedList, ChunkedMap))]
        places: list[Place] = []
        live: dict[int, int] = {}
        for entry, path, collection in held:
            collection.save(self.store)
            chunks = [chunk.as_tuple() for chunk in collection.chunks]
            places.append((number_of[id(entry)], path, isinstance(collection, ChunkedMap), chunks))
            live.update((chunk.number, chunk.size) for chunk in collection.chunks)
        self.remove(page, live)
        try:
            for entry, path, _ in held:
                _put(entry, path, _TAKEN_OUT)
            yield places
        finally:
            for entry, path, collection in held:
                _put(entry, path, collection)

    def remove(self, page: Page, live: dict[int, int]) -> None:
        """Remove chunks that the page no longer needs."""
        for number in (page.chunks or {}).keys() - live.keys():
            self.store.remove(number)
        page.chunks = live or None

    # -- reading ------------------------------------------------------------------------------------------------

    def put_back(self, page: Page, places: list[Place]) -> None:
        """Read the chunked collections of a page into its entries."""
        entries = list(page.entries.values())
        page.chunks = {}
        for number, path, is_map, chunks in places:
            stored = [Chunk(*chunk) for chunk in chunks]
            contents = [load_stored(self.store.get(chunk.number)) for chunk in stored]
            collection: Chunked
            if is_map:
                parts = [MapChunk(dict(items), chunk) for items, chunk in zip(contents, stored, strict=True)]
                collection = ChunkedMap(parts)
            else:
                collection = ChunkedList([element for some in contents for element in some], stored)
            _put(entries[number], path, collection)
            page.chunks.update((chunk.number, chunk.size) for chunk in stored)

    # -- moving -------------------------------------------------------------------------------------------------

    def move(self, before: list[Page], after: Iterable[Page]) -> None:
        """Assign chunks to the pages to which their entries have moved."""
        stored: dict[int, int] = {}
        for page in before:
            stored.update(page.chunks or {})
            page.chunks = None
        if not stored:
            return
        for page in after:
            for _, _, collection in self._collections(page):
                if isinstance(collection, (ChunkedList, ChunkedMap)):
                    page.chunks = page.chunks or {}
                    for chunk in collection.chunks:
                        page.chunks[chunk.number] = chunk.size
                        stored.pop(chunk.number, None)
        if stored:  # chunks of removed values: the first page that is written removes them
            before[0].chunks = {**(before[0].chunks or {}), **stored}

    def _collections(self, page: Page) -> Iterator[tuple[Entry, Path, Any]]:
        for entry in page.entries.values():
            for slot, growing in self.growing.items():
                value = entry[slot]
                if value is not None:
                    for path in growing(value):
                        held = value
                        for step in path:
                            held = held[step]
                        yield entry, (slot, *path), held


def _put(container: Any, path: Path, value: Any) -> None:
    """Put a value at the end of the path. A tuple on the way is replaced by a copy."""
    inner = container
    for step in path[:-1]:
        inner = inner[step]
    if isinstance(inner, tuple):
        at = path[-1]
        _put(container, path[:-1], (*inner[:at], value, *inner[at + 1 :]))
    else:
        inner[path[-1]] = value


def swept(stored: Any, kept: Any) -> Any:
    """Return the stored value without its expired part. A chunked value stays the same object."""
    if kept is None:
        return None
    if isinstance(stored, ChunkedMap):
        for key in [key for key in stored if key not in kept] if len(kept) < len(stored) else ():
            del stored[key]
        return stored
    if isinstance(stored, ChunkedList):
        stored.keep(kept)
        return stored
    if isinstance(stored, dict):  # possibly by namespace
        return {name: swept(stored[name], value) for name, value in kept.items()}
    return kept
