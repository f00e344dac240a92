"""The Python types of the values in keyed state, recorded while a savepoint is written.

For a state without a declared type, these types are compared with the type that a later program declares (rule J10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from penstock.runtime.state.state_types import PYTHON, TypeDescription, merged

_ENOUGH = 8
_TTL = " with TTL"

Values = Callable[[list[Any]], Iterable[Any]]
"""Return the values to check in a column of stored states, without None."""

_PARTS: dict[str, dict[str, Values]] = {
    "value state": {"": lambda column: column},
    "reducing state": {"": lambda column: column},
    "aggregating state": {"": lambda column: column},
    "list state": {"element": chain.from_iterable},
    "map state": {"key": chain.from_iterable, "value": lambda column: chain.from_iterable(d.values() for d in column)},
}


def seen_types(values: Iterable[Any]) -> set[str]:
    """Return the type names of some values.

    >>> seen_types([1, None, 2])
    {'int'}
    """
    return {kind.__name__ for kind in set(map(type, values)) if kind is not type(None)}


class SeenTypes:
    """The types found in the states of one operator."""

    def __init__(self, states: list[tuple[str, str]]) -> None:
        self._kinds = {name: kind for name, kind in states if kind.removesuffix(_TTL) in _PARTS}
        self._seen: dict[tuple[str, str], set[str]] = {}

    def looks_at(self, name: str) -> bool:
        """Whether states of this kind are checked."""
        return name in self._kinds

    def note(self, name: str, column: list[Any]) -> None:
        """Record the types in the states of some keys."""
        kind = self._kinds.get(name)
        if kind is None:
            return
        held = [stored for stored in column if stored is not None]
        for part, values in _PARTS[kind.removesuffix(_TTL)].items():
            seen = self._seen.setdefault((name, part), set())
            if len(seen) < _ENOUGH:
                found = values(held)
                if kind.endswith(_TTL) and part != "key":
                    found = (value for value, _ in found)
                seen.update(seen_types(found))

    def describe(self, name: str, declared: TypeDescription | None) -> TypeDescription | None:
        """Return the type of a state: the declared type, completed by the types found."""
        parts = {part: seen for (state, part), seen in self._seen.items() if state == name and seen}
        if not parts:
            return declared
        described = {part: {"type": PYTHON, "seen": sorted(seen)} for part, seen in parts.items()}
        found: TypeDescription
        if "" in described:
            found = described[""]
        elif "element" in described:
            found = {"type": "LIST", **described}
        else:
            found = {"type": "MAP", "key": None, "value": None, **described}
        return found if declared is None else merged(declared, found)
