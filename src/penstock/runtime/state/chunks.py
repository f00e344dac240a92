"""Large lists of a key, stored in chunks: only appended elements are written (rule G07).

A page is written as a whole. That suits keys with little state, but a list of a million elements would be pickled in
every batch that appends to it. A list that has grown large therefore becomes a `ChunkedList`: still a list in memory,
but one that knows which of its elements are stored in which chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import is_
from typing import Any, Self, SupportsIndex
from zlib import crc32

from penstock.runtime.records.isolation import IMMUTABLE, deeply_immutable
from penstock.runtime.records.serialization import dumps
from penstock.runtime.state.pages import PageDirectory, PageStore, chunk_page

_SAMPLE = 16


@dataclass(slots=True)
class Chunk:
    """The properties of a stored chunk that are known without reading it."""

    number: int  # its name in the store
    count: int = 0  # number of elements
    size: int = 0  # size in bytes
    check: int = 0  # checksum of the bytes
    fixed: bool = False  # no element can be changed in place

    def as_tuple(self) -> tuple[int, int, int, int, bool]:
        """The short form that is stored in the page."""
        return self.number, self.count, self.size, self.check, self.fixed


class ChunkStore:
    """The chunks of one operator in one subtask, stored beside its pages."""

    __slots__ = ("_directory", "_label", "_prefix", "_store", "chunk_bytes", "on_put")

    def __init__(
        self, prefix: str, operator_name: str, store: PageStore, directory: PageDirectory, chunk_bytes: int
    ) -> None:
        self._prefix = prefix
        self._label = f"state of operator '{operator_name}'"
        self._store = store
        self._directory = directory
        self.chunk_bytes = chunk_bytes
        self.on_put: Callable[[bytes], None] | None = None

    def encode(self, content: Any) -> bytes:
        """Return the stored form of elements."""
        return dumps(content, self._label)

    def put(self, chunk: Chunk, blob: bytes, *, count: int, fixed: bool) -> None:
        """Store the content of a chunk, unless the store already has it."""
        check = crc32(blob)
        if check != chunk.check or len(blob) != chunk.size:
            self._store.put(self._name(chunk.number), blob)
            if self.on_put is not None:
                self.on_put(blob)
        chunk.count, chunk.size, chunk.check, chunk.fixed = count, len(blob), check, fixed

    def get(self, number: int) -> bytes:
        """Return the content of a chunk."""
        blob = self._store.get(self._name(number))
        if blob is None:
            raise KeyError(f"chunk {number} of the {self._label} is not in the store")
        return blob

    def remove(self, number: int) -> None:
        """Remove a chunk."""
        self._store.remove(self._name(number))

    def new_number(self) -> int:
        """Return an unused chunk number."""
        return self._directory.new_chunk()

    def size_of(self, elements: list[Any]) -> int:
        """Estimate the size of elements in bytes from a sample."""
        if not elements:
            return 0
        step = max(1, len(elements) // _SAMPLE)
        sample = elements[::step]
        return len(self.encode(sample)) * len(elements) // len(sample)

    def pieces(self, elements: list[Any]) -> Iterator[tuple[list[Any], bytes]]:
        """Divide elements into pieces of about the size of a chunk, each with its encoded form."""
        start, total = 0, len(elements)
        step = max(1, total * self.chunk_bytes // max(1, self.size_of(elements)))
        while start < total:
            if total - start < 2 * step:
                piece = elements[start:] if start else elements
            else:
                piece = elements[start : start + step]
            blob = self.encode(piece)
            if len(blob) > 2 * self.chunk_bytes and len(piece) > 1:  # the sample was not representative
                step = max(1, min(len(piece) * self.chunk_bytes // len(blob), len(piece) // 2))
                continue
            yield piece, blob
            start += len(piece)
            if 2 * len(blob) < self.chunk_bytes:
                step *= 2

    def _name(self, number: int) -> str:
        return chunk_page(self._prefix, number)


class ChunkedList(list[Any]):
    """A list that records how it changes, so that only new and changed elements are stored.

    Elements that were read may have been changed in place. They are compared with the stored ones, unless their types
    are immutable.
    """

    __slots__ = ("_changed_from", "_read_from", "_read_to", "_trimmed", "chunks")

    def __init__(self, elements: Iterable[Any] = (), chunks: Iterable[Chunk] = ()) -> None:
        super().__init__(elements)
        self.chunks = list(chunks)
        self._forget()

    def _forget(self) -> None:
        self._trimmed = 0  # number of elements removed at the beginning
        self._changed_from: int | None = None
        self._read_from, self._read_to = 0, 0

    # -- storing ------------------------------------------------------------------------------------------------

    def save(self, store: ChunkStore) -> None:
        """Store new and changed elements."""
        self._drop_trimmed(store)
        position = self._keep_unchanged()
        self._check_read(store)
        if position < len(self):
            reused = []
            if self.chunks and self.chunks[-1].size < store.chunk_bytes:  # the last chunk has room
                reused = [self.chunks.pop()]
                position -= reused[0].count
            for piece, blob in store.pieces(_plain(self, position)):
                chunk = reused.pop() if reused else Chunk(store.new_number())
                store.put(chunk, blob, count=len(piece), fixed=cannot_change(piece))
                self.chunks.append(chunk)
        self._forget()

    def _drop_trimmed(self, store: ChunkStore) -> None:
        """Remove chunks without elements. Rewrite a chunk that has lost some of its elements."""
        trimmed = self._trimmed
        gone = 0
        while gone < len(self.chunks) and trimmed >= self.chunks[gone].count:
            trimmed -= self.chunks[gone].count
            gone += 1
        del self.chunks[:gone]
        if trimmed and self.chunks:
            first = self.chunks[0]
            rest = list.__getitem__(self, slice(0, first.count - trimmed))
            store.put(first, store.encode(rest), count=len(rest), fixed=first.fixed)

    def _keep_unchanged(self) -> int:
        """Remove the chunks after the first change, and return where the remaining ones end."""
        limit = len(self) if self._changed_from is None else min(self._changed_from, len(self))
        position = kept = 0
        for chunk in self.chunks:
            if position + chunk.count > limit:
                break
            position += chunk.count
            kept += 1
        del self.chunks[kept:]
        return position

    def _check_read(self, store: ChunkStore) -> None:
        position = 0
        for chunk in self.chunks:
            end = position + chunk.count
            if not chunk.fixed and position < self._read_to and end > self._read_from:
                piece = list.__getitem__(self, slice(position, end))
                store.put(chunk, store.encode(piece), count=chunk.count, fixed=False)
            position = end

    def keep(self, elements: list[Any]) -> None:
        """Keep only these elements, which are a subsequence of the current ones."""
        gone = len(self) - len(elements)
        if not gone:
            return
        if all(map(is_, list.__getitem__(self, slice(gone, None)), elements)):  # usually the first elements are removed
            del self[:gone]
        else:
            self[:] = elements

    # -- recording changes --------------------------------------------------------------------------------------

    def _note_read(self, start: int, end: int) -> None:
        if self._read_from == self._read_to:
            self._read_from, self._read_to = start, end
        else:
            self._read_from, self._read_to = min(self._read_from, start), max(self._read_to, end)

    def _note_change(self, start: int) -> None:
        start = max(0, start)
        self._changed_from = start if self._changed_from is None else min(self._changed_from, start)

    def __iter__(self) -> Iterator[Any]:
        self._note_read(0, len(self))
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        self._note_read(0, len(self))
        return super().__reversed__()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, end, _ = index.indices(len(self))
            self._note_read(min(start, end), max(start, end) + 1)
        else:
            at = int(index) % max(1, len(self))
            self._note_read(at, at + 1)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note_change(_first(index, len(self)))
        super().__setitem__(index, value)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        start = _first(index, len(self))
        before = len(self)
        super().__delitem__(index)
        removed = before - len(self)
        if isinstance(index, slice) and index.step in (None, 1) and start == 0 and self._changed_from is None:
            self._trimmed += removed
            self._read_from, self._read_to = max(0, self._read_from - removed), max(0, self._read_to - removed)
        else:
            self._note_change(start)

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Insert before a position."""
        at = int(index)
        self._note_change(at if at >= 0 else at + len(self))
        super().insert(index, value)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Remove one element and return it."""
        self._note_change(_first(index, len(self)))
        return super().pop(index)

    def remove(self, value: Any) -> None:
        """Remove the first equal element."""
        self._note_change(0)
        super().remove(value)

    def sort(self, **options: Any) -> None:
        """Sort in place."""
        self._note_change(0)
        super().sort(**options)

    def reverse(self) -> None:
        """Reverse in place."""
        self._note_change(0)
        super().reverse()

    def clear(self) -> None:
        """Remove all elements."""
        self._note_change(0)
        super().clear()

    def copy(self) -> list[Any]:
        """Return a plain list of the same elements."""
        return list(self)

    def __add__(self, other: Any) -> list[Any]:
        joined: list[Any] = list(self) + other
        return joined

    def __radd__(self, other: Any) -> list[Any]:
        joined: list[Any] = [*other, *self]
        return joined

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * times

    __rmul__ = __mul__

    def __imul__(self, times: SupportsIndex) -> Self:
        self._note_change(0)
        super().__imul__(times)
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Copies and pickles are plain lists."""
        return list, (list(self),)


def _first(index: Any, length: int) -> int:
    """Return the first position that an index or slice selects."""
    if isinstance(index, slice):
        start, end, step = index.indices(length)
        return start if step > 0 else min(start, end)
    at = int(index)
    return at if at >= 0 else at + length


def _plain(elements: list[Any], start: int) -> list[Any]:
    """Return a slice that does not count as a read."""
    return list.__getitem__(elements, slice(start, None))


def cannot_change(values: Iterable[Any]) -> bool:
    """Whether none of the values can be changed in place.

    >>> cannot_change([1, "a", (2, 3.0)]), cannot_change([(1, [2])])
    (True, False)
    """
    held = values if isinstance(values, list) else list(values)
    return IMMUTABLE.issuperset(map(type, held)) or all(map(deeply_immutable, held))
