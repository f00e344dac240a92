"""Convert state that was written with other versions of the program's dataclasses and named tuples.

Before the first record, all stored values of changed classes are rewritten with the current class, by the rules of
savepoints: removed fields are dropped, and new fields need a default (rules J09, J10).
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable
from typing import Any
from zlib import crc32

from penstock.common.errors import InvalidProgramError, SavepointError, shorten
from penstock.common.types import Row
from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.stored_classes import StoredUnpickler
from penstock.runtime.state.chunks import Chunk
from penstock.runtime.state.field_types import changed_field, is_given
from penstock.runtime.state.operator_state import UnionPart
from penstock.runtime.state.pages import PageStore, chunk_page
from penstock.runtime.state.record_types import DATACLASS, RecordNotes, RecordTypes, record_type
from penstock.runtime.state.stored_values import class_by_name, dataclass_value, named_tuple

Fields = dict[str, Any]


def adopt_changed_classes(
    records: RecordTypes, store: PageStore, page_ids: Iterable[str], operator_name: str, *, keyed: bool
) -> int:
    """Convert stored values of changed classes to their new form, and return by how many bytes state grew."""
    changed = ChangedClasses(records, operator_name)
    if not changed:
        return 0
    adoption = _Adoption(changed, store, RecordNotes(records), f"state of operator '{operator_name}'")
    for page_id in page_ids:
        adoption.adopt_page(page_id, keyed=keyed)
    changed.forget_old()
    return adoption.grown


class _Adoption:
    """Rewrites pages."""

    def __init__(self, changed: ChangedClasses, store: PageStore, notes: RecordNotes, label: str) -> None:
        self._changed = changed
        self._store = store
        self._notes = notes
        self._label = label
        self.grown = 0  # bytes

    def adopt_page(self, page_id: str, *, keyed: bool) -> None:
        """Convert the values of a page and of its chunks to the current classes."""
        blob = self._store.get(page_id)
        if blob is None:
            return
        content, found = self._changed.loads(blob)
        if keyed:
            columns, places = content if type(content) is tuple else (content, ())
            if found:
                self._changed.check_keys(columns[0])
            for _, _, _, chunks in places:
                found = self._adopt_chunks(page_id.rpartition("/")[0], chunks) or found
        if found:
            self._write(page_id, blob, content)

    def _adopt_chunks(self, prefix: str, chunks: list[Any]) -> bool:
        """Convert the chunks of a collection, and correct their entries in the page."""
        found_any = False
        for position, (number, count, *_) in enumerate(chunks):
            name = chunk_page(prefix, number)
            blob = self._store.get(name)
            content, found = (None, False) if blob is None else self._changed.loads(blob)
            if blob is not None and found:
                made = self._write(name, blob, content)
                chunks[position] = Chunk(number, count, len(made), crc32(made)).as_tuple()
                found_any = True
        return found_any

    def _write(self, page_id: str, before: bytes, content: Any) -> bytes:
        made = dumps(content, self._label)
        self._store.put(page_id, made)
        self._notes.note(made)
        self.grown += len(made) - len(before)
        return made


def united(parts: Iterable[Any], operator_name: str) -> list[Any]:
    """Return the union list state elements of all subtasks. Older checkpoints contain elements instead of parts."""
    elements: list[Any] = []
    for part in parts:
        if isinstance(part, UnionPart):
            elements += ChangedClasses(dict(part.records), operator_name).loads(part.blob)[0]
        else:
            elements.append(part)
    return elements


class ChangedClasses:
    """The classes that have changed since state was written. False if there are none."""

    def __init__(self, records: RecordTypes, operator_name: str) -> None:
        self._records = records
        self._operator_name = operator_name
        self._changes: dict[str, _Change] = {}
        for name, before in records.items():
            change = _Change(name, before)
            if not change.fits:
                self._changes[name] = change
            elif change.now is not None:
                records[name] = change.now

    def __bool__(self) -> bool:
        return bool(self._changes)

    def loads(self, blob: bytes) -> tuple[Any, bool]:
        """Unpickle a value as instances of the current classes. Also return whether any of its parts has changed."""
        reader = _Reader(blob, self._changes)
        try:
            content = reader.load()
        except _MisfitError as misfit:
            raise InvalidProgramError(
                f"the checkpoint has values of class {misfit.change.path} in the state of operator "
                f"'{self._operator_name}' that do not fit the current class: {misfit.change.reason}"
            ) from None
        for change in reader.found.values():
            change.complete()
        return content, bool(reader.found)

    def check_keys(self, keys: list[Any]) -> None:
        """Reject keys of changed classes: no record would find their state."""
        classes = tuple(change.cls for change in self._changes.values() if change.cls is not None)
        for key in keys:
            cls = _held_in(key, classes)
            if cls is not None:
                raise InvalidProgramError(
                    f"the checkpoint has state of operator '{self._operator_name}' under the key {shorten(key)}, whose "
                    f"class {cls.__qualname__} had other fields when it was written: keys cannot change, so restore "
                    "the previous class"
                )

    def forget_old(self) -> None:
        """Forget the old classes: all state has been converted to the new ones."""
        for name, change in self._changes.items():
            if change.now is None:
                self._records.pop(name, None)
            else:
                self._records[name] = change.now


class _MisfitError(Exception):
    """A value of a class that has changed incompatibly."""

    def __init__(self, change: _Change) -> None:
        super().__init__(change.path)
        self.change = change


class _Change:
    """The stored and the current version of a class."""

    def __init__(self, name: str, before: dict[str, Any]) -> None:
        self._before = before
        self._shells: list[Any] = []
        self.path = name.partition(":")[2]
        self.cls: Any = None
        self.now: dict[str, Any] | None = None
        self.reason: str | None = None
        try:
            self.cls = class_by_name(name)
        except SavepointError:
            self.reason = (
                f"{self.path} cannot be found in module {name.partition(':')[0]}. Keep the class where it was, or "
                "import it under that name"
            )
            return
        self.now = record_type(self.cls)
        self.reason = self._reason()

    @property
    def fits(self) -> bool:
        """Whether stored values can be read as they are."""
        if self.reason is not None:
            return False
        now = self.now
        return now is not None and all(now[part] == self._before[part] for part in ("kind", "form", "fields"))

    def _reason(self) -> str | None:
        before, now = self._before, self.now
        if _reads_itself(self.cls):
            return None
        if now is None or now["kind"] != before["kind"]:
            return f"it was a {before['kind']}. Keep it one"
        missing = next((n for n in now["fields"] if n not in before["fields"] and not _has_default(self.cls, n)), None)
        if missing is not None:
            return f"it has the new field '{missing}'. Give the field a default"
        changed = changed_field(before["types"], now["types"])
        return None if changed is None else f"the field {changed}. Use a new field for values of another type"

    # -- reading ------------------------------------------------------------------------------------------------

    def stand_in(self) -> Any:
        """Return the class for pickle to use instead: it builds current instances from stored ones."""
        if _reads_itself(self.cls):
            return self.cls
        if self._before["kind"] == DATACLASS:
            return self._dataclass_stand_in()
        names, cls = self._before["fields"], self.cls

        def new(_: type, *values: Any) -> Any:
            return named_tuple(cls, dict(zip(names, values, strict=False)))

        return type(cls.__name__, (), {"__new__": new})

    def _dataclass_stand_in(self) -> Any:
        """Pickle first creates the instance, to which others may already refer, and sets its fields later."""
        shells, cls = self._shells, self.cls

        def new(own: type) -> Any:
            shell: Any = object.__new__(own)
            shells.append(shell)
            return shell

        def set_state(shell: Any, state: Any) -> None:
            self._fill(shell, self._fields(state))

        return type(cls)(cls.__name__, (cls,), {"__slots__": (), "__new__": new, "__setstate__": set_state})

    def _fields(self, state: Any) -> Fields:
        if isinstance(state, list):
            return dict(zip(self._before["fields"], state, strict=False))
        parts = state if isinstance(state, tuple) else (state,)
        return {name: value for part in parts if part for name, value in part.items()}

    def _fill(self, shell: Any, fields: Fields) -> None:
        before = self._before["fields"]
        others = {name: value for name, value in fields.items() if name not in before}
        made = dataclass_value(self.cls, {n: fields[n] for n in before if n in fields})
        object.__setattr__(shell, "__class__", self.cls)
        for field in dataclasses.fields(self.cls):
            object.__setattr__(shell, field.name, getattr(made, field.name))
        for name, value in others.items():
            object.__setattr__(shell, name, value)

    def complete(self) -> None:
        """Complete the instances that were stored without any fields."""
        for shell in self._shells:
            if type(shell) is not self.cls:
                self._fill(shell, {})
        self._shells.clear()


def _has_default(cls: Any, name: str) -> bool:
    if not dataclasses.is_dataclass(cls):
        return name in cls._field_defaults
    field = next(each for each in dataclasses.fields(cls) if each.name == name)
    return is_given(field.default) or is_given(field.default_factory)


def _reads_itself(cls: Any) -> bool:
    """Whether a class defines its own `__setstate__`, which handles old values."""
    return getattr(getattr(cls, "__setstate__", None), "__module__", "dataclasses") != "dataclasses"


def _held_in(key: Any, classes: tuple[type, ...]) -> type | None:
    """Return the first of the given classes that the key is an instance of, or contains."""
    if isinstance(key, classes):
        return type(key)
    parts: Iterable[Any] = ()
    if isinstance(key, (tuple, frozenset, Row)):
        parts = key
    elif dataclasses.is_dataclass(key):
        parts = [getattr(key, field.name, None) for field in dataclasses.fields(key)]
    return next((found for part in parts if (found := _held_in(part, classes)) is not None), None)


class _Reader(StoredUnpickler):
    """Reads values that were pickled with classes that have changed since."""

    def __init__(self, blob: bytes, changes: dict[str, _Change]) -> None:
        super().__init__(io.BytesIO(blob))
        self._changes = changes
        self.found: dict[str, _Change] = {}

    def find_class(self, module: str, name: str) -> Any:
        change = self._changes.get(f"{module}:{name}")
        if change is None:
            return super().find_class(module, name)
        if change.reason is not None:
            raise _MisfitError(change)
        self.found[f"{module}:{name}"] = change
        return change.stand_in()
