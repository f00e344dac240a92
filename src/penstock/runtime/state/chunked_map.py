"""Large maps of a key, stored in chunks: of a map only what was touched is written (rule G08).

Entries are in chunks in the order in which they came, new ones at the end. So a map keeps its order when it is read
back, and keys that come and go with time are in few chunks.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import Any

from penstock.runtime.state.chunks import Chunk, ChunkStore, cannot_change


class MapChunk:
    """Some entries of a map, and what the store has of them."""

    __slots__ = ("changed", "entries", "read", "stored")

    def __init__(self, entries: dict[Any, Any], stored: Chunk | None = None) -> None:
        self.entries = entries
        self.stored = stored
        self.changed = stored is None
        self.read = False  # some of the entries were given out, and may be changed in place

    @property
    def size(self) -> int:
        """Bytes, as last stored."""
        return 0 if self.stored is None else self.stored.size

    def lend(self) -> None:
        """Values are given out."""
        if self.stored is None or not self.stored.fixed:
            self.read = True


class ChunkedMap(MutableMapping[Any, Any]):
    """A dict in pieces. It is in memory as a whole: what is saved is writing, not reading."""

    __slots__ = ("_chunk_of", "_parts")

    def __init__(self, parts: Iterable[MapChunk] = ()) -> None:
        self._parts = list(parts)
        self._chunk_of: dict[Any, MapChunk] = {}
        for part in self._parts:
            self._chunk_of.update(dict.fromkeys(part.entries, part))

    # -- a dict -------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        part = self._chunk_of[key]
        part.lend()
        return part.entries[key]

    def get(self, key: Any, default: Any = None) -> Any:
        """The value under a key."""
        part = self._chunk_of.get(key)
        if part is None:
            return default
        part.lend()
        return part.entries[key]

    def peek(self, key: Any) -> Any:
        """The value under a key, for a caller that neither changes it nor passes it on."""
        return self._chunk_of[key].entries[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self._chunk_of.get(key)
        if part is None:
            part = self._chunk_of[key] = self._last()
        part.entries[key] = value
        part.changed = True

    def _last(self) -> MapChunk:
        """Where new keys go."""
        if not self._parts or (self._parts[-1].stored is not None and not self._parts[-1].changed):
            # One that is stored and has room is filled up when it is stored again.
            self._parts.append(MapChunk({}))
        return self._parts[-1]

    def __delitem__(self, key: Any) -> None:
        part = self._chunk_of.pop(key)
        del part.entries[key]
        part.changed = True

    def __iter__(self) -> Iterator[Any]:
        return iter(self._chunk_of)

    def __len__(self) -> int:
        return len(self._chunk_of)

    def __contains__(self, key: object) -> bool:
        return key in self._chunk_of

    def items(self) -> ItemsView[Any, Any]:
        """The entries in the order in which they came."""
        return self._whole().items()

    def values(self) -> ValuesView[Any]:
        """The values in the order of the entries."""
        return self._whole().values()

    def _whole(self) -> dict[Any, Any]:
        whole: dict[Any, Any] = {}
        for part in self._parts:
            part.lend()
            whole.update(part.entries)
        return whole

    def unnoted(self) -> Iterator[tuple[Any, Any]]:
        """The entries, for callers that do not pass them on."""
        for part in self._parts:
            yield from part.entries.items()

    def __repr__(self) -> str:
        return repr(self._whole())

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Copies and pickles are plain dicts."""
        return dict, (self._whole(),)

    # -- storing ------------------------------------------------------------------------------------------------

    @property
    def chunks(self) -> list[Chunk]:
        """Return the chunks in the store."""
        return [part.stored for part in self._parts if part.stored is not None]

    def save(self, store: ChunkStore) -> None:
        """Store the chunks in which something has changed."""
        kept: list[MapChunk] = []
        for part in self._parts:
            if not part.entries:
                continue
            if part.changed and kept and kept[-1].size + part.size < store.chunk_bytes // 2:
                self._join(kept[-1], part)
            else:
                kept.append(part)
        self._parts = []
        for part in kept:
            if part.changed:
                self._store_pieces(part, store)
            else:
                self._parts.append(part)
                if part.read and part.stored is not None:
                    blob = store.encode(list(part.entries.items()))
                    store.put(part.stored, blob, count=len(part.entries), fixed=part.stored.fixed)
            part.read = False

    def _join(self, part: MapChunk, other: MapChunk) -> None:
        """Two small chunks become one: keys that go leave no trail of tiny ones."""
        part.entries.update(other.entries)
        part.changed = True
        self._chunk_of.update(dict.fromkeys(other.entries, part))

    def _store_pieces(self, part: MapChunk, store: ChunkStore) -> None:
        """Store a chunk anew, as several if it has grown."""
        reused = [] if part.stored is None else [part.stored]
        for number, (items, blob) in enumerate(store.pieces(list(part.entries.items()))):
            piece = part
            if number:
                piece = MapChunk(dict(items))
                self._chunk_of.update(dict.fromkeys(piece.entries, piece))
            elif len(items) < len(part.entries):
                part.entries = dict(items)
            chunk = reused.pop() if reused else Chunk(store.new_number())
            store.put(chunk, blob, count=len(items), fixed=cannot_change(piece.entries.values()))
            piece.stored = chunk
            piece.changed = False
            self._parts.append(piece)


def unnoted_items(entries: dict[Any, Any] | ChunkedMap) -> Iterable[tuple[Any, Any]]:
    """The entries of a plain or a chunked map, for callers that do not pass them on."""
    return entries.unnoted() if isinstance(entries, ChunkedMap) else entries.items()
