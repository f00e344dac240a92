"""Build pages from entries in any order: how restored keyed state gets into the store.

The number of pages follows from the size of the state in the savepoint. If this does not fit well into memory, entries
are first distributed to temporary files, one per group of pages.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO, Any

from penstock.runtime.records.key_groups import key_hash
from penstock.runtime.records.serialization import dumps
from penstock.runtime.state.page_table import TARGET_PAGE_BYTES
from penstock.runtime.state.pages import (
    EVENT_TIMERS,
    PAGE,
    PROCESSING_TIMERS,
    PageDirectory,
    PageStore,
    earliest_timer,
    is_blank,
    keyed_state_page,
)
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.state.timer_index import SEGMENT, TimerMinima, write_segment

BUCKET_BYTES = 32 * 1024 * 1024
_SPILL_ENTRIES = 2_000

EntryTuple = tuple[Any, ...]


class PageBuilder:
    """Writes the pages, the timer index and the directory of one operator in one subtask."""

    def __init__(
        self, prefix: str, operator_name: str, store: PageStore, max_parallelism: int, directory: PageDirectory
    ) -> None:
        self._prefix = prefix
        self._name = operator_name
        self._store = store
        self._max_parallelism = max_parallelism
        self.directory = directory
        self._records = RecordNotes(directory.records)
        self._minima: dict[int, TimerMinima] = {}

    def build(self, entries: Iterable[EntryTuple], expected_bytes: int) -> PageDirectory:
        """Write all entries of the subtask, and return their directory."""
        wanted = max(1, expected_bytes // TARGET_PAGE_BYTES)
        self.directory.bits = (wanted - 1).bit_length()
        self.directory.split = 0
        buckets = min(self.directory.page_count, expected_bytes // BUCKET_BYTES + 1)
        if buckets == 1:
            self._write_pages(entries)
        else:
            self._spill(entries, buckets)
        self._write_timer_index()
        return self.directory

    def _index_of(self, key: Any) -> int:
        return self.directory.index_of(key_hash(key) // self._max_parallelism)

    def _spill(self, entries: Iterable[EntryTuple], buckets: int) -> None:
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile(prefix="penstock-restore-")) for _ in range(buckets)]
            waiting: list[list[EntryTuple]] = [[] for _ in range(buckets)]
            for entry in entries:
                bucket = self._index_of(entry[0]) % buckets
                waiting[bucket].append(entry)
                if len(waiting[bucket]) >= _SPILL_ENTRIES:
                    self._spill_some(files[bucket], waiting[bucket])
            for bucket, file in enumerate(files):
                self._spill_some(file, waiting[bucket])
                file.seek(0)
                self._write_pages(_spilled(file))
                file.truncate(0)

    def _spill_some(self, file: IO[bytes], entries: list[EntryTuple]) -> None:
        if entries:
            blob = dumps(entries, f"state of operator '{self._name}'")
            file.write(len(blob).to_bytes(8, "little") + blob)
            entries.clear()

    def _write_pages(self, entries: Iterable[EntryTuple]) -> None:
        pages: dict[int, list[EntryTuple]] = {}
        for entry in entries:
            index = self._index_of(entry[0])
            known = pages.get(index)
            if known is None:
                pages[index] = [entry]
            else:
                known.append(entry)
        for index in sorted(pages):
            self._write_page(index, pages.pop(index))

    def _write_page(self, index: int, entries: list[EntryTuple]) -> None:
        columns: list[Any] = [None if is_blank(column) else column for column in zip(*entries, strict=True)]
        columns[PAGE] = [entry[0] for entry in entries]  # the key may be None
        blob = dumps(columns, f"state of operator '{self._name}'")
        self._store.put(keyed_state_page(self._prefix, index), blob)
        self._records.note(blob)
        self.directory.total_bytes += len(blob)
        minima = (earliest_timer(columns[EVENT_TIMERS]), earliest_timer(columns[PROCESSING_TIMERS]))
        if minima != (None, None):
            self._minima[index] = minima

    def _write_timer_index(self) -> None:
        segments: dict[int, dict[int, TimerMinima]] = {}
        for index, minima in self._minima.items():
            segments.setdefault(index // SEGMENT, {})[index] = minima
        for segment, content in segments.items():
            write_segment(self._store, self._prefix, segment, content)


def _spilled(file: IO[bytes]) -> Iterator[EntryTuple]:
    while head := file.read(8):
        yield from pickle.loads(file.read(int.from_bytes(head, "little")))
