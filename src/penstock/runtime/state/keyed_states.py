"""The state objects of user code: value, list, map, reducing and aggregating state over a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.core.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from penstock.runtime.records.isolation import copy_of, deeply_immutable
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.cells import Cell
from penstock.runtime.state.list_elements import checked_element, checked_elements


def fresh(default: Any) -> Any:
    """Return the default value of a descriptor for one key. Keys never share a mutable default."""
    return default if deeply_immutable(default) else copy_of(default)


class SlotValueState(ValueState[Any]):
    """Value state directly on the slot: the state that many programs read and write for every record."""

    __slots__ = ("_backend", "_default", "_slot")

    def __init__(self, backend: KeyedStateBackend, slot: int, default: Any = None) -> None:
        self._backend = backend
        self._slot = slot
        self._default = default

    def value(self) -> Any:
        """Return the value of the current key. It is the object itself, so changes in place are kept."""
        entry = self._backend.entry
        entry[0].maybe_mutated = True
        value = entry[self._slot]
        return self._default if value is None else value

    def update(self, value: Any) -> None:
        """Replace the value of the current key."""
        entry = self._backend.entry
        entry[self._slot] = value
        entry[0].dirty = True

    def clear(self) -> None:
        """Remove the value of the current key."""
        self.update(None)


class SlotValueStateWithMutableDefault(SlotValueState):
    """Value state directly on the slot, with a mutable default value."""

    __slots__ = ()

    def value(self) -> Any:
        """Return the value of the current key, or its own copy of the default."""
        self._backend.entry[0].maybe_mutated = True
        value = self._backend.entry[self._slot]
        return copy_of(self._default) if value is None else value


class CellValueState(ValueState[Any]):
    """Value state in any cell."""

    def __init__(self, cell: Cell, default: Any = None) -> None:
        self.cell = cell
        self._default = default

    def value(self) -> Any:
        """The value of the current key and namespace."""
        value = self.cell.get()
        return fresh(self._default) if value is None else value

    def update(self, value: Any) -> None:
        """Replace the value of the current key and namespace."""
        self.cell.put(value)

    def clear(self) -> None:
        """Remove the value of the current key and namespace."""
        self.cell.put(None)


class CellListState(ListState[Any]):
    """List state in a cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def get(self) -> Iterator[Any]:
        """An iterator over a stable view of the elements."""
        return iter(list(self.cell.get() or ()))

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        """Append one element."""
        values = self.cell.get()
        if value is None or values is None:
            self.cell.put([checked_element(value)])
        else:
            values.append(value)
            self.cell.touch()

    def add_all(self, values: list[Any]) -> None:
        """Append several elements. Existing elements are not copied."""
        held = self.cell.get()
        if held is None:
            self.update(values)
        else:
            held.extend(checked_elements(values))
            self.cell.touch()

    def update(self, values: list[Any]) -> None:
        """Replace the list. An empty list clears the state."""
        self.cell.put(checked_elements(values) or None)

    def clear(self) -> None:
        """Remove the list."""
        self.cell.put(None)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Append the elements of the source namespaces to the target namespace."""
        taken = self.cell.take(sources)  # type: ignore[union-attr]
        self.cell.namespace = target  # type: ignore[union-attr]
        if taken:
            self.add_all([value for values in taken for value in values])


class CellMapState(MapState[Any, Any]):
    """Map state in a cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def _map(self) -> dict[Any, Any]:
        return self.cell.get() or {}

    def get(self, key: Any) -> Any:
        """Return the value of a map key, None if absent."""
        return self._map().get(key)

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a map key."""
        values = self.cell.get()
        if values is None:
            self.cell.put({key: value})
        else:
            values[key] = value
            self.cell.touch()

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set several values."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a map key, if present."""
        values = self.cell.get()
        if values is not None and key in values:
            del values[key]
            self.cell.put(values or None)

    def contains(self, key: Any) -> bool:
        """Whether a map key is present."""
        return key in self._map()

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Stable view of the entries."""
        return iter(list(self._map().items()))

    def keys(self) -> Iterator[Any]:
        """Stable view of the map keys."""
        return iter(list(self._map()))

    def values(self) -> Iterator[Any]:
        """Stable view of the values."""
        return iter(list(self._map().values()))

    def is_empty(self) -> bool:
        """Whether the map is empty."""
        return not self._map()

    def clear(self) -> None:
        """Remove all entries."""
        self.cell.put(None)


class CellReducingState(ReducingState[Any]):
    """Reducing state in a cell: reduce(current, new), first element unchanged."""

    def __init__(self, cell: Cell, reduce: Callable[[Any, Any], Any]) -> None:
        self.cell = cell
        self._reduce = reduce

    def get(self) -> Any:
        """The reduced value, None if empty."""
        return self.cell.get()

    def add(self, value: Any) -> None:
        """Reduce one value into the state."""
        current = self.cell.get()
        self.cell.put(value if current is None else self._reduce(current, value))

    def clear(self) -> None:
        """Remove the value."""
        self.cell.put(None)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduce the values of the source namespaces into the target namespace."""
        taken = self.cell.take(sources)  # type: ignore[union-attr]
        self.cell.namespace = target  # type: ignore[union-attr]
        for value in taken:
            self.add(value)


class CellAggregatingState(AggregatingState[Any, Any]):
    """Aggregating state in a cell. It stores the accumulator and computes the result on read."""

    def __init__(self, cell: Cell, function: Any) -> None:
        self.cell = cell
        self.function = function

    def get(self) -> Any:
        """Return the result of the accumulator, None if nothing was added."""
        accumulator = self.cell.get()
        return None if accumulator is None else self.function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Add one value to the accumulator."""
        accumulator = self.cell.get()
        if accumulator is None:
            accumulator = self.function.create_accumulator()
        self.cell.put(self.function.add(value, accumulator))

    def clear(self) -> None:
        """Remove the accumulator."""
        self.cell.put(None)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merge the accumulators of the source namespaces into the target namespace."""
        taken = self.cell.take(sources)  # type: ignore[union-attr]
        self.cell.namespace = target  # type: ignore[union-attr]
        for accumulator in taken:
            current = self.cell.get()
            self.cell.put(accumulator if current is None else self.function.merge(current, accumulator))
