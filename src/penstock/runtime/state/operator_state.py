"""Operator state: list, union list and broadcast state of one operator in one subtask (rules 3.7, D02 to D07).

Unlike keyed state, it belongs to the subtask. It is kept in decoded form. A changed state is written as one blob.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    StateDescriptor,
)
from penstock.runtime.records.isolation import IMMUTABLE, deeply_immutable
from penstock.runtime.records.serialization import MISSING_OR_CHANGED, dumps, unreadable
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.state.list_elements import checked_element, checked_elements
from penstock.runtime.state.pages import PageStore
from penstock.runtime.state.record_types import RecordNotes, RecordTypes
from penstock.runtime.state.state_types import TypeDescription, describe, is_complete, mismatch, seen_in, slot_adapter

SPLIT, UNION, BROADCAST, RAW = "split", "union", "broadcast", "raw"
MODES = {SPLIT: "list state", UNION: "union list state", BROADCAST: "broadcast state", RAW: "an operator's own state"}


def operator_state_page(operator_id: str, name: str) -> str:
    """Return the name of an operator state in the store."""
    return f"{operator_id}/o/{name}"


@dataclass(frozen=True)
class UnionPart:
    """The elements of one subtask in a union list state. The driver keeps them encoded."""

    blob: bytes
    records: RecordTypes


class _Slot:
    """One named operator state: its mode, its content, and whether it has changed."""

    __slots__ = ("check", "content", "dirty", "maybe_mutated", "mode")

    def __init__(self, mode: str, content: Any) -> None:
        self.mode = mode
        self.content = content
        self.dirty = False
        self.maybe_mutated = False  # user code holds an element and may change it in place
        self.check = 0  # checksum of the last read or written form

    def may_have_changed(self) -> bool:
        """Whether the state must be written: it has changed, or user code holds a mutable element."""
        if self.dirty or not self.maybe_mutated:
            return self.dirty
        held = self.content.values() if self.mode == BROADCAST else self.content
        return not (IMMUTABLE.issuperset(map(type, held)) or all(map(deeply_immutable, held)))


class OperatorStateBackend(OperatorStateStore):
    """The operator states of one operator in one subtask."""

    def __init__(
        self,
        operator_id: str,
        store: PageStore,
        layout: dict[str, str] | None = None,
        *,
        restored: bool = False,
        operator_name: str | None = None,
        types: dict[str, TypeDescription] | None = None,
        records: RecordTypes | None = None,
    ) -> None:
        self.restored = restored or bool(layout)
        """Whether the operator continues from an earlier run."""
        self._prefix = operator_id
        self._whose = f" of operator '{operator_name}'" if operator_name else ""
        self._store = store
        self.types: dict[str, TypeDescription] = dict(types or {})
        """The declared types of states, by name."""
        self.records = RecordNotes(dict(records or {}))
        """The dataclasses and named tuples in states."""
        self._layout: dict[str, str] = dict(layout or {})  # name -> mode of all states known to the store
        self._slots: dict[str, _Slot] = {}
        self.changed_unions: dict[str, list[UnionPart]] = {}
        """The union list states that the last snapshot wrote."""
        self._untold = False

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """State whose elements are redistributed among all subtasks when the parallelism changes."""
        return OperatorListState(self._typed_slot(state_descriptor, ListStateDescriptor, SPLIT, list))

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """State whose elements all subtasks receive when the job is restored."""
        return OperatorListState(self._typed_slot(state_descriptor, ListStateDescriptor, UNION, list))

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> OperatorBroadcastState:
        """A map that is the same in all subtasks."""
        return OperatorBroadcastState(self._typed_slot(state_descriptor, MapStateDescriptor, BROADCAST, dict))

    def get_raw(self, name: str) -> Any:
        """Return the operator's private object, such as a watermark generator. None at first."""
        return self._slot(name, RAW, lambda: None).content

    def put_raw(self, name: str, value: Any) -> None:
        """Store the operator's private object."""
        slot = self._slot(name, RAW, lambda: None)
        slot.content = value
        slot.dirty = True

    def _typed_slot(self, descriptor: Any, kind: type[StateDescriptor], mode: str, empty: Any) -> _Slot:
        """Return the slot of a state. Reject an incompatible type now, not when it is read (rules J08 to J10)."""
        if not isinstance(descriptor, kind):
            raise InvalidProgramError(
                f"{MODES[mode]}{self._whose} was requested with {shorten(descriptor)}, which is not a {kind.__name__}"
            )
        name, known, wanted = descriptor.name, self.types.get(descriptor.name), describe(descriptor.type_info)
        asked_before = name in self._slots
        slot = self._slot(name, mode, empty)
        if wanted is not None and known != wanted and not asked_before and not is_complete(known):
            known = seen_in(slot.content, known)
        reason = mismatch(known, wanted)
        if reason is not None:
            raise InvalidProgramError(
                f"operator state '{name}'{self._whose} was stored with another type: {reason}. Use a new name for "
                "state of another type"
            )
        if asked_before:  # another descriptor in the same program
            return slot
        adapt = slot_adapter("map state" if mode == BROADCAST else "list state", known, wanted)
        if adapt is not None:
            slot.content, slot.dirty = adapt(slot.content), True
        if wanted is not None:
            self.types[name] = wanted
        else:
            self.types.pop(name, None)  # from now on, it may contain anything
        return slot

    def _slot(self, name: str, mode: str, empty: Any) -> _Slot:
        slot = self._slots.get(name)
        known = self._layout.get(name) if slot is None else slot.mode
        if known not in (None, mode):
            raise InvalidProgramError(
                f"operator state '{name}'{self._whose} is {MODES[known]} and cannot be used as {MODES[mode]}: use a "
                "new name for state of another kind"
            )
        if slot is None:
            blob = self._store.get(self._page_id(name)) if known else None
            slot = self._slots[name] = _Slot(mode, empty() if blob is None else self._loads(name, blob))
            slot.check = 0 if blob is None else crc32(blob)
        return slot

    def _loads(self, name: str, blob: bytes) -> Any:
        try:
            return load_stored(blob)
        except MISSING_OR_CHANGED as error:
            raise unreadable(f"operator state '{name}'{self._whose}", error) from error

    def _page_id(self, name: str) -> str:
        return operator_state_page(self._prefix, name)

    def contents(self) -> dict[str, tuple[str, Any]]:
        """All states as {name: (mode, content)}, including restored ones that were never requested."""
        found = {name: (slot.mode, slot.content) for name, slot in self._slots.items() if name in self._layout}
        for name, mode in self._layout.items():
            if name not in found:
                blob = self._store.get(self._page_id(name))
                if blob is not None:
                    found[name] = (mode, self._loads(name, blob))
        return found

    def unclaimed(self) -> dict[str, str]:
        """Name and mode of restored states that were never requested."""
        return {name: mode for name, mode in self._layout.items() if name not in self._slots}

    def drop(self, names: set[str]) -> None:
        """Remove states permanently."""
        for name in names:
            self._layout.pop(name, None)
            self.types.pop(name, None)
            self._store.remove(self._page_id(name))

    def tell_unions(self) -> None:
        """Let the next snapshot report all union list states: the driver does not know what this subtask restored."""
        self._untold = True

    def snapshot(self) -> dict[str, str]:
        """Write changed states. Return the layout for the task to keep."""
        self.changed_unions = {}
        if self._untold:
            self._untold = False
            held = self.contents().items()
            unions = [(name, dumps(content, f"operator state '{name}'")) for name, (m, content) in held if m == UNION]
            self.changed_unions = {name: [self._part(blob)] for name, blob in unions}
        for name, slot in self._slots.items():
            if slot.may_have_changed():
                self._write(name, slot)
            if slot.mode == BROADCAST:
                slot.maybe_mutated = False
        return self._layout

    def _write(self, name: str, slot: _Slot) -> None:
        blob = dumps(slot.content, f"operator state '{name}'{self._whose}")
        check = crc32(blob)
        if slot.dirty or check != slot.check:
            self._store.put(self._page_id(name), blob)
            self.records.note(blob)
            self._layout[name] = slot.mode
            if slot.mode == UNION:
                self.changed_unions[name] = [self._part(blob)]
        slot.dirty, slot.check = False, check

    def _part(self, blob: bytes) -> UnionPart:
        return UnionPart(blob, dict(self.records.known))


class OperatorListState(ListState[Any]):
    """List state of a subtask. A function may keep elements as attributes for as long as it lives."""

    def __init__(self, slot: _Slot) -> None:
        self._slot = slot
        slot.maybe_mutated = True

    def get(self) -> Iterator[Any]:
        """Return a stable view of the elements."""
        return iter(list(self._slot.content))

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        """Append an element."""
        self._slot.content.append(checked_element(value))
        self._slot.dirty = True

    def add_all(self, values: list[Any]) -> None:
        """Append elements."""
        self._slot.content.extend(checked_elements(values))
        self._slot.dirty = True

    def update(self, values: list[Any]) -> None:
        """Replace the list."""
        self._slot.content = checked_elements(values)
        self._slot.dirty = True

    def clear(self) -> None:
        """Remove all elements."""
        self.update([])


class OperatorBroadcastState(BroadcastState[Any, Any]):
    """Broadcast state of a subtask."""

    def __init__(self, slot: _Slot, *, lends: bool = True) -> None:
        self._slot = slot
        self._lends = lends

    def reading(self) -> OperatorBroadcastState:
        """Return a read-only view of the state."""
        return OperatorBroadcastState(self._slot, lends=False)

    def get(self, key: Any) -> Any:
        """The value under a key, None if absent."""
        self._slot.maybe_mutated |= self._lends
        return self._slot.content.get(key)

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def contains(self, key: Any) -> bool:
        """Whether a key is present."""
        return key in self._slot.content

    def put(self, key: Any, value: Any) -> None:
        """Set a value."""
        self._slot.content[key] = value
        self._slot.dirty = True

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set several values."""
        self._slot.content.update(dict_value)
        self._slot.dirty = True

    def remove(self, key: Any) -> None:
        """Remove a key, if present."""
        if key in self._slot.content:
            del self._slot.content[key]
            self._slot.dirty = True

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Stable view of the entries."""
        self._slot.maybe_mutated |= self._lends
        return iter(list(self._slot.content.items()))

    def keys(self) -> Iterator[Any]:
        """Stable view of the keys."""
        return iter(list(self._slot.content))

    def values(self) -> Iterator[Any]:
        """Stable view of the values."""
        self._slot.maybe_mutated |= self._lends
        return iter(list(self._slot.content.values()))

    def is_empty(self) -> bool:
        """Whether the state is empty."""
        return not self._slot.content

    def clear(self) -> None:
        """Remove all entries."""
        self._slot.content.clear()
        self._slot.dirty = True
