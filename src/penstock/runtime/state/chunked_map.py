"""Large maps of a key, stored in chunks, so that only accessed parts of a map are written (rule G08).

Chunks contain the entries in insertion order, with new entries at the end. A map therefore keeps its order when it is
restored, and keys that come and go over time are in few chunks.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import Any

from penstock.runtime.state.chunks import Chunk, ChunkStore, cannot_change


class MapChunk:
    """Some entries of a map, and the stored chunk that contains them."""

    __slots__ = ("changed", "entries", "read", "stored")

    def __init__(self, entries: dict[Any, Any], stored: Chunk | None = None) -> None:
        self.entries = entries
        self.stored = stored
        self.changed = stored is None
        self.read = False  # user code has read some of the entries, and may change them in place

    @property
    def size(self) -> int:
        """Size in bytes when last stored."""
        return 0 if self.stored is None else self.stored.size

    def lend(self) -> None:
        """Note that user code receives values."""
        if self.stored is None or not self.stored.fixed:
            self.read = True


class ChunkedMap(MutableMapping[Any, Any]):
    """A dict in chunks. All of it is in memory: chunks save writing, not reading."""

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
        """Return the value of a key."""
        part = self._chunk_of.get(key)
        if part is None:
            return default
        part.lend()
        return part.entries[key]

    def peek(self, key: Any) -> Any:
        """Return the value of a key to a caller that neither changes it nor passes it on."""
        return self._chunk_of[key].entries[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self._chunk_of.get(key)
        if part is None:
            part = self._chunk_of[key] = self._last()
        part.entries[key] = value
        part.changed = True

    def _last(self) -> MapChunk:
        """Return the chunk for new keys."""
        if not self._parts or (self._parts[-1].stored is not None and not self._parts[-1].changed):
            # Storing fills up a stored chunk with room, so new keys start a new chunk here.
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
        """The entries in insertion order."""
        return self._whole().items()

    def values(self) -> ValuesView[Any]:
        """The values in insertion order."""
        return self._whole().values()

    def _whole(self) -> dict[Any, Any]:
        whole: dict[Any, Any] = {}
        for part in self._parts:
            part.lend()
            whole.update(part.entries)
        return whole

    def unnoted(self) -> Iterator[tuple[Any, Any]]:
        """Return the entries to callers that do not pass them on."""
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
        """Store the chunks that have changed."""
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
        """Merge two small chunks, so that removed keys do not leave many tiny ones."""
        part.entries.update(other.entries)
        part.changed = True
        self._chunk_of.update(dict.fromkeys(other.entries, part))

    def _store_pieces(self, part: MapChunk, store: ChunkStore) -> None:
        """Store a chunk again, as several chunks if it has grown."""
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
    """Return the entries of a plain or chunked map to callers that do not pass them on."""
    return entries.unnoted() if isinstance(entries, ChunkedMap) else entries.items()
