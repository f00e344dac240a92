"""The keyed state backend of one operator in one subtask.

While a batch runs, a key's states are plain Python objects in the slots of one list, its *entry*; setting the
current key is one dict lookup. Entries live in pages: loaded when a key in them is touched, written at the end of
the batch when something in them changed.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast
from zlib import crc32

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
    decode_page,
    earliest_timer,
)
from penstock.runtime.state.state_types import Adapter, TypeDescription, mismatch, slot_adapter

TARGET_PAGE_BYTES = 32 * 1024
_SPLITS_PER_BATCH = 64
_NOTHING_EXPIRES = -(1 << 62)  # the end of a batch is the time to sweep
TIMER_SEGMENT = 256  # pages whose earliest timers are kept in one blob
DROPPED = "dropped state"
"""The kind of a state that was restored but is not wanted any more: its place in entries stays empty."""
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
        "_adapters",
        "_batch",
        "_blank",
        "_dirty_segments",
        "_fresh",
        "_listeners",
        "_no_entry",
        "_page_bytes",
        "_prefix",
        "_resident",
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
        "queryable",
        "registered",
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
        self._resident = 0  # bytes of the pages in memory, as last read or written
        self._fresh: list[Any] = []
        self._sweeps: dict[int, Sweep] = {}
        self._adapters: dict[int, Adapter] = {}
        self._batch = 0
        self._width = len(self.directory.layout)
        self._blank: tuple[None, ...] = (None,) * (FIRST_SLOT - 1 + self._width)
        self._listeners: list[Callable[[Page], None]] = []
        self._dirty_segments: set[int] = set()
        self.registered: set[str] = set()
        self.queryable: dict[str, str] = {}  # name for the outside -> state name
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
        if self.memory_budget is not None and self._resident > 2 * self.memory_budget:
            self._make_room(page)
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

    def scan(self, now: int) -> Iterator[tuple[Any, ...]]:
        """All entries as (key, event timers, processing timers, slot 0, ...), without what expired, page by page.

        Between batches only. Pages that are not in memory are read and not kept.
        """
        for index in range(self.directory.page_count):
            page = self.pages.get(index)
            if page is None:
                page = Page(index)
                blob = self._store.get(self._page_id(index))
                if blob is None:
                    continue
                self._fill(page, blob)
            for key, entry in page.entries.items():
                values = entry[1:]
                for slot, sweep in self._sweeps.items():
                    if entry[slot] is not None:
                        values[slot - 1] = sweep(entry[slot], now)
                if values.count(None) != len(values):
                    yield (key, *values)

    def peek(self, key: Any, slot: int) -> Any:
        """What a key has in a slot, without bringing it into memory; between batches."""
        index = self.directory.index_of(key_hash(key) // self.max_parallelism)
        page = self.pages.get(index)
        if page is None:
            page = Page(index)
            blob = self._store.get(self._page_id(index))
            if blob is not None:
                self._fill(page, blob)
        entry = page.entries.get(key)
        return None if entry is None else entry[slot]

    def key_group(self, key: Any) -> int:
        """The key group of a key."""
        return key_group_for(key, self.max_parallelism)

    # -- slots --------------------------------------------------------------------------------------------------

    def register(
        self, name: str, kind: str, sweep: Sweep | None = None, type_description: TypeDescription | None = None
    ) -> int:
        """The position in an entry of the named state; the same name always gets the same position."""
        layout = self.directory.layout
        position = next((index for index, (known, _) in enumerate(layout) if known == name), len(layout))
        if position < len(layout):
            if layout[position][1] != kind:
                raise InvalidProgramError(
                    f"state '{name}' of operator '{self.operator_name}' is a {layout[position][1]} "
                    f"and cannot be used as a {kind}"
                )
            self._check_type(name, kind, FIRST_SLOT + position, type_description)
        else:
            layout.append((name, kind))
            self._width = len(layout)
            self._blank = (None,) * (FIRST_SLOT - 1 + self._width)
            for page in self.pages.values():
                for entry in page.entries.values():
                    entry.append(None)
        if type_description is not None:
            self.directory.types.setdefault(name, type_description)
        if sweep is not None:
            self._sweeps[FIRST_SLOT + position] = sweep
        self.registered.add(name)
        return FIRST_SLOT + position

    def _check_type(self, name: str, kind: str, slot: int, wanted: TypeDescription | None) -> None:
        """State that was written with another type: refuse it, or adapt its values when they are read."""
        known = self.directory.types.get(name)
        reason = mismatch(known, wanted)
        if reason is not None:
            raise InvalidProgramError(
                f"state '{name}' of operator '{self.operator_name}' was stored with another type: {reason}. Use a new "
                "name for state of another type"
            )
        adapter = slot_adapter(kind, known, wanted)
        if adapter is not None and slot not in self._adapters:
            self._adapters[slot] = adapter
            for entry in self.entries.values():
                if entry[slot] is not None:
                    entry[slot] = adapter(entry[slot])

    def drop_states(self, names: set[str]) -> None:
        """Remove states for good, page by page; their slots stay empty."""
        layout = self.directory.layout
        slots = [FIRST_SLOT + index for index, (name, _) in enumerate(layout) if name in names]
        for index in range(self.directory.page_count):
            loaded = index in self.pages
            page = self.page_at(index)
            for entry in page.entries.values():
                for slot in slots:
                    entry[slot] = None
            self._write(page, 0)
            if not loaded and index not in self.timer_index:  # who has timers is in the queues now, and stays
                self._drop(page)
        for index, (name, _) in enumerate(layout):
            if name in names:
                layout[index] = (f"dropped {index}", DROPPED)
                self.directory.types.pop(name, None)

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
        self._fill(page, blob)
        self._resident += page.size
        self.entries.update(page.entries)
        for listener in self._listeners:
            listener(page)
        return page

    def _fill(self, page: Page, blob: bytes) -> None:
        page.size, page.check = len(blob), crc32(blob)
        page.entries = {key: [page, *tail] for key, *tail in decode_page(blob, self._width)}
        for slot, adapt in self._adapters.items():
            for entry in page.entries.values():
                if entry[slot] is not None:
                    entry[slot] = adapt(entry[slot])

    def _page_id(self, index: int) -> str:
        return f"{self._prefix}/p{index}"

    # -- end of a batch -----------------------------------------------------------------------------------------

    def snapshot(self, now: int) -> PageDirectory:
        """Write what changed to the store; the returned directory is kept by the task."""
        self.clear_current_key()
        alive = self._drop_untouched()
        self._grow(alive)
        if self._sweeps:
            self._sweep_next_page(now)
        for page in list(self.pages.values()):
            if page.dirty or (page.lent and page.can_change_in_place()):
                self._write(page, now)
            page.lent = False
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
        """Encode a page by columns, which pickles faster than entry by entry; keys without anything are dropped.

        A page that was only read is stored if an object in it was changed in place.
        """
        updated, page.dirty = page.dirty, False
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
            first_event = earliest_timer(columns[EVENT_TIMERS])
            first_processing = earliest_timer(columns[PROCESSING_TIMERS])
            columns[PAGE] = list(entries)
            blob = dumps(columns, f"state of operator '{self.operator_name}'")
            check = crc32(blob)
            if updated or check != page.check:
                self._store.put(self._page_id(page.index), blob)
            page.check = check
        elif page.size:
            self._store.remove(self._page_id(page.index))
        self._note_timers(page.index, (first_event, first_processing))
        self.directory.total_bytes += len(blob) - page.size
        self._resident += len(blob) - page.size
        page.size = len(blob)

    def _drop_blank(self, entries: dict[Any, Entry]) -> None:
        blank = FIRST_SLOT - 1 + self._width
        for key in [key for key, entry in entries.items() if entry.count(None) == blank]:
            del entries[key]
            self.entries.pop(key, None)

    def _sweep_next_page(self, now: int) -> None:
        """One page a batch, in turn: state that expired goes though nobody touches its page any more."""
        index = self._batch % self.directory.page_count
        page = self.pages.get(index)
        if page is not None:
            page.dirty = page.dirty or self._has_expired(page, now)
            return
        page = Page(index)
        blob = self._store.get(self._page_id(index))
        if blob is not None:
            self._fill(page, blob)
            if self._has_expired(page, now):
                resident = self._resident
                self._write(page, now)
                self._resident = resident  # it was not in memory, and is not now

    def _has_expired(self, page: Page, now: int) -> bool:
        for slot, sweep in self._sweeps.items():
            for entry in page.entries.values():
                stored = entry[slot]
                if stored is not None:
                    kept = sweep(stored, now)
                    if kept is None or len(kept) != len(stored):  # a stamped value keeps its two parts
                        return True
        return False

    def _evict(self) -> None:
        """Drop the pages used longest ago from memory when the budget is exceeded."""
        if self.memory_budget is None or self._resident <= self.memory_budget:
            return
        used = 0
        for page in sorted(self.pages.values(), key=lambda p: (-p.last_used, p.index)):
            used += page.size
            if used > self.memory_budget:
                self._drop(page)

    def _make_room(self, needed: Page) -> None:
        """In the middle of a batch that touches more than fits: pages loaded first are written and leave memory.

        No operator keeps an entry while it turns to another key, so only the page that was just asked for must stay.
        """
        for page in list(self.pages.values()):
            if page is not needed:
                if page.dirty:
                    self._write(page, _NOTHING_EXPIRES)
                self._drop(page)
                if self._resident <= self.memory_budget:  # type: ignore[operator]
                    return

    def _drop(self, page: Page) -> None:
        self._resident -= page.size
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
        self._dirty_segments.add(index // TIMER_SEGMENT)

    def _load_timer_index(self) -> None:
        for segment in range(self.directory.page_count // TIMER_SEGMENT + 1):
            blob = self._store.get(f"{self._prefix}/t{segment}")
            if blob is not None:
                self.timer_index.update(pickle.loads(blob))

    def _write_timer_index(self) -> None:
        for segment in self._dirty_segments:
            low = segment * TIMER_SEGMENT
            pages = range(low, low + TIMER_SEGMENT)
            minima = {index: self.timer_index[index] for index in pages if index in self.timer_index}
            name = f"{self._prefix}/t{segment}"
            if minima:
                self._store.put(name, pickle.dumps(minima, 5))
            else:
                self._store.remove(name)
        self._dirty_segments.clear()


def check_hashable(key: Any, operator_name: str) -> None:
    """A clear error for a key that cannot be a dict key."""
    try:
        hash(key)
    except TypeError:
        raise KeySelectorError(
            f"the key selector before operator '{operator_name}' returned {shorten(key)} of type "
            f"{type(key).__name__}, which cannot be a key: return a hashable value such as a string, number or tuple"
        ) from None
