"""Pages for an engine whose checkpoint time must not grow with the state.

A checkpoint stores only the keys used since the last one: their new state goes to the change log. `entries` contains
just these keys, and is empty after every checkpoint. If there are many, some are logged earlier, after each step. A
page is written when it leaves memory, when it is split, or when its changes make up too much of the log. This happens
page by page between the steps of the engine (`tidy`), so a step waits for at most one page.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from penstock.runtime.records.key_groups import key_hash
from penstock.runtime.records.serialization import MISSING_OR_CHANGED, dumps, unreadable
from penstock.runtime.state.change_log import ChangeLog
from penstock.runtime.state.page_table import NOTHING_EXPIRES, all_true, thin
from penstock.runtime.state.pages import FIRST_SLOT, PAGE, Entry, Page, decode_page, is_blank
from penstock.runtime.state.young_pages import PageTableWithYoungPages

__all__ = ["LoggedPageTable"]

_KEYS_A_BLOB = 1_000
_EARLY_KEYS = 500  # keys that may wait for a checkpoint
_LOG_SHARE = 2  # the log may grow to this fraction of the pages (1/n)
_SECOND_CHANCES = 8
_PAGES_LEAVING = 2  # per loaded page, while memory is full


class LoggedPageTable(PageTableWithYoungPages):
    """A page table with a change log. Without a log, it behaves like its base class."""

    __slots__ = ("_early_at", "_fresh", "_logged_bytes", "_round", "_round_mark")

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._fresh: list[Any] = []  # new keys since the last checkpoint
        self._early_at = _EARLY_KEYS
        self._logged_bytes = 0  # since the last round began
        self._round: list[int] = []  # pages to write before older changes can be dropped
        self._round_mark: int | None = None

    def log_to(self, log: ChangeLog) -> None:
        """Log changes from now on. Apply loaded changes to their pages."""
        self._log = log
        self._merge_loaded(log)

    def find(self, key: Any) -> Entry | None:
        """Return the entry of a key if its page is in memory."""
        entry = self.entries.get(key)
        if entry is None and self._log is not None:
            page = self.pages.get(self.directory.index_of(key_hash(key) // self.max_parallelism))
            return None if page is None else page.entries.get(key)
        return entry

    # -- loading ------------------------------------------------------------------------------------------------

    def _merge_loaded(self, log: ChangeLog) -> None:
        loaded = log.loaded.pop(self._prefix, [])
        latest: dict[int, dict[Any, tuple[Any, ...]]] = {}
        for mark, name in sorted(loaded):
            for key, tail in self._loaded_changes(name):
                index = self.directory.index_of(key_hash(key) // self.max_parallelism)
                if mark >= log.page_marks.get(self._page_id(index), 0):
                    latest.setdefault(index, {})[key] = tail
            self._store.remove(name)
        for index, changes in latest.items():
            page = self._peek(index)
            for key, tail in changes.items():
                page.entries[key] = [page, *tail]
            self._write_back(page, NOTHING_EXPIRES)
        if loaded:
            log.drop_until(self._prefix, max(mark for mark, _ in loaded))

    def _loaded_changes(self, name: str) -> list[tuple[Any, tuple[Any, ...]]]:
        blob = self._store.get(name)
        assert blob is not None
        try:
            entries, _ = decode_page(blob, self._width)
            return [(key, tuple(tail)) for key, *tail in entries]
        except MISSING_OR_CHANGED as error:
            raise unreadable(f"state of operator '{self.operator_name}'", error) from error

    # -- a checkpoint -------------------------------------------------------------------------------------------

    def _log_changes(self, log: ChangeLog, now: int) -> None:
        """Log all keys that may have changed since the last call."""
        if self._sweeps:
            self._sweep_next_page(now)
        self._log_keys_in_use(log, now)
        self._early_at = _EARLY_KEYS
        if self._wanted_pages > 2 * self.directory.page_count:
            self._rehash(self._wanted_pages)
            self._write_unlogged(now)
        if self._round_mark is None and self._logged_bytes > self._longest_log(log):
            self._round_mark = log.mark
            self._round = [index for index, page in self.pages.items() if page.dirty]
            self._logged_bytes = 0

    def _log_many_keys(self, log: ChangeLog) -> bool:
        """Log the keys in use before a checkpoint is due, if there are many. Return whether this happened."""
        if len(self.entries) < self._early_at:
            return False
        self._log_keys_in_use(log, NOTHING_EXPIRES, early=True)
        self._early_at = len(self.entries) + _EARLY_KEYS
        return True

    def _log_keys_in_use(self, log: ChangeLog, now: int, *, early: bool = False) -> None:
        fresh = self._drop_untouched()
        in_use, self.entries = self.entries, {}
        whole = self._unlogged
        keys: list[Any] = []
        entries: list[Entry] = []
        for key, entry in in_use.items():
            page = entry[PAGE]
            if page.dirty or page.maybe_mutated:
                if page.chunks is None and page.index not in whole:
                    keys.append(key)
                    entries.append(entry)
                elif early:
                    self.entries[key] = entry  # the page is written only once per checkpoint
                else:
                    page.dirty = True
                    whole.add(page.index)
        written = 0
        for start in range(0, len(keys), _KEYS_A_BLOB):
            written += self._log_keys(log, keys[start : start + _KEYS_A_BLOB], entries[start : start + _KEYS_A_BLOB])
        for entry in entries:
            page = entry[PAGE]
            page.dirty, page.maybe_mutated = True, False
        if fresh and keys:
            self._expect(fresh, written // len(keys))
        self._write_unlogged(now)
        self._logged_bytes += written

    def _longest_log(self, log: ChangeLog) -> int:
        return max(log.least_bytes, self.directory.total_bytes // _LOG_SHARE)

    def _drop_untouched(self) -> list[Entry]:
        """Drop entries without state that were only read. Return the new entries that remain."""
        alive: list[Entry] = []
        for key in self._fresh:
            entry = self.entries.get(key)
            if entry is None:
                continue
            page = entry[PAGE]
            if entry[-1] is not None or not is_blank(entry[PAGE + 1 :]):
                alive.append(entry)
            elif page.written != self._batch:  # otherwise it may have been stored, and the log must record its removal
                del self.entries[key], page.entries[key]
        self._fresh.clear()
        return alive

    def _log_keys(self, log: ChangeLog, keys: list[Any], entries: list[Entry]) -> int:
        """Log the state of some keys, and return the number of bytes."""
        columns: list[Any] = list(zip(*entries, strict=True))
        if not any(map(all_true, columns[FIRST_SLOT:])):
            for key, entry in zip(keys, entries, strict=True):
                if is_blank(entry[PAGE + 1 :]):
                    entry[PAGE].entries.pop(key, None)  # the log records its removal
        columns[PAGE] = keys
        thin(columns)
        blob = dumps(columns, f"state of operator '{self.operator_name}'")
        if len(blob) > self._chunks.page_limit:  # large collections are stored in chunks beside their pages
            small = [len(dumps(entry[PAGE + 1 :], self.operator_name)) <= self._page_bytes for entry in entries]
            if not all(small):
                self._unlogged.update(entry[PAGE].index for entry, fits in zip(entries, small, strict=True) if not fits)
                kept = [number for number, fits in enumerate(small) if fits]
                return self._log_keys(log, [keys[n] for n in kept], [entries[n] for n in kept]) if kept else 0
        log.add(self._prefix, blob)
        self._note_written(blob)
        return len(blob)

    def _expect(self, fresh: Collection[Entry], size: int) -> None:
        """Count the size of new keys, which are not on a stored page yet."""
        for entry in fresh:
            entry[PAGE].size += size
        self._resident += size * len(fresh)
        self.directory.total_bytes += size * len(fresh)

    @property
    def _wanted_pages(self) -> int:
        return math.ceil(self.directory.total_bytes / self._page_bytes)

    def _write_unlogged(self, now: int) -> None:
        """Write the pages with changes that the log does not contain."""
        for index in self._unlogged:
            page = self.pages.get(index)
            if page is not None:
                self._write(page, now)
                page.maybe_mutated = False
        self._unlogged.clear()

    # -- between steps ------------------------------------------------------------------------------------------

    def tidy(self) -> bool:
        """Do one piece of pending work, and return whether there was any. There must be no current key."""
        if self._log is None:
            return False
        if self._is_full() and len(self.pages) > 1:
            self._leave(1)
            return True
        if self._round_mark is not None:
            self._continue_round(self._log)
            return True
        if self._wanted_pages > self.directory.page_count:
            self._split()
            self._write_unlogged(NOTHING_EXPIRES)
            return True
        return False

    @property
    def is_behind(self) -> bool:
        """Whether there is so much pending work that steps must wait."""
        return self._log is not None and (
            self._logged_bytes > 2 * self._longest_log(self._log)
            or 2 * self._wanted_pages > 3 * self.directory.page_count
        )

    def _continue_round(self, log: ChangeLog) -> None:
        """Write one page whose changes are only in the log. After the last page, shorten the log."""
        while self._round:
            page = self.pages.get(self._round.pop())
            if page is not None and page.dirty:
                self._write(page, NOTHING_EXPIRES)
                return
        assert self._round_mark is not None
        log.drop_until(self._prefix, self._round_mark)
        self._round_mark = None

    # -- eviction -----------------------------------------------------------------------------------------------

    def _evict(self) -> None:
        if self._log is None:  # otherwise pages leave one by one
            super()._evict()

    def _make_room(self, needed: Page) -> None:
        if self._log is None:
            super()._make_room(needed)
        else:
            self._leave(_PAGES_LEAVING, needed)

    def _is_full(self) -> bool:
        if self._log is None:
            return super()._is_full()
        return self.memory_budget is not None and self._resident > self.memory_budget

    def _leave(self, count: int, needed: Page | None = None) -> None:
        """Write and drop some pages that were not used recently."""
        for _ in range(min(count, len(self.pages) - 1)):
            page = next(iter(self.pages.values()))
            for _ in range(_SECOND_CHANCES):
                if page is not needed and page.last_used != self._batch:
                    break
                page = self._next_after(page)
            if page is needed:
                page = self._next_after(page)
            if page.may_have_changed():
                self._write(page, NOTHING_EXPIRES)
            self._drop(page)

    def _next_after(self, page: Page) -> Page:
        """Move the first page to the end, and return the new first one."""
        self.pages[page.index] = self.pages.pop(page.index)
        return next(iter(self.pages.values()))
