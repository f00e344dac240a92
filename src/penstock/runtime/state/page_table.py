"""The pages of one operator's keyed state in one subtask: which are in memory, how they are read, written and split.

Pages are loaded when one of their keys is accessed, written when they have changed, and dropped when the memory budget
is exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any
from zlib import crc32

from penstock.common.errors import InvalidProgramError, shorten
from penstock.runtime.records.key_groups import key_hash, key_hashes, never_changes
from penstock.runtime.records.serialization import MISSING_OR_CHANGED, dumps, unreadable
from penstock.runtime.state.change_log import ChangeLog
from penstock.runtime.state.chunks import ChunkStore
from penstock.runtime.state.page_chunks import PageChunks
from penstock.runtime.state.pages import (
    EVENT_TIMERS,
    FIRST_SLOT,
    FIRST_YOUNG,
    PAGE,
    PROCESSING_TIMERS,
    Entry,
    Page,
    PageDirectory,
    PageStore,
    decode_page,
    earliest_timer,
    is_blank,
    keyed_state_page,
    young_page,
)
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.state.sweeps import Sweep
from penstock.runtime.state.timer_index import TimerIndex, TimerMinima

TARGET_PAGE_BYTES = 32 * 1024
_PAGES_A_CHUNK = 2
_MANY = 64  # elements; with fewer, their size is checked when they are written
_SPLITS_PER_BATCH = 64
_KEYS_TO_CHECK = 4
NOTHING_EXPIRES = -(1 << 62)  # sweeps happen only at the end of a batch
_NEVER = 1 << 62
_NEWBORN = -1


class PageTable:
    """Pages by index. `entries` contains all keys of the pages in memory."""

    __slots__ = (
        "_batch",
        "_chunks",
        "_listeners",
        "_log",
        "_newborn",
        "_page_bytes",
        "_prefix",
        "_records",
        "_resident",
        "_store",
        "_sweeps",
        "_unlogged",
        "_unread_young",
        "_width",
        "directory",
        "entries",
        "key_groups",
        "max_parallelism",
        "memory_budget",
        "operator_name",
        "pages",
        "timer_index",
        "written_bytes",
    )  # fmt: skip

    def __init__(
        self,
        operator_id: str,
        operator_name: str,
        store: PageStore,
        max_parallelism: int,
        directory: PageDirectory | None = None,
        page_bytes: int = TARGET_PAGE_BYTES,
        memory_budget: int | None = None,
    ) -> None:
        self.operator_name = operator_name
        self.max_parallelism = max_parallelism
        self.key_groups: range | None = None
        """The key groups of the subtask, if loaded keys must belong to one of them."""
        self.memory_budget = memory_budget
        self.directory = directory or PageDirectory()
        self._records = RecordNotes(self.directory.records)
        self.entries: dict[Any, Entry] = {}
        self.pages: dict[int, Page] = {}
        self.timer_index = TimerIndex(operator_id, store, self.directory.page_count)
        self._prefix = operator_id
        self._store = store
        self._page_bytes = page_bytes
        self._resident = 0  # bytes of the pages in memory, when last read or written
        self._sweeps: dict[int, Sweep] = {}
        self._batch = 0
        self._width = len(self.directory.layout)
        chunks = ChunkStore(operator_id, operator_name, store, self.directory, _PAGES_A_CHUNK * page_bytes)
        chunks.on_put = self._note_written
        self.written_bytes = 0
        """Bytes written since the last report of the task."""
        self._chunks = PageChunks(chunks)
        self._listeners: list[Callable[[Page], None]] = []
        self._log: ChangeLog | None = None
        self._unlogged: set[int] = set()  # pages with changes other than those of the keys in `entries`
        self._newborn = Page(_NEWBORN)
        """The keys added in this batch."""
        self._unread_young = bool(self.directory.young)

    # -- reading ------------------------------------------------------------------------------------------------

    def on_page_loaded(self, listener: Callable[[Page], None]) -> None:
        """Call `listener` with every page read from the store. The timer service fills its queues from it."""
        self._listeners.append(listener)

    def page_at(self, index: int) -> Page:
        """Return the page with this index. Read it from the store if it is not in memory."""
        page = self.pages.get(index)
        if page is None:
            page = self.pages[index] = self._load(index)
        page.last_used = self._batch
        return page

    @property
    def keys_in_memory(self) -> int:
        """Number of keys whose state is in memory."""
        return sum(len(page.entries) for page in self.pages.values())

    def _indexes(self) -> list[int]:
        """Return the indexes of all pages."""
        return [*range(self.directory.page_count), *(FIRST_YOUNG + number for number in self.directory.young)]

    def _load(self, index: int) -> Page:
        page = Page(index)
        blob = self._store.get(self._page_id(index))
        if blob is None:
            return page
        self._fill(page, blob)
        page.written = self._batch
        self._check_home(page)
        self._resident += page.size
        if self._log is None:
            self.entries.update(page.entries)
        for listener in self._listeners:
            listener(page)
        return page

    def _check_home(self, page: Page) -> None:
        """Detect a class of keys whose hash has changed: no record would find the state.

        Checking some keys is enough, because all of them have moved. The hash of built-in types never changes.
        """
        for key in islice(page.entries, _KEYS_TO_CHECK):
            if never_changes(key):
                return
            code = key_hash(key)
            group = code % self.max_parallelism
            at_home = self.key_groups is None or group in self.key_groups
            if page.index < FIRST_YOUNG:
                at_home = at_home and self.directory.index_of(code // self.max_parallelism) == page.index
            if not at_home:
                raise InvalidProgramError(
                    f"the checkpoint has state of operator '{self.operator_name}' under the key {shorten(key)}, whose "
                    "hash has changed since it was written: keys cannot change, so restore the previous class"
                )

    def _fill(self, page: Page, blob: bytes) -> None:
        page.size, page.check = len(blob), crc32(blob)
        try:
            entries, divided = decode_page(blob, self._width)
            page.entries = {key: [page, *tail] for key, *tail in entries}
            if divided is not None:
                self._chunks.put_back(page, divided)
                page.size += page.chunk_bytes
        except MISSING_OR_CHANGED as error:
            raise unreadable(f"state of operator '{self.operator_name}'", error) from error

    def _peek(self, index: int) -> Page:
        """Return a page from memory, or decode it from the store without keeping it in memory."""
        page = self.pages.get(index)
        if page is None:
            page = Page(index)
            blob = self._store.get(self._page_id(index))
            if blob is not None:
                self._fill(page, blob)
        return page

    def _page_id(self, index: int) -> str:
        return (
            keyed_state_page(self._prefix, index)
            if index < FIRST_YOUNG
            else young_page(self._prefix, index - FIRST_YOUNG)
        )

    # -- writing ------------------------------------------------------------------------------------------------

    def _write(self, page: Page, now: int) -> None:
        """Store a page without its blank keys.

        A page that was only read is stored if an object in it was changed in place.
        """
        updated, page.dirty = page.dirty, False
        page.last_used = page.written = self._batch
        entries = page.entries
        if now >= page.expires:
            page.expires = self._remove_expired(page, now)
        columns: list[Any] = list(zip(*entries.values(), strict=True))
        # A key can be blank only if every state is missing for some key.
        if columns and not any(map(all_true, columns[FIRST_SLOT:])):
            self._drop_blank(entries)
            columns = list(zip(*entries.values(), strict=True))
        size = 0
        minima: TimerMinima = (None, None)
        if entries:
            thin(columns)
            minima = (earliest_timer(columns[EVENT_TIMERS]), earliest_timer(columns[PROCESSING_TIMERS]))
            blob = self._encode(page, columns)
            check = crc32(blob)
            if updated or check != page.check:
                self._store.put(self._page_id(page.index), blob)
                self._note_written(blob)
            page.check = check
            size = len(blob) + page.chunk_bytes
        elif page.size or self._log is not None:  # the log may contain older changes of its keys
            self._chunks.remove(page, {})
            self._store.remove(self._page_id(page.index))
        self.timer_index.note(page.index, minima)
        self.directory.total_bytes += size - page.size
        self._resident += size - page.size
        page.size = size
        if page.index >= FIRST_YOUNG:
            self.directory.young[page.index - FIRST_YOUNG] = size

    def _note_written(self, blob: bytes) -> None:
        self._records.note(blob)
        self.written_bytes += len(blob)

    def _remove_expired(self, page: Page, now: int) -> int:
        """Remove expired values, and return when the next value can expire."""
        entries = page.entries.values()
        return min((sweep.clear_slot(entries, slot, now) for slot, sweep in self._sweeps.items()), default=_NEVER)

    def _encode(self, page: Page, columns: list[Any]) -> bytes:
        """Encode a page by columns, which is faster than by entries. Collections that are too large go into chunks."""
        if page.chunks is None:
            blob = self._encode_columns(page, columns)
            if len(blob) <= self._chunks.page_limit or not self._chunks.divide(page):
                return blob
        else:
            self._chunks.divide(page, _MANY)  # a large list may have been replaced
        with self._chunks.taken_out(page) as places:
            columns = list(zip(*page.entries.values(), strict=True))
            thin(columns)
            return self._encode_columns(page, columns, places)

    def _encode_columns(self, page: Page, columns: list[Any], places: list[Any] | None = None) -> bytes:
        columns[PAGE] = list(page.entries)
        return dumps((columns, places) if places else columns, f"state of operator '{self.operator_name}'")

    def _drop_blank(self, entries: dict[Any, Entry]) -> None:
        for key in [key for key, entry in entries.items() if is_blank(entry[PAGE + 1 :])]:
            del entries[key]
            self.entries.pop(key, None)

    def _rewrite(self, value: Callable[[Entry], Any], slots: list[int]) -> None:
        """Set some slots of every entry to new values, page by page. Pages not in memory are not kept there."""
        for index in self._indexes():
            page = self._peek(index)
            for entry in page.entries.values():
                for slot in slots:
                    entry[slot] = value(entry)
            if index in self.pages:
                self._change(page)
            elif page.entries:
                self._write_back(page, NOTHING_EXPIRES)

    def _write_back(self, page: Page, now: int) -> None:
        """Write a page that is not in memory."""
        resident = self._resident
        page.dirty = True
        self._write(page, now)
        self._resident = resident

    def _sweep_next_page(self, now: int) -> None:
        """Sweep one page per batch, in turn, so that expired state also leaves pages that are never accessed."""
        indexes = self._indexes()
        index = indexes[self._batch % len(indexes)]
        page = self._peek(index)
        if self._has_expired(page, now):
            if index in self.pages:
                self._change(page)
            else:
                self._write_back(page, now)

    def _change(self, page: Page) -> None:
        """Mark a page in memory as changed as a whole."""
        page.dirty = True
        self._unlogged.add(page.index)

    def _has_expired(self, page: Page, now: int) -> bool:
        if now < page.expires:
            return False
        for slot, sweep in self._sweeps.items():
            for entry in page.entries.values():
                stored = entry[slot]
                if stored is not None and _lost_something(stored, sweep(stored, now)):
                    return True
        return False

    # -- eviction -----------------------------------------------------------------------------------------------

    def _evict(self) -> None:
        """Drop the least recently used pages from memory if the budget is exceeded."""
        if self.memory_budget is None or self._resident <= self.memory_budget:
            return
        used = 0
        for page in sorted(self.pages.values(), key=lambda p: (p.index < FIRST_YOUNG, -p.last_used, p.index)):
            used += page.size
            if used > self.memory_budget and page.index < FIRST_YOUNG:
                self._drop(page)

    def _roomy_page_at(self, index: int) -> Page:
        """Return a page. Other pages may have to leave memory."""
        page = self.page_at(index)
        if self._is_full():
            self._make_room(page)
        return page

    def _is_full(self) -> bool:
        return self.memory_budget is not None and self._resident > 2 * self.memory_budget

    def _make_room(self, needed: Page) -> None:
        """Write and drop the pages loaded first, in the middle of a batch that needs more memory than there is.

        No operator keeps an entry while it switches to another key, so only the requested page must stay.
        """
        self._place_newborn()
        for page in list(self.pages.values()):
            if page is not needed and page.index < FIRST_YOUNG:
                if page.may_have_changed():
                    self._write(page, NOTHING_EXPIRES)
                self._drop(page)
                if self._resident <= self.memory_budget:  # type: ignore[operator]
                    return

    def _drop(self, page: Page) -> None:
        self._resident -= page.size
        del self.pages[page.index]
        for key in page.entries:
            self.entries.pop(key, None)

    # -- new keys -----------------------------------------------------------------------------------------------

    def _place_newborn(self) -> None:
        """Put new keys into the pages of their hashes."""
        if self._newborn.entries:
            source = Page(_NEWBORN)
            source.expires = _NEVER  # later than any existing expiry
            source.entries, self._newborn.entries = self._newborn.entries, {}  # making room calls this method, too
            self._scatter(source)

    def _scatter(self, source: Page) -> None:
        """Move the entries of a page to the pages of their hashes."""
        index_of, groups = self.directory.index_of, self.max_parallelism
        by_index: dict[int, dict[Any, Entry]] = {}
        for code, (key, entry) in zip(key_hashes(source.entries), source.entries.items(), strict=True):
            by_index.setdefault(index_of(code // groups), {})[key] = entry
        source.entries = {}
        for index, entries in by_index.items():
            page = self._roomy_page_at(index)
            page.entries.update(entries)
            page.dirty = True
            page.expires = min(page.expires, source.expires)
            for entry in entries.values():
                entry[PAGE] = page
            self._chunks.move([source], [page])

    # -- growing ------------------------------------------------------------------------------------------------

    def _grow(self, expected_bytes: int, at_once: int = _SPLITS_PER_BATCH) -> None:
        directory = self.directory
        wanted = math.ceil(expected_bytes / self._page_bytes)
        if wanted > 2 * directory.page_count:
            self._rehash(wanted)
            return
        for _ in range(min(at_once, wanted - directory.page_count)):
            self._split()

    def _estimate(self, new_entries: list[Entry]) -> int:
        """Estimate the size of new keys in bytes, from a sample."""
        if len(new_entries) < 64:
            return 0
        sample = [entry[1:] for entry in new_entries[:: len(new_entries) // 32]]
        return len(dumps(sample, self.operator_name)) * len(new_entries) // len(sample)

    def _split(self) -> None:
        old_index, new_index = self.directory.add_page()
        self._spread([self.page_at(old_index)], {old_index, new_index})

    def _rehash(self, wanted: int) -> None:
        """Rehash everything at once if the number of pages more than doubles."""
        pages = [self.page_at(index) for index in range(self.directory.page_count)]
        self.directory.bits = max(self.directory.bits, (2 * wanted - 1).bit_length())  # room to grow
        self.directory.split = 0
        self._spread(pages, None)

    def _spread(self, pages: list[Page], targets: set[int] | None) -> None:
        groups = self.max_parallelism
        index_of = self.directory.index_of
        moved = [item for page in pages for item in page.entries.items()]
        for page in pages:
            page.entries = {}
        for index in targets or range(self.directory.page_count):
            if index not in self.pages:
                self.pages[index] = Page(index)
                self.pages[index].last_used = self._batch
            self.pages[index].expires = 0
            self._change(self.pages[index])
        codes = key_hashes([key for key, _ in moved])
        for code, (key, entry) in zip(codes, moved, strict=True):
            page = self.pages[index_of(code // groups)]
            page.entries[key] = entry
            page.dirty = True
            entry[PAGE] = page
        self._chunks.move(pages, [self.pages[index] for index in targets or range(self.directory.page_count)])


def _lost_something(stored: Any, kept: Any) -> bool:
    if kept is None or len(kept) != len(stored):  # a stamped value keeps its two parts
        return True
    return type(stored) is dict and any(kept[name] is not value for name, value in stored.items())


def thin(columns: list[Any]) -> None:
    """Replace columns that contain only None by None."""
    for number, column in enumerate(columns):
        if is_blank(column):
            columns[number] = None


def all_true(column: tuple[Any, ...]) -> bool:
    """Whether a column certainly contains no None. Uses the fastest test; some values have no truth value."""
    try:
        return all(column)
    except Exception:
        return False
