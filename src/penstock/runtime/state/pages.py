"""Pages: the unit in which keyed state is loaded, kept and written.

A page holds all states and timers of some keys. Pages are addressed by linear hashing: the table grows by one split at
a time, so that adding a key never rewrites the whole state (rule H01).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Protocol

from penstock.runtime.records.isolation import IMMUTABLE
from penstock.runtime.records.stored_classes import load_stored


class PageStore(Protocol):
    """Stores a task's pages between batches. Calls may be expensive, and each moves one page."""

    def get(self, page_id: str) -> bytes | None:
        """Return the last blob written under this id, or None."""

    def put(self, page_id: str, blob: bytes) -> None:
        """Store a blob under this id."""

    def remove(self, page_id: str) -> None:
        """Remove this id, if present."""


def keyed_state_page(operator_id: str, index: int) -> str:
    """Return the name of a page of keyed state in the store."""
    return f"{operator_id}/p{index}"


def young_page(operator_id: str, number: int) -> str:
    """Return the name of a page of keys that are too new to be in the page of their hash."""
    return f"{operator_id}/y{number}"


def chunk_page(operator_id: str, number: int) -> str:
    """Return the name of a chunk of a collection that is too large for its page."""
    return f"{operator_id}/c{number}"


class MemoryPageStore:
    """A page store in a dict, for the in-process executor and for batch jobs."""

    __slots__ = ("blobs",)

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        self.blobs: dict[str, bytes] = {} if blobs is None else blobs

    def get(self, page_id: str) -> bytes | None:
        """Return the blob under this id."""
        return self.blobs.get(page_id)

    def put(self, page_id: str, blob: bytes) -> None:
        """Store a blob."""
        self.blobs[page_id] = blob

    def remove(self, page_id: str) -> None:
        """Remove a blob."""
        self.blobs.pop(page_id, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.blobs)


Entry = list[Any]
"""The state of a key: [its page, its event timers, its processing timers, slot 0, slot 1, ...]."""

PAGE, EVENT_TIMERS, PROCESSING_TIMERS, FIRST_SLOT = 0, 1, 2, 3
FIRST_YOUNG = 1 << 40
"""The index of the first young page. Young pages come after all others."""


class Page:
    """The decoded entries of the keys that hash to one page index."""

    __slots__ = (
        "check",
        "chunks",
        "dirty",
        "entries",
        "expires",
        "index",
        "last_used",
        "maybe_mutated",
        "size",
        "written",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.entries: dict[Any, Entry] = {}
        self.dirty = False
        self.expires = 0  # the first processing time at which a value may have expired
        self.maybe_mutated = False  # user code received an object in this batch, and may change it without update()
        self.size = 0  # bytes when last read or written, including all chunks
        self.chunks: dict[int, int] | None = None  # sizes of the stored chunks by number, if collections are divided
        self.check = 0  # checksum of the bytes
        self.last_used = 0  # batch number, for eviction
        self.written = -1  # batch number of the last write or read

    @property
    def chunk_bytes(self) -> int:
        """Bytes stored beside the page."""
        return sum(self.chunks.values()) if self.chunks else 0

    def may_have_changed(self) -> bool:
        """Whether the page must be written: it was updated, or user code received a mutable object."""
        return self.dirty or (self.maybe_mutated and self.can_change_in_place())

    def can_change_in_place(self) -> bool:
        """Whether the page contains mutable objects. Most values are numbers and strings."""
        columns = list(zip(*self.entries.values(), strict=True))[FIRST_SLOT:]
        return not all(IMMUTABLE.issuperset(map(type, column)) or _flat_tuples(column) for column in columns)


def _flat_tuples(column: tuple[Any, ...]) -> bool:
    kinds = set(map(type, column)) - IMMUTABLE
    if kinds != {tuple}:
        return False
    return IMMUTABLE.issuperset(map(type, chain.from_iterable(value for value in column if type(value) is tuple)))


@dataclass(slots=True)
class PageDirectory:
    """The small part of an operator's keyed state that is always in memory: layout, table shape, size.

    >>> directory = PageDirectory()
    >>> [directory.index_of(h) for h in (0, 1, 2, 3)]
    [0, 0, 0, 0]
    >>> directory.add_page(), directory.add_page()
    ((0, 1), (0, 2))
    >>> [directory.index_of(h) for h in (0, 1, 2, 3)]
    [0, 1, 2, 1]
    """

    layout: list[tuple[str, str]] = field(default_factory=list)  # (state name, kind) of each slot
    bits: int = 0
    split: int = 0
    total_bytes: int = 0
    keys: int = 0
    types: dict[str, Any] = field(default_factory=dict)  # state name -> description of its type, if known
    key_types: list[Any] = field(default_factory=list)  # descriptions of the declared types of the keys
    records: dict[str, Any] = field(default_factory=dict)  # dataclasses and named tuples: see record_types.py
    next_chunk: int = 0
    young: dict[int, int] = field(default_factory=dict)  # sizes of the young pages by number
    next_young: int = 0

    @property
    def page_count(self) -> int:
        """Number of addressed pages."""
        return (1 << self.bits) + self.split

    def index_of(self, page_hash: int) -> int:
        """Return the page index of a hash."""
        index = page_hash & ((1 << self.bits) - 1)
        if index < self.split:
            index = page_hash & ((2 << self.bits) - 1)
        return index

    def new_chunk(self) -> int:
        """Return a new chunk number."""
        self.next_chunk += 1
        return self.next_chunk - 1

    def add_page(self) -> tuple[int, int]:
        """Add one page, and return (page to split, new page)."""
        old, new = self.split, self.page_count
        self.split += 1
        if self.split == 1 << self.bits:
            self.bits += 1
            self.split = 0
        return old, new


def is_blank(values: Iterable[Any]) -> bool:
    """Whether all values are None. Values are not compared: many cannot be compared with None.

    >>> is_blank([None, None]), is_blank([None, 0])
    (True, False)
    """
    for value in values:  # noqa: SIM110 - half the time of `all`
        if value is not None:
            return False
    return True


def decode_page(blob: bytes, width: int) -> tuple[Iterator[tuple[Any, ...]], Any]:
    """Return the entries of a page as (key, event timers, processing timers, slot 0, ...), and the places of its
    chunks.

    `width` is the number of slots. The places are None if no collection of the page is in chunks.
    """
    decoded = load_stored(blob)
    (keys, *columns), divided = decoded if type(decoded) is tuple else (decoded, None)
    columns += [None] * (FIRST_SLOT - 1 + width - len(columns))  # for states registered since the page was written
    filled = [repeat(None) if column is None else column for column in columns]
    return zip(keys, *filled, strict=False), divided


def earliest_timer(timers: Any) -> int | None:
    """Return the smallest timestamp in a column of timer sets."""
    if timers is None:
        return None
    return min(timer if type(timer) is int else timer[0] for some in timers if some for timer in some)
