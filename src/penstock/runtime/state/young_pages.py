"""Young pages: where new keys stay until they move to the pages of their hashes.

New keys are scattered over all pages. If every batch added many, each batch would write the whole state. Such keys are
therefore written to their own pages, the young ones, by age instead of by hash. When young pages have become half as
large as the others, their keys move to the pages of their hashes. Young keys have no timers and stay in memory.
"""

from __future__ import annotations

from penstock.runtime.state.page_table import PageTable
from penstock.runtime.state.pages import EVENT_TIMERS, FIRST_YOUNG, PAGE, PROCESSING_TIMERS, Page, is_blank

_WORTH_IT = 4  # the factor by which the saved bytes must exceed the written bytes
_SMALL = 8  # pages; smaller state is always written as a whole
_MAX_YOUNG_BYTES = 64 * 1024 * 1024  # all of them are read when a task starts


class PageTableWithYoungPages(PageTable):
    """A page table that keeps new keys apart if this reduces writing."""

    __slots__ = ()

    def _settle_newborn(self) -> None:
        """Put the keys added in this batch into pages, and add pages."""
        newborn = self._newborn
        entries = newborn.entries
        for key in [key for key, entry in entries.items() if entry[-1] is None and is_blank(entry[PAGE + 1 :])]:
            del entries[key], self.entries[key]  # it was only read
        size = self._estimate(list(entries.values()))
        young_bytes = sum(self.directory.young.values())
        if size and self._is_worth_a_young_page(size):
            if size + young_bytes <= self._most_young_bytes(young_bytes):
                self._grow(self.directory.total_bytes - young_bytes)
                self._make_young(-(-len(entries) * self._page_bytes // size))
                return
            self._grow(self.directory.total_bytes + size, self.directory.page_count)
            self._move_to_their_pages([self.page_at(index) for index in self._indexes() if index >= FIRST_YOUNG])
        else:
            self._grow(self.directory.total_bytes - young_bytes + size)
        self._place_newborn()

    def _is_worth_a_young_page(self, size: int) -> bool:
        """Whether writing new keys of this size to young pages saves several times as many bytes."""
        directory, newborn = self.directory, self._newborn
        if any(entry[EVENT_TIMERS] or entry[PROCESSING_TIMERS] for entry in newborn.entries.values()):
            return False
        written = sum(page.dirty for page in self.pages.values() if page.index < FIRST_YOUNG)
        clean = max(0, directory.page_count - written)
        touched = min(clean, len(newborn.entries))
        old_bytes = directory.total_bytes - sum(directory.young.values())
        return touched * old_bytes // directory.page_count > _WORTH_IT * size + _SMALL * self._page_bytes

    def _most_young_bytes(self, young_bytes: int) -> int:
        most = min((self.directory.total_bytes - young_bytes) // 2, _MAX_YOUNG_BYTES)
        return most if self.memory_budget is None else min(most, self.memory_budget // 4)

    def _make_young(self, keys: int) -> None:
        """Create young pages with this number of new keys each."""
        directory, newborn = self.directory, self._newborn
        items = list(newborn.entries.items())
        newborn.entries = {}
        for start in range(0, len(items), keys):
            page = Page(FIRST_YOUNG + directory.next_young)
            directory.young[directory.next_young] = 0
            directory.next_young += 1
            page.entries = dict(items[start : start + keys])
            page.dirty = True
            self.pages[page.index] = page
            for entry in page.entries.values():
                entry[PAGE] = page

    def _move_to_their_pages(self, young: list[Page]) -> None:
        """Move the keys of young pages to the pages of their hashes, and remove the young pages."""
        for page in young:
            if page.size:
                self._store.remove(self._page_id(page.index))
                self.directory.total_bytes -= page.size
                self._resident -= page.size
            del self.pages[page.index], self.directory.young[page.index - FIRST_YOUNG]
            self._scatter(page)
            self._chunks.remove(page, {})

    def _load_young(self) -> None:
        """Read all young pages: only they know which keys they contain."""
        self._unread_young = False
        for number in self.directory.young:
            self.page_at(FIRST_YOUNG + number)

    def _end_young_pages_with_timers(self) -> None:
        """Move keys with timers out of young pages: the timer index covers only other pages."""
        timed = [
            page
            for page in self.pages.values()
            if page.index >= FIRST_YOUNG
            and page.dirty
            and any(entry[EVENT_TIMERS] or entry[PROCESSING_TIMERS] for entry in page.entries.values())
        ]
        self._move_to_their_pages(timed)

    def _end_empty_young_pages(self) -> None:
        """Remove young pages without keys."""
        young = self.directory.young
        for number in list(young):
            page = self.pages.get(FIRST_YOUNG + number)
            if page is not None and not page.entries:
                del young[number], self.pages[page.index]
