"""Keyed state in columns: the same pages in the store as other keyed state, but another form in memory.

Every key in memory has a number, its *row*. A field of the state is one column over all rows, so an operator reads and
writes the state of thousands of keys with a few calls. A page in the store has the format of
:mod:`penstock.runtime.state.page_table` for a slot with a tuple of the fields, so savepoints, rescaling and queries
need not know the difference. Timers are not supported.

Keys changed in a batch are written to young pages if that saves much: by age, not by hash. A key in a young page may
have an older version in the page of its hash; the young one counts. Young pages are always in memory.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.errors import StateAccessError
from penstock.runtime.records.key_groups import key_hash
from penstock.runtime.records.serialization import dumps
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import FIRST_SLOT, FIRST_YOUNG, Entry, Page, PageDirectory, decode_page
from penstock.runtime.table.batch import int64_column
from penstock.runtime.table.column_fields import FieldType, KeyRows, NumberField, ObjectField
from penstock.runtime.table.key_hash import key_hashes
from penstock.runtime.table.keys import GroupedRows
from penstock.runtime.table.segments import sort_small_numbers

_FIRST_CAPACITY = 1_024
_FEW = 64
_SAMPLE = 256  # rows; large enough because some keys have much more state than others
_NOWHERE = -1  # the page of a row that is not in use
_SMALL = 8  # pages; smaller state is not worth the effort
_YOUNG_SIZE = 4  # multiples of the usual page size; young pages are never split
_MOST_YOUNG = 2_048  # multiples of the usual page size; all of them are read when a task starts


class ColumnStateBackend(KeyedStateBackend):
    """The keyed state of a table operator. Call :meth:`define` once, before any other method."""

    __slots__ = (
        "_capacity",
        "_changed",
        "_dirty",
        "_empty",
        "_fields",
        "_free",
        "_hashes",
        "_loaded",
        "_page_of",
        "_sizes",
        "_stale",
        "_top",
        "_unsized",
        "index",
        "keys_by_row",
    )

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.index: dict[Any, int] = {}
        self.keys_by_row: list[Any] = []
        self._fields: list[NumberField | ObjectField] = []
        self._empty: tuple[Any, ...] = ()
        self._capacity = 0
        self._top = 0  # rows from here on have never been used
        self._free: list[int] = []
        self._page_of = array("q")
        self._hashes = array("q")
        self._loaded: dict[int, int] = {}  # page -> batch of its last use
        self._changed: list[pa.Int64Array] = []  # rows with new fields
        self._dirty: set[int] = set()  # pages to write, even if none of their rows has changed
        self._stale: set[int] = set()  # rows in young pages that the page of their hash may also contain
        self._sizes: dict[int, int] = {}  # bytes of the pages in memory, when last read or written
        self._unsized: list[int] = []  # rows of keys that are in no stored page

    def define(self, name: str, fields: Sequence[tuple[FieldType, Any]]) -> None:
        """Register the state: the type of each field, and its value for a new key and for stored data without it."""
        self.register(name, "table state")
        self._fields = [ObjectField() if kind is None else NumberField(kind) for kind, _ in fields]
        self._empty = tuple(initial for _, initial in fields)

    # -- many keys at once --------------------------------------------------------------------------------------

    def rows_of(self, grouped: GroupedRows) -> KeyRows:
        """Return the rows of keys. A key without state gets a row with the fields of a new key."""
        if self._unread_young:
            self._load_young()
        keys = grouped.keys
        rows: list[Any] = list(map(self.index.get, keys))
        if None in rows:
            missing = [position for position, row in enumerate(rows) if row is None]
            for position, row in zip(missing, self._find(grouped, missing), strict=True):
                rows[position] = row
        return KeyRows(rows)

    def gather(self, rows: KeyRows) -> list[Any]:
        """Return the fields of some rows, each as a column of numbers or a list of objects."""
        return [field.gather(rows) for field in self._fields]

    def scatter(self, rows: KeyRows, fields: Sequence[Any]) -> None:
        """Set the fields of some rows."""
        for field, values in zip(self._fields, fields, strict=True):
            field.scatter(rows, values)
        self._touch(rows)

    def gather_field(self, place: int, rows: KeyRows) -> Any:
        """Return one field of some rows."""
        return self._fields[place].gather(rows)

    def scatter_field(self, place: int, rows: KeyRows, values: Any) -> None:
        """Set one field of some rows."""
        self._fields[place].scatter(rows, values)
        self._touch(rows)

    @property
    def width(self) -> int:
        """The number of fields."""
        return len(self._fields)

    def remove(self, rows: list[int]) -> None:
        """Remove the keys of some rows."""
        self._forget_older_versions(rows)
        for row in rows:
            page = self._page_of[row]
            self._dirty.add(page)
            self._release(row)

    def _forget_older_versions(self, rows: list[int]) -> None:
        """Update the pages of their hashes, so that they do not restore keys that are removed from young pages."""
        if not self._stale:
            return
        older = self._stale.intersection(rows)
        self._stale -= older
        for row in older:
            home = self.directory.index_of(self._hashes[row])
            self._load_page(home)
            self._dirty.add(home)

    def _touch(self, rows: KeyRows) -> None:
        self._changed.append(rows.column)

    def all_rows(self) -> KeyRows:
        """Return the rows of all keys. Every page is loaded."""
        self._load_all()
        return KeyRows(list(self.index.values()))

    def _load_all(self) -> None:
        if self._unread_young:
            self._load_young()
        for page in range(self.directory.page_count):
            self._load_page(page)

    # -- rows of keys -------------------------------------------------------------------------------------------

    def _find(self, grouped: GroupedRows, missing: list[int]) -> list[int]:
        """Return the rows of keys that are not in memory: from pages, or new ones."""
        keys = [grouped.keys[position] for position in missing]
        chosen = [column.take(pa.array(missing, pa.int64())) for column in grouped.columns]
        hashes = pc.divide(key_hashes(chosen, len(keys)), pa.scalar(self.max_parallelism, pa.uint64())).cast(pa.int64())
        pages = self._pages_of(hashes)
        unread = set(pc.unique(pages).to_pylist()) - self._loaded.keys()
        if unread:
            for page in unread:
                self._load_page(page)
            found = list(map(self.index.get, keys))
            new = [position for position, row in enumerate(found) if row is None]
            if len(new) < len(found):
                added = iter(self._add([keys[i] for i in new], hashes.take(pa.array(new, pa.int64()))))
                return [next(added) if row is None else row for row in found]
        return self._add(keys, hashes)

    def _pages_of(self, hashes: pa.Int64Array) -> pa.Int64Array:
        """Return the page of each hash: :meth:`PageDirectory.index_of` for a column."""
        bits, split = self.directory.bits, self.directory.split
        index = pc.bit_wise_and(hashes, pa.scalar((1 << bits) - 1, pa.int64()))
        if not split:
            return index
        finer = pc.bit_wise_and(hashes, pa.scalar((2 << bits) - 1, pa.int64()))
        return pc.if_else(pc.less(index, pa.scalar(split, pa.int64())), finer, index)

    def _add(self, keys: list[Any], hashes: pa.Int64Array, fields: Sequence[Sequence[Any]] | None = None) -> list[int]:
        """Add rows for keys. They are new keys unless their fields are given."""
        count = len(keys)
        if fields is None and len(self._free) >= count:  # reuse the rows of removed keys
            rows, self._free = self._free[:count], self._free[count:]
            for row, key in zip(rows, keys, strict=True):
                self.keys_by_row[row] = key
                for field, value in zip(self._fields, self._empty, strict=True):
                    field.put(row, value)
            for row, page, code in zip(rows, self._pages_of(hashes).to_pylist(), hashes.to_pylist(), strict=True):
                self._page_of[row], self._hashes[row] = page, code
        else:
            start, self._top = self._top, self._top + count
            if self._top > self._capacity:
                self._grow_columns(max(_FIRST_CAPACITY, 2 * self._capacity, self._top))
            rows = list(range(start, self._top))
            self.keys_by_row += keys
            self._page_of[start : self._top] = array("q", self._pages_of(hashes).to_pylist())
            self._hashes[start : self._top] = array("q", hashes.to_pylist())
            for position, field in enumerate(self._fields):
                if fields is None:
                    field.fill(start, count, self._empty[position])
                else:
                    field.scatter(KeyRows(rows), fields[position])
        self.index.update(zip(keys, rows, strict=True))
        if fields is None:
            self._unsized += rows
        return rows

    def _release(self, row: int) -> None:
        del self.index[self.keys_by_row[row]]
        self.keys_by_row[row] = None
        self._page_of[row] = _NOWHERE
        self._free.append(row)

    def _grow_columns(self, capacity: int) -> None:
        self._capacity = capacity
        for field in self._fields:
            field.grow(capacity)
        self._page_of = _grown(self._page_of, capacity)
        self._hashes = _grown(self._hashes, capacity)

    # -- pages --------------------------------------------------------------------------------------------------

    def _load_page(self, index: int) -> None:
        if index in self._loaded or index >= FIRST_YOUNG:
            return
        self._loaded[index] = self._batch
        blob = self._store.get(self._page_id(index))
        if blob is None:
            return
        self._sizes[index] = len(blob)
        self._resident += len(blob)
        stored = self._stored_keys(blob)
        if self.directory.young:  # younger versions count
            stored = [(key, values) for key, values in stored if key not in self.index]
        self._add_stored(stored)

    def _load_young(self) -> None:
        """Read all young pages: only they know which keys they contain."""
        self._unread_young = False
        for number in self.directory.young:
            index = FIRST_YOUNG + number
            blob = self._store.get(self._page_id(index))
            assert blob is not None
            self._sizes[index] = len(blob)
            self._resident += len(blob)
            rows = self._add_stored(self._stored_keys(blob))
            self._settle(rows, index)
            self._stale.update(rows)

    def _stored_keys(self, blob: bytes) -> list[tuple[Any, Any]]:
        entries, _ = decode_page(blob, self._width)
        return [(key, (*values, *self._empty[len(values) :])) for key, _, _, values in entries if values is not None]

    def _add_stored(self, stored: list[tuple[Any, Any]]) -> list[int]:
        keys = [key for key, _ in stored]
        codes = array("q", [key_hash(key) // self.max_parallelism for key in keys])
        return self._add(keys, int64_column(codes), list(zip(*(values for _, values in stored), strict=True)))

    def _settle(self, rows: list[int], page: int) -> None:
        page_of = self._page_of
        for row in rows:
            page_of[row] = page

    def _rows_in(self, pages: set[int]) -> Iterator[tuple[int, list[int]]]:
        """Return the rows of some pages, page by page, including pages without rows."""
        used = int64_column(self._page_of).slice(0, self._top)
        chosen = pc.indices_nonzero(pc.is_in(used, pa.array(sorted(pages), pa.int64()))).cast(pa.int64())
        if len(chosen):
            encoded = used.take(chosen).dictionary_encode()
            order = sort_small_numbers(encoded.indices, len(encoded.dictionary))
            rows, runs = chosen.take(order).to_pylist(), pc.run_end_encode(encoded.indices.take(order))
            start = 0
            for page, end in zip(encoded.dictionary.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                yield page, rows[start:end]
                start = end
                pages.discard(page)
        for page in sorted(pages):
            yield page, []

    def _write_rows(self, index: int, rows: list[int]) -> None:
        before, size = self._sizes.get(index, 0), 0
        if rows:
            keys_by_row = self.keys_by_row
            where = KeyRows(rows)
            values = list(zip(*(field.values(where) for field in self._fields), strict=True))
            columns = [[keys_by_row[row] for row in rows], None, None, values]
            blob = dumps(columns, f"state of operator '{self.operator_name}'")
            self._store.put(self._page_id(index), blob)
            size = len(blob)
        elif before:
            self._store.remove(self._page_id(index))
        self._sizes[index] = size
        self.directory.total_bytes += size - before
        self._resident += size - before
        if index >= FIRST_YOUNG:
            self.directory.young[index - FIRST_YOUNG] = size
            if not rows:
                del self.directory.young[index - FIRST_YOUNG], self._sizes[index]

    def _peek(self, index: int) -> Page:
        """Return a page in the form of other keyed state, for savepoints and queries."""
        if self._unread_young:
            self._load_young()
        if index not in self._loaded and index < FIRST_YOUNG:
            page = super()._peek(index)
            page.entries = {key: entry for key, entry in page.entries.items() if key not in self.index}
            for entry in page.entries.values():
                entry[FIRST_SLOT] = (*entry[FIRST_SLOT], *self._empty[len(entry[FIRST_SLOT]) :])
            return page
        page = Page(index)
        for _, rows in self._rows_in({index}):
            tuples = zip(*(field.values(KeyRows(rows)) for field in self._fields), strict=True)
            for row, values in zip(rows, tuples, strict=True):
                page.entries[self.keys_by_row[row]] = [page, None, None, values]
        return page

    def peek(self, key: Any, slot: int, now: int) -> Any:
        """Return the value of a key. Only between batches."""
        if self._unread_young:
            self._load_young()
        row = self.index.get(key)
        if row is None:
            return super().peek(key, slot, now)
        return tuple(field.values(KeyRows([row]))[0] for field in self._fields)

    # -- end of a batch -----------------------------------------------------------------------------------------

    def snapshot(self, now: int) -> PageDirectory:
        """Write the changed rows, to their pages or to young ones."""
        if self._unread_young:
            self._load_young()
        if self.verify_key_shape:
            self._compare_keys([self.keys_by_row[row] for row in self._unsized if self._page_of[row] != _NOWHERE])
        self._make_pages(self._place_changed())
        if self._dirty:
            dirty, self._dirty = self._dirty, set()
            for page, rows in self._rows_in(dirty):
                self._write_rows(page, rows)
        self.timer_index.write()
        self._batch += 1
        self._evict()
        return self.directory

    def pages_to_write(self) -> set[int]:
        """Return the pages with changed rows so far."""
        return {*self._dirty, *pc.unique(self._changed_rows(forget=False)[1]).to_pylist()}

    def _changed_rows(self, *, forget: bool) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Return the rows with new fields that still have a key, and their pages."""
        empty = pa.array([], pa.int64())
        rows = pc.unique(pa.concat_arrays([empty, *self._changed]))
        if forget:
            self._changed = []
        pages = int64_column(self._page_of).take(rows)
        alive = pc.not_equal(pages, pa.scalar(_NOWHERE, pa.int64()))
        return rows.filter(alive), pages.filter(alive)

    def _place_changed(self) -> int:
        """Assign changed rows to pages, and return how many bytes move from young pages to others."""
        rows, pages = self._changed_rows(forget=True)
        is_old = pc.less(pages, pa.scalar(FIRST_YOUNG, pa.int64()))
        self._dirty.update(pc.unique(pages.filter(pc.invert(is_old))).to_pylist())
        rows, old = rows.filter(is_old).to_pylist(), set(pc.unique(pages.filter(is_old)).to_pylist())
        self._loaded.update(dict.fromkeys(old, self._batch))
        saved = sum(self._sizes.get(page, 0) for page in old - self._dirty)
        if saved > _SMALL * self._page_bytes:
            size = self._estimate_rows(rows)
            if saved > size + _SMALL * self._page_bytes:
                if size + sum(self.directory.young.values()) <= self._most_young():
                    self._put_into_young(rows, size)
                    return 0
                self._dirty |= old
                return self._end_young_pages()
        self._dirty |= old
        return 0

    def _most_young(self) -> int:
        most = _MOST_YOUNG * self._page_bytes
        return most if self.memory_budget is None else min(most, self.memory_budget // 4)

    def _put_into_young(self, rows: list[int], size: int) -> None:
        """Put rows into new young pages. The first rows fill up the last young page if it is small."""
        young = self.directory.young
        count = max(1, _YOUNG_SIZE * self._page_bytes * len(rows) // max(1, size))
        last = next(reversed(young), None)
        self._stale.update(set(rows).difference(self._unsized))
        for start in range(0, len(rows), count):
            if start or last is None or young[last] > self._page_bytes:
                last = self.directory.next_young
                self.directory.next_young += 1
                young[last] = 0
            self._settle(rows[start : start + count], FIRST_YOUNG + last)
            self._dirty.add(FIRST_YOUNG + last)
        self._unsized = []

    def _end_young_pages(self) -> int:
        """Move all rows of young pages to the pages of their hashes, and return their size in bytes."""
        young = self.directory.young
        pages = {FIRST_YOUNG + number for number in young}
        moved = sum(young.values())
        rows = [row for _, some in self._rows_in(set(pages)) for row in some]
        homes = self._pages_of(int64_column(self._hashes).take(KeyRows(rows).column))
        for home in pc.unique(homes).to_pylist():
            self._load_page(home)
        self._assign_pages(rows)
        for page in pages:
            self._store.remove(self._page_id(page))
            self._sizes.pop(page, None)
        self.directory.total_bytes -= moved
        self._resident -= moved
        self._dirty -= pages
        young.clear()
        self._stale.clear()
        return moved

    def _estimate_rows(self, rows: list[int]) -> int:
        """Estimate the size of some rows in bytes, from a sample."""
        some = rows[:: max(1, len(rows) // _SAMPLE)]
        columns = [[self.keys_by_row[row] for row in some], *(field.values(KeyRows(some)) for field in self._fields)]
        return len(dumps(list(zip(*columns, strict=True)), self.operator_name)) * len(rows) // max(1, len(some))

    def _make_pages(self, moved: int) -> None:
        """Add pages if there is more state than they should hold. `moved` bytes come from young pages."""
        rows, self._unsized = self._unsized, []
        new = moved
        if len(rows) > _FEW:
            new += self._estimate_rows([row for row in rows if self._page_of[row] != _NOWHERE])
        directory = self.directory
        wanted = math.ceil((directory.total_bytes - sum(directory.young.values()) + new) / self._page_bytes)
        if wanted > 2 * directory.page_count:
            self._load_all()
            directory.bits = max(directory.bits, (wanted - 1).bit_length())
            directory.split = 0
            self._dirty.update(self._loaded)
            self._assign_pages([row for row in self.index.values() if self._page_of[row] < FIRST_YOUNG])
            self._loaded = dict.fromkeys(range(directory.page_count), self._batch)
            return
        for _ in range(min(64, wanted - directory.page_count)):
            old, new_page = directory.add_page()
            self._load_page(old)
            self._loaded[new_page] = self._batch
            self._assign_pages([row for _, rows in self._rows_in({old}) for row in rows])
            self._dirty |= {old, new_page}

    def _assign_pages(self, rows: list[int]) -> None:
        """Assign rows to their current pages."""
        where = KeyRows(rows)
        pages = self._pages_of(int64_column(self._hashes).take(where.column)).to_pylist()
        page_of = self._page_of
        for row, page in zip(rows, pages, strict=True):
            page_of[row] = page
        self._dirty.update(pages)

    def _evict(self) -> None:
        """Drop the least recently used pages from memory if the budget is exceeded."""
        if self.memory_budget is None or self._resident <= self.memory_budget:
            return
        oldest_first = sorted(self._loaded, key=lambda page: (self._loaded[page], -page))
        leaving: set[int] = set()
        resident = self._resident
        for page in oldest_first:
            if resident <= self.memory_budget:
                break
            resident -= self._sizes.get(page, 0)
            leaving.add(page)
        for page, rows in list(self._rows_in(set(leaving))):
            for row in rows:
                self._release(row)
            self._resident -= self._sizes.pop(page, 0)
            del self._loaded[page]

    # -- the interface of other keyed state ---------------------------------------------------------------------

    def activate(self, key: Any) -> Entry:
        """Reject access by entry: columns have no entry of a single key."""
        raise StateAccessError(f"the state of operator '{self.operator_name}' is in columns: use rows_of()")

    def keys(self, slot: int | None = None) -> Iterator[Any]:
        """Return every key that has state."""
        self._load_all()
        return iter(list(self.index))

    @property
    def slot(self) -> int:
        """The slot in which other keyed state has the tuple of fields."""
        return FIRST_SLOT


def _grown(cells: array[int], capacity: int) -> array[int]:
    grown = array("q", bytes(8 * capacity))
    grown[: len(cells)] = cells
    return grown
