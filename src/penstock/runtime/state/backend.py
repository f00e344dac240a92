"""The keyed state backend of one operator in one subtask.

During a batch, the states of a key are plain Python objects in the slots of one list, its *entry*. Setting the current
key is one dict lookup. Entries live in pages. A page is loaded when one of its keys is accessed, and written at the end
of the batch if it has changed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NoReturn, cast

from penstock.common.errors import InvalidProgramError, StateAccessError
from penstock.runtime.records.key_groups import key_group_for, key_hash
from penstock.runtime.state.key_forms import forms_of, other_form
from penstock.runtime.state.logged_pages import LoggedPageTable
from penstock.runtime.state.page_chunks import Growing
from penstock.runtime.state.page_table import TARGET_PAGE_BYTES
from penstock.runtime.state.pages import FIRST_SLOT, Entry, PageDirectory, PageStore, is_blank
from penstock.runtime.state.seen_types import SeenTypes, seen_types
from penstock.runtime.state.state_types import (
    PYTHON,
    TypeDescription,
    is_complete,
    key_types_mismatch,
    mismatch,
    slot_adapter,
)
from penstock.runtime.state.sweeps import Sweep

DROPPED = "dropped state"
"""The kind of a restored state that is no longer wanted. Its slot in entries stays empty."""
_PAGES_OF_KEYS = 8
NO_KEY: Any = type("NoKey", (), {"__repr__": lambda self: "NO_KEY"})()


class _NoEntry:
    """Replaces the entry while there is no current key, so that the hot path needs no check."""

    def __init__(self, operator_name: str) -> None:
        self._operator_name = operator_name

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            f"keyed state of operator '{self._operator_name}' was accessed without a current key: use it inside "
            "process_element/on_timer/map... of a keyed stream, not in open(), close() or on a broadcast element"
        )

    __getitem__ = _refuse
    __setitem__ = _refuse


class KeyedStateBackend(LoggedPageTable):
    """All keyed states and timers of one operator instance."""

    __slots__ = (
        "_blank",
        "_no_entry",
        "_savepoint_sweeps",
        "entry",
        "key",
        "queryable",
        "registered",
        "verify_key_shape",
    )

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
        super().__init__(operator_id, operator_name, store, max_parallelism, directory, page_bytes, memory_budget)
        self.key: Any = NO_KEY
        self._no_entry: Any = _NoEntry(operator_name)
        self.entry: Entry = cast("Entry", self._no_entry)
        self._blank: tuple[None, ...] = (None,) * (FIRST_SLOT - 1 + self._width)
        self._savepoint_sweeps: dict[int, Sweep] = {}
        self.registered: set[str] = set()
        self.queryable: dict[str, str] = {}  # queryable name -> state name
        self.verify_key_shape = False
        """Whether the keys of this program must still be compared with those of the restored state."""

    # -- keys ---------------------------------------------------------------------------------------------------

    def set_current_key(self, key: Any) -> None:
        """Set the current key. Load its page if necessary."""
        entry = self.entries.get(key)
        if entry is None:
            entry = self.activate(key)
        self.key = key
        self.entry = entry

    def clear_current_key(self) -> None:
        """Remove the current key: state access fails from now on."""
        self.key = NO_KEY
        self.entry = self._no_entry

    def activate(self, key: Any) -> Entry:
        """The slow path of :meth:`set_current_key`: return the entry of a key that is not in memory."""
        if self._unread_young:
            self._load_young()
            if key in self.entries:
                return self.entries[key]
        if self._log is not None:
            return self._activate_logged(key)
        directory = self.directory
        entry = None
        if len(self.pages) - len(directory.young) < directory.page_count:  # otherwise all pages are in memory
            page = self._roomy_page_at(directory.index_of(key_hash(key) // self.max_parallelism))
            entry = page.entries.get(key)
        if entry is None:
            newborn = self._newborn
            entry = self.entries[key] = newborn.entries[key] = [newborn, *self._blank]
        return entry

    def _activate_logged(self, key: Any) -> Entry:
        """Activate a key in an engine with a change log, where `entries` contains only the keys in use."""
        page = self._roomy_page_at(self.directory.index_of(key_hash(key) // self.max_parallelism))
        entry = page.entries.get(key)
        if entry is None:
            entry = page.entries[key] = [page, *self._blank]
            self._fresh.append(key)
        self.entries[key] = entry
        return entry

    def keys(self, slot: int | None = None) -> Iterator[Any]:
        """Return every key that has state (in the given slot). Pages are loaded one by one within the memory budget."""
        self._place_newborn()
        for index in self._indexes():
            page = self._roomy_page_at(index)
            for key, entry in list(page.entries.items()):
                values = entry[FIRST_SLOT:] if slot is None else [entry[FIRST_SLOT + slot]]
                if any(value is not None for value in values):
                    yield key

    def scan(self, now: int) -> Iterator[tuple[Any, ...]]:
        """Return all entries as (key, event timers, processing timers, slot 0, ...), without expired values, page by
        page.

        Call it only between batches. Pages that are not in memory are read and not kept.
        """
        for index in self._indexes():
            for key, entry in self._peek(index).entries.items():
                values = entry[1:]
                for slot, sweep in self._savepoint_sweeps.items():
                    if entry[slot] is not None:
                        values[slot - 1] = sweep(entry[slot], now)
                if not is_blank(values):
                    yield (key, *values)

    def peek(self, key: Any, slot: int, now: int) -> Any:
        """Return the unexpired value of a key in a slot without loading it into memory. Only between batches."""
        if self._unread_young:
            self._load_young()
        entry = self.entries.get(key)
        if entry is None:
            entry = self._peek(self.directory.index_of(key_hash(key) // self.max_parallelism)).entries.get(key)
        stored = None if entry is None else entry[slot]
        sweep = self._savepoint_sweeps.get(slot)
        return stored if stored is None or sweep is None else sweep(stored, now)

    def _some_keys(self, without: Container[Any] = ()) -> list[Any]:
        """Return the stored keys of some pages."""
        found: list[Any] = []
        pages = 0
        for index in self._indexes():
            keys = [key for key in self._peek(index).entries if key not in without]
            found += keys
            pages += bool(keys)
            if pages == _PAGES_OF_KEYS:
                break
        return found

    def check_key_types(self, wanted: list[TypeDescription | None]) -> None:
        """Before the first record, reject declared key types that differ from those of the stored state.

        If no key type was declared so far, check the types of some stored keys, once.
        """
        declared = [each for each in wanted if each is not None]
        known = self.directory.key_types
        if declared and self.directory.total_bytes:
            seen = known or [{"type": PYTHON, "seen": sorted(seen_types(self._some_keys()))}]
            reason = key_types_mismatch(seen, wanted)
            if reason is not None:
                raise InvalidProgramError(
                    f"operator '{self.operator_name}' had another key type when its state was written: {reason}. "
                    "Key types cannot change, because no record would find the existing state. Declare the old type"
                )
        self.directory.key_types = declared or known

    def _compare_keys(self, new: list[Any]) -> None:
        """Compare the keys that the key selector returns with the stored keys."""
        if new and self.directory.total_bytes:
            known = forms_of(self._some_keys(without=set(new)))
            other = other_form(known, forms_of(new))
            if other is not None:
                raise InvalidProgramError(
                    f"a key of operator '{self.operator_name}' is {other} when its state was written: no record would "
                    "find the existing state. Let the key selector return the previous form of keys, or allow state "
                    "that is not restored (execution.savepoint.ignore-unclaimed-state)"
                )

    def key_group(self, key: Any) -> int:
        """Return the key group of a key."""
        return key_group_for(key, self.max_parallelism)

    # -- slots --------------------------------------------------------------------------------------------------

    def register(
        self,
        name: str,
        kind: str,
        sweep: Sweep | None = None,
        type_description: TypeDescription | None = None,
        *,
        sweep_in_background: bool = True,
        growing: Growing | None = None,
    ) -> int:
        """Return the position of the named state in an entry. The same name always has the same position.

        `sweep` removes expired values: from savepoints, and (`sweep_in_background`) from pages.
        `growing` locates collections that may become too large for a page.
        """
        layout = self.directory.layout
        position = next((index for index, (known, _) in enumerate(layout) if known == name), len(layout))
        if position < len(layout):
            if layout[position][1] != kind:
                raise self._kind_error(name, layout[position][1], kind)
            self._check_type(name, kind, FIRST_SLOT + position, type_description)
        else:
            layout.append((name, kind))
            if type_description is not None:
                self.directory.types[name] = type_description
            self._width = len(layout)
            self._blank = (None,) * (FIRST_SLOT - 1 + self._width)
            for page in (*self.pages.values(), self._newborn):
                for entry in page.entries.values():
                    entry.append(None)
        if sweep is not None:
            self._savepoint_sweeps[FIRST_SLOT + position] = sweep
            if sweep_in_background:
                self._sweeps[FIRST_SLOT + position] = sweep
        if growing is not None:
            self._chunks.growing[FIRST_SLOT + position] = growing
        self.registered.add(name)
        return FIRST_SLOT + position

    def _kind_error(self, name: str, known: str, kind: str) -> InvalidProgramError:
        if " state" in known and " state" in kind:
            return InvalidProgramError(
                f"state '{name}' of operator '{self.operator_name}' is a {known} and cannot be used as a {kind}: use a "
                "new name for state of another kind"
            )
        return InvalidProgramError(
            f"operator '{self.operator_name}' had {known} when its state was written and has {kind} now: open windows "
            "cannot be converted. Keep the old windows, or give the operator a new uid() and allow state that is not "
            "restored (execution.savepoint.ignore-unclaimed-state)"
        )

    def _check_type(self, name: str, kind: str, slot: int, wanted: TypeDescription | None) -> None:
        """Reject state that was written with another type, or convert all its values at once.

        This happens before the first record, as in Flink, so all stored values always have the same type.
        """
        types = self.directory.types
        known = types.get(name)
        if wanted is not None and known != wanted and name not in self.registered and not is_complete(known):
            known = self._seen_type(name, kind, slot, known)
        reason = mismatch(known, wanted)
        if reason is not None:
            raise InvalidProgramError(
                f"state '{name}' of operator '{self.operator_name}' was stored with another type: {reason}. Use a new "
                "name for state of another type"
            )
        if name in self.registered:  # another descriptor in the same program
            return
        adapt = slot_adapter(kind, known, wanted)
        if adapt is not None:
            self._rewrite(lambda entry: None if entry[slot] is None else adapt(entry[slot]), [slot])
        if wanted is not None:
            types[name] = wanted
        elif known is not None and known["type"] != PYTHON:
            del types[name]  # from now on, it may contain anything

    def _seen_type(self, name: str, kind: str, slot: int, known: TypeDescription | None) -> TypeDescription | None:
        """Return the declared type of a state, completed by the types found in it. This reads every page, once."""
        seen = SeenTypes([(name, kind)])
        if self.directory.total_bytes and seen.looks_at(name):
            for index in self._indexes():
                seen.note(name, [entry[slot] for entry in self._peek(index).entries.values()])
        return seen.describe(name, known)

    def drop_states(self, names: set[str]) -> None:
        """Remove states permanently, page by page. Their slots stay empty."""
        layout = self.directory.layout
        slots = [FIRST_SLOT + index for index, (name, _) in enumerate(layout) if name in names]
        self._rewrite(lambda entry: None, slots)
        for index, (name, _) in enumerate(layout):
            if name in names:
                layout[index] = (f"dropped {index}", DROPPED)
                self.directory.types.pop(name, None)

    # -- end of a batch -----------------------------------------------------------------------------------------

    def snapshot(self, now: int) -> PageDirectory:
        """Write changed pages to the store. The task keeps the returned directory."""
        self.clear_current_key()
        if self.verify_key_shape:
            self._compare_keys(list(self._newborn.entries) if self._log is None else self._fresh)
        if self._log is None:
            self._write_changes(now)
        else:
            self._log_changes(self._log, now)
        self.timer_index.write()
        self._batch += 1
        self._evict()
        return self.directory

    def log_early(self) -> bool:
        """Between two batches: log the keys in use if there are many, and return whether this happened."""
        if self._log is None or self.verify_key_shape:
            return False
        self.clear_current_key()
        logged = self._log_many_keys(self._log)
        self._batch += logged
        return logged

    def _write_changes(self, now: int) -> None:
        """Write all pages that may have changed."""
        self._settle_newborn()
        self._end_young_pages_with_timers()
        if self._sweeps:
            self._sweep_next_page(now)
        for page in list(self.pages.values()):
            if page.may_have_changed():
                self._write(page, now)
            page.maybe_mutated = False
        self._unlogged.clear()
        self._end_empty_young_pages()
