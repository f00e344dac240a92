"""The keyed state backend of one operator in one subtask.

While a batch runs, a key's states are plain Python objects in the slots of one list, its *entry*; setting the
current key is one dict lookup. Entries live in pages: loaded when a key in them is touched, written at the end of
the batch when something in them changed.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, NoReturn, cast

from penstock.common.errors import InvalidProgramError, KeySelectorError, StateAccessError, shorten
from penstock.runtime.key_groups import key_group_for, key_hash
from penstock.runtime.serialization import dumps
from penstock.runtime.state.pages import (
    EVENT_TIMERS,
    FIRST_SLOT,
    PAGE,
    PROCESSING_TIMERS,
    Entry,
    Page,
    PageDirectory,
    PageStore,
)

TARGET_PAGE_BYTES = 32 * 1024
_SPLITS_PER_BATCH = 64
_TIMER_SEGMENT = 256  # pages whose earliest timers are kept in one blob
NO_KEY: Any = type("NoKey", (), {"__repr__": lambda self: "NO_KEY"})()

TimerMinima = tuple[int | None, int | None]
Sweep = Callable[[Any, int], Any]


class _NoEntry:
    """Stands in for an entry while no key is in scope, so that the hot path needs no check."""

    def __init__(self, operator_name: str) -> None:
        self._operator_name = operator_name

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            f"keyed state of operator '{self._operator_name}' was accessed without a key in scope: use it inside "
            "process_element/on_timer/map... of a keyed stream, not in open(), close() or on a broadcast element"
        )

    __getitem__ = _refuse
    __setitem__ = _refuse


class KeyedStateBackend:
    """All keyed states and timers of one operator instance."""

    __slots__ = (
        "_batch",
        "_blank",
        "_dirty_segments",
        "_fresh",
        "_listeners",
        "_no_entry",
        "_page_bytes",
        "_prefix",
        "_store",
        "_sweeps",
        "_width",
        "directory",
        "entries",
        "entry",
        "key",
        "max_parallelism",
        "memory_budget",
        "operator_name",
        "pages",
        "timer_index",
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
        self.memory_budget = memory_budget
        self.directory = directory or PageDirectory()
        self.entries: dict[Any, Entry] = {}
        self.pages: dict[int, Page] = {}
        self.key: Any = NO_KEY
        self._no_entry: Any = _NoEntry(operator_name)
        self.entry: Entry = cast("Entry", self._no_entry)
        self._prefix = operator_id
        self._store = store
        self._page_bytes = page_bytes
        self._fresh: list[Any] = []
        self._sweeps: dict[int, Sweep] = {}
        self._batch = 0
        self._width = len(self.directory.layout)
        self._blank: tuple[None, ...] = (None,) * (FIRST_SLOT - 1 + self._width)
        self._listeners: list[Callable[[Page], None]] = []
        self._dirty_segments: set[int] = set()
        self.timer_index: dict[int, TimerMinima] = {}
        self._load_timer_index()

    # -- keys ---------------------------------------------------------------------------------------------------

    def set_current_key(self, key: Any) -> None:
        """Bring a key into scope; its page is loaded if need be."""
        entry = self.entries.get(key)
        if entry is None:
            entry = self.activate(key)
        self.key = key
        self.entry = entry

    def clear_current_key(self) -> None:
        """Take the key out of scope: state access raises from here on."""
        self.key = NO_KEY
        self.entry = self._no_entry

    def activate(self, key: Any) -> Entry:
        """The slow path of :meth:`set_current_key`: the entry of a key that is not in memory yet."""
        page = self.page_at(self.directory.index_of(key_hash(key) // self.max_parallelism))
        entry = page.entries.get(key)
        if entry is None:
            entry = [page, *self._blank]
            page.entries[key] = entry
            self.entries[key] = entry
            self._fresh.append(key)
        return entry

    def keys(self, slot: int | None = None) -> Iterator[Any]:
        """Every key that has state (in the given slot), loading all pages one after the other."""
        for index in range(self.directory.page_count):
            page = self.page_at(index)
            for key, entry in list(page.entries.items()):
                values = entry[FIRST_SLOT:] if slot is None else [entry[FIRST_SLOT + slot]]
                if any(value is not None for value in values):
                    yield key

    def key_group(self, key: Any) -> int:
        """The key group of a key."""
        return key_group_for(key, self.max_parallelism)

    # -- slots --------------------------------------------------------------------------------------------------

    def register(self, name: str, kind: str, sweep: Sweep | None = None) -> int:
        """The position in an entry of the named state; the same name always gets the same position."""
        layout = self.directory.layout
        position = next((index for index, (known, _) in enumerate(layout) if known == name), len(layout))
        if position < len(layout):
            if layout[position][1] != kind:
                raise InvalidProgramError(
                    f"state '{name}' of operator '{self.operator_name}' is a {layout[position][1]} "
                    f"and cannot be used as a {kind}"
                )
        else:
            layout.append((name, kind))
            self._width = len(layout)
            self._blank = (None,) * (FIRST_SLOT - 1 + self._width)
            for page in self.pages.values():
                for entry in page.entries.values():
                    entry.append(None)
        if sweep is not None:
            self._sweeps[FIRST_SLOT + position] = sweep
        return FIRST_SLOT + position

    # -- pages --------------------------------------------------------------------------------------------------

    def on_page_loaded(self, listener: Callable[[Page], None]) -> None:
        """Call `listener` with every page read from the store (the timer service fills its queues from it)."""
        self._listeners.append(listener)

    def page_at(self, index: int) -> Page:
        """The page with this index, read from the store if it is not in memory."""
        page = self.pages.get(index)
        if page is None:
            page = self.pages[index] = self._load(index)
        page.last_used = self._batch
        return page

    def _load(self, index: int) -> Page:
        page = Page(index)
        blob = self._store.get(self._page_id(index))
        if blob is None:
            return page
        page.size = len(blob)
        keys, *columns = pickle.loads(blob)
        columns += [None] * (FIRST_SLOT - 1 + self._width - len(columns))  # states registered since it was written
        filled = [repeat(None) if column is None else column for column in columns]
        page.entries = {key: [page, *tail] for key, *tail in zip(keys, *filled, strict=False)}
        self.entries.update(page.entries)
        for listener in self._listeners:
            listener(page)
        return page

    def _page_id(self, index: int) -> str:
        return f"{self._prefix}/p{index}"

    # -- end of a batch -----------------------------------------------------------------------------------------

    def snapshot(self, now: int) -> PageDirectory:
        """Write what changed to the store; the returned directory is kept by the task."""
        self.clear_current_key()
        alive = self._drop_untouched()
        self._grow(alive)
        for page in list(self.pages.values()):
            if page.dirty:
                self._write(page, now)
        self._write_timer_index()
        self._batch += 1
        self._evict()
        return self.directory

    def _drop_untouched(self) -> int:
        """Forget entries that were only looked at; returns how many new keys stay."""
        alive = 0
        for key in self._fresh:
            entry = self.entries.get(key)
            if entry is None:
                continue
            if entry.count(None) == len(entry) - 1:
                del self.entries[key]
                del entry[PAGE].entries[key]
            else:
                alive += 1
        self._fresh.clear()
        return alive

    def _write(self, page: Page, now: int) -> None:
        """Encode a page by columns, which pickles faster than entry by entry; keys without anything are dropped."""
        page.dirty = False
        page.last_used = self._batch
        entries = page.entries
        for slot, sweep in self._sweeps.items():
            for entry in entries.values():
                if entry[slot] is not None:
                    entry[slot] = sweep(entry[slot], now)
        columns: list[Any] = list(zip(*entries.values(), strict=True))
        # Only if every state is missing somewhere can a key have nothing at all; `all` is the fastest way to ask.
        if columns and not any(all(column) for column in columns[FIRST_SLOT:]):
            self._drop_blank(entries)
            columns = list(zip(*entries.values(), strict=True))
        blob = b""
        first_event = first_processing = None
        if entries:
            for number, column in enumerate(columns):
                if column[0] is None and column.count(None) == len(column):
                    columns[number] = None
            first_event = _earliest(columns[EVENT_TIMERS])
            first_processing = _earliest(columns[PROCESSING_TIMERS])
            columns[PAGE] = list(entries)
            blob = dumps(columns, f"state of operator '{self.operator_name}'")
            self._store.put(self._page_id(page.index), blob)
        elif page.size:
            self._store.remove(self._page_id(page.index))
        self._note_timers(page.index, (first_event, first_processing))
        self.directory.total_bytes += len(blob) - page.size
        page.size = len(blob)

    def _drop_blank(self, entries: dict[Any, Entry]) -> None:
        blank = FIRST_SLOT - 1 + self._width
        for key in [key for key, entry in entries.items() if entry.count(None) == blank]:
            del entries[key]
            self.entries.pop(key, None)

    def _evict(self) -> None:
        """Drop the pages used longest ago from memory when the budget is exceeded."""
        if self.memory_budget is None or sum(page.size for page in self.pages.values()) <= self.memory_budget:
            return
        used = 0
        for page in sorted(self.pages.values(), key=lambda p: (-p.last_used, p.index)):
            used += page.size
            if used > self.memory_budget:
                self._drop(page)

    def _drop(self, page: Page) -> None:
        del self.pages[page.index]
        for key in page.entries:
            self.entries.pop(key, None)

    # -- growth -------------------------------------------------------------------------------------------------

    def _grow(self, new_keys: int) -> None:
        directory = self.directory
        estimate = directory.total_bytes + self._estimate(new_keys)
        wanted = math.ceil(estimate / self._page_bytes)
        if wanted > 2 * directory.page_count:
            self._rehash(wanted)
            return
        for _ in range(min(_SPLITS_PER_BATCH, wanted - directory.page_count)):
            self._split()

    def _estimate(self, new_keys: int) -> int:
        """Bytes that keys not yet written will take, from a sample."""
        if new_keys < 64:
            return 0
        sample: list[list[Any]] = []
        for page in self.pages.values():
            if page.dirty:
                for entry in page.entries.values():
                    sample.append(entry[1:])
                    if len(sample) == 32:
                        return len(dumps(sample, self.operator_name)) * new_keys // 32
        return 0

    def _split(self) -> None:
        old_index, new_index = self.directory.add_page()
        self._spread([self.page_at(old_index)], {old_index, new_index})

    def _rehash(self, wanted: int) -> None:
        """More than double: address everything anew at once."""
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
            page.dirty = True
        for index in targets or range(self.directory.page_count):
            if index not in self.pages:
                self.pages[index] = Page(index)
                self.pages[index].last_used = self._batch
        for key, entry in moved:
            page = self.pages[index_of(key_hash(key) // groups)]
            page.entries[key] = entry
            page.dirty = True
            entry[PAGE] = page

    # -- timers -------------------------------------------------------------------------------------------------

    def _note_timers(self, index: int, minima: TimerMinima) -> None:
        if minima == (None, None):
            if self.timer_index.pop(index, None) is None:
                return
        elif self.timer_index.get(index) == minima:
            return
        else:
            self.timer_index[index] = minima
        self._dirty_segments.add(index // _TIMER_SEGMENT)

    def _load_timer_index(self) -> None:
        for segment in range(self.directory.page_count // _TIMER_SEGMENT + 1):
            blob = self._store.get(f"{self._prefix}/t{segment}")
            if blob is not None:
                self.timer_index.update(pickle.loads(blob))

    def _write_timer_index(self) -> None:
        for segment in self._dirty_segments:
            low = segment * _TIMER_SEGMENT
            pages = range(low, low + _TIMER_SEGMENT)
            minima = {index: self.timer_index[index] for index in pages if index in self.timer_index}
            name = f"{self._prefix}/t{segment}"
            if minima:
                self._store.put(name, pickle.dumps(minima, 5))
            else:
                self._store.remove(name)
        self._dirty_segments.clear()


def _earliest(timers: Any) -> int | None:
    """The smallest timestamp in a column of timer sets."""
    if timers is None:
        return None
    return min(timer if type(timer) is int else timer[0] for some in timers if some for timer in some)


def check_hashable(key: Any, operator_name: str) -> None:
    """A clear error for a key that cannot be a dict key."""
    try:
        hash(key)
    except TypeError:
        raise KeySelectorError(
            f"the key selector before operator '{operator_name}' returned {shorten(key)} of type "
            f"{type(key).__name__}, which cannot be a key: return a hashable value such as a string, number or tuple"
        ) from None
