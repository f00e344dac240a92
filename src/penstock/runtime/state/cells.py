"""Cells: the place in a key's entry where one state stores its value.

A slot cell is the slot itself. A namespace cell keeps a dict in the slot, with one value per namespace (for example
per window). Set the namespace before you use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.runtime.state.backend import KeyedStateBackend


class SlotCell:
    """One value per key."""

    __slots__ = ("backend", "slot")

    def __init__(self, backend: KeyedStateBackend, slot: int) -> None:
        self.backend = backend
        self.slot = slot

    def get(self) -> Any:
        """Return the value of the current key, or None."""
        entry = self.backend.entry
        entry[0].maybe_mutated = True
        return entry[self.slot]

    def put(self, value: Any) -> None:
        """Store a value. None removes it."""
        entry = self.backend.entry
        entry[self.slot] = value
        entry[0].dirty = True

    def touch(self) -> None:
        """Mark the stored object as changed in place."""
        self.backend.entry[0].dirty = True


class NamespaceCell:
    """One value per key and namespace."""

    __slots__ = ("backend", "namespace", "slot")

    def __init__(self, backend: KeyedStateBackend, slot: int) -> None:
        self.backend = backend
        self.slot = slot
        self.namespace: Any = None

    def get(self) -> Any:
        """Return the value of the current key and namespace, or None."""
        entry = self.backend.entry
        entry[0].maybe_mutated = True
        values = entry[self.slot]
        return None if values is None else values.get(self.namespace)

    def put(self, value: Any) -> None:
        """Store a value. None removes it, and the last removal frees the slot."""
        entry = self.backend.entry
        values = entry[self.slot]
        if value is not None:
            if values is None:
                entry[self.slot] = {self.namespace: value}
            else:
                values[self.namespace] = value
        elif values is not None:
            values.pop(self.namespace, None)
            if not values:
                entry[self.slot] = None
        entry[0].dirty = True

    def touch(self) -> None:
        """Mark the stored object as changed in place."""
        self.backend.entry[0].dirty = True

    def take(self, namespaces: Iterable[Any]) -> list[Any]:
        """Remove and return the values of the given namespaces."""
        kept = self.namespace
        taken = []
        for self.namespace in namespaces:
            value = self.get()
            if value is not None:
                taken.append(value)
                self.put(None)
        self.namespace = kept
        return taken


Cell = SlotCell | NamespaceCell
