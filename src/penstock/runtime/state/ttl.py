"""Time-to-live: every stored element has the processing time of its last access (rule A20).

Expired elements are invisible at once or, if so configured, until they are cleaned up. They are removed when they are
read, whenever their page is written, and page by page in the background. Without cleanup in the background, they are
removed only when they are read. Savepoints do not contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.core.state import AggregatingState, ListState, MapState, ReducingState, StateTtlConfig, ValueState
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.cells import Cell
from penstock.runtime.state.chunked_map import unnoted_items
from penstock.runtime.state.keyed_states import fresh
from penstock.runtime.state.list_elements import checked_elements
from penstock.runtime.state.page_chunks import swept

Stamped = tuple[Any, int]
Clock = Callable[[], int]


class Ttl:
    """A TTL configuration bound to a clock."""

    __slots__ = ("cleans_in_background", "clock", "refresh_on_read", "returns_expired", "ttl")

    def __init__(self, config: StateTtlConfig, clock: Clock) -> None:
        self.ttl = config.get_ttl().to_milliseconds()
        self.clock = clock
        self.returns_expired = (
            config.get_state_visibility() == StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        )
        self.refresh_on_read = config.get_update_type() == StateTtlConfig.UpdateType.OnReadAndWrite
        cleanup = config.get_cleanup_strategies()
        self.cleans_in_background = (
            cleanup.get_incremental_cleanup_strategy() is not None
            or cleanup.get_rocksdb_compact_filter_cleanup_strategy() is not None
        )

    def stamp(self, value: Any) -> Stamped:
        """Return a value stamped with the current time."""
        return (value, self.clock())

    def alive(self, stamped: Stamped, now: int | None = None) -> bool:
        """Whether the element has not expired. It lives while now < touched + ttl."""
        return (self.clock() if now is None else now) < stamped[1] + self.ttl

    def visible(self, stamped: Stamped) -> bool:
        """Whether a read may return the element."""
        return self.returns_expired or self.alive(stamped)


def without_stamps(kind: str, stored: Any) -> Any:
    """Return the contents of a state without the timestamps of TTL.

    >>> without_stamps("list state with TTL", [("a", 5), ("b", 6)])
    ['a', 'b']
    """
    if not kind.endswith(" with TTL"):
        return stored
    if kind.startswith("list state"):
        return [value for value, _ in stored]
    if kind.startswith("map state"):
        return {key: value for key, (value, _) in stored.items()}
    return stored[0]


class _TtlScalar:
    """One stamped value in a cell."""

    def __init__(self, cell: Cell, ttl: Ttl) -> None:
        self.cell = cell
        self.ttl = ttl

    def _read(self) -> Any:
        stamped = self.cell.get()
        if stamped is None:
            return None
        if not self.ttl.alive(stamped):
            visible = self.ttl.visible(stamped)
            self.cell.put(None)  # an expired value is returned at most once
            return stamped[0] if visible else None
        if self.ttl.refresh_on_read:
            self.cell.put(self.ttl.stamp(stamped[0]))
        return stamped[0]

    def _write(self, value: Any) -> None:
        self.cell.put(None if value is None else self.ttl.stamp(value))

    def clear(self) -> None:
        """Remove the value."""
        self.cell.put(None)


class TtlValueState(_TtlScalar, ValueState[Any]):
    """Value state with time-to-live."""

    def __init__(self, cell: Cell, ttl: Ttl, default: Any = None) -> None:
        super().__init__(cell, ttl)
        self._default = default

    def value(self) -> Any:
        """Return the value, unless it has expired."""
        value = self._read()
        return fresh(self._default) if value is None else value

    def update(self, value: Any) -> None:
        """Replace the value and restart its time-to-live."""
        self._write(value)


class SlotTtlValueState(ValueState[Any]):
    """The common case: value state directly on the slot, with an immutable default and without intermediate calls."""

    __slots__ = ("_backend", "_clock", "_default", "_refresh_on_read", "_returns_expired", "_slot", "_ttl")

    def __init__(self, backend: KeyedStateBackend, slot: int, ttl: Ttl, default: Any = None) -> None:
        self._backend = backend
        self._slot = slot
        self._default = default
        self._clock = ttl.clock
        self._ttl = ttl.ttl
        self._refresh_on_read = ttl.refresh_on_read
        self._returns_expired = ttl.returns_expired

    def value(self) -> Any:
        """Return the value, unless it has expired."""
        entry = self._backend.entry
        stamped = entry[self._slot]
        if stamped is None:
            return self._default
        entry[0].maybe_mutated = True
        value = stamped[0]
        now = self._clock()
        if now >= stamped[1] + self._ttl:
            entry[self._slot] = None  # an expired value is returned at most once
            entry[0].dirty = True
            return value if self._returns_expired else self._default
        if self._refresh_on_read:
            entry[self._slot] = (value, now)
            entry[0].dirty = True
        return value

    def update(self, value: Any) -> None:
        """Replace the value and restart its time-to-live."""
        entry = self._backend.entry
        entry[self._slot] = None if value is None else (value, self._clock())
        entry[0].dirty = True

    def clear(self) -> None:
        """Remove the value."""
        self.update(None)


class TtlReducingState(_TtlScalar, ReducingState[Any]):
    """Reducing state with time-to-live."""

    def __init__(self, cell: Cell, ttl: Ttl, reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__(cell, ttl)
        self.reduce_function = reduce

    def get(self) -> Any:
        """Return the reduced value, unless it has expired."""
        return self._read()

    def add(self, value: Any) -> None:
        """Reduce one value into the state and restart its time-to-live."""
        current = self._read()
        self._write(value if current is None else self.reduce_function(current, value))


class TtlAggregatingState(_TtlScalar, AggregatingState[Any, Any]):
    """Aggregating state with time-to-live."""

    def __init__(self, cell: Cell, ttl: Ttl, function: Any) -> None:
        super().__init__(cell, ttl)
        self.function = function

    def get(self) -> Any:
        """Return the result, unless the accumulator has expired."""
        accumulator = self._read()
        return None if accumulator is None else self.function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Add one value and restart the time-to-live."""
        accumulator = self._read()
        if accumulator is None:
            accumulator = self.function.create_accumulator()
        self._write(self.function.add(value, accumulator))


class TtlListState(ListState[Any]):
    """List state whose elements expire one by one."""

    def __init__(self, cell: Cell, ttl: Ttl) -> None:
        self.cell = cell
        self.ttl = ttl

    def get(self) -> Iterator[Any]:
        """Return the visible elements."""
        stored = self.cell.get()
        if stored is None:
            return iter(())
        seen = [stamped for stamped in stored if self.ttl.visible(stamped)]
        alive = [stamped for stamped in seen if self.ttl.alive(stamped)]
        if self.ttl.refresh_on_read and alive:
            self.cell.put([self.ttl.stamp(value) for value, _ in alive])
        elif not alive or (len(alive) < len(stored) and not self.ttl.returns_expired):
            self.cell.put(swept(stored, alive or None))
        return iter([value for value, _ in seen])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        """Append one element."""
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        """Append several elements. Existing elements are not copied."""
        held = self.cell.get()
        if held is None:
            self.update(values)
        else:
            held.extend([self.ttl.stamp(value) for value in checked_elements(values)])
            self.cell.touch()

    def update(self, values: list[Any]) -> None:
        """Replace the list."""
        self.cell.put([self.ttl.stamp(value) for value in checked_elements(values)] or None)

    def clear(self) -> None:
        """Remove the list."""
        self.cell.put(None)


class TtlMapState(MapState[Any, Any]):
    """Map state whose entries expire one by one."""

    def __init__(self, cell: Cell, ttl: Ttl) -> None:
        self.cell = cell
        self.ttl = ttl

    def _read(self, key: Any) -> Stamped | None:
        """Return an entry if it is visible. Remove an expired entry; reading may restart the time-to-live."""
        stored = self.cell.get()
        stamped: Stamped | None = None if stored is None else stored.get(key)
        if stamped is None:
            return None
        if not self.ttl.alive(stamped):
            self.remove(key)
            return stamped if self.ttl.returns_expired else None
        if self.ttl.refresh_on_read:
            self.put(key, stamped[0])
        return stamped

    def get(self, key: Any) -> Any:
        """Return the value of a map key, unless it has expired."""
        stamped = self._read(key)
        return None if stamped is None else stamped[0]

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value and restart its time-to-live."""
        stored = self.cell.get() or {}
        stored[key] = self.ttl.stamp(value)
        self.cell.put(stored)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set several values."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a map key."""
        stored = self.cell.get()
        if stored is not None and key in stored:
            del stored[key]
            self.cell.put(stored or None)

    def contains(self, key: Any) -> bool:
        """Whether a visible entry exists. This counts as a read."""
        return self._read(key) is not None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The visible entries."""
        read = [(key, self._read(key)) for key in list(self.cell.get() or ())]
        return iter([(key, stamped[0]) for key, stamped in read if stamped is not None])

    def keys(self) -> Iterator[Any]:
        """Map keys of the visible entries."""
        return iter([key for key, _ in self.items()])

    def values(self) -> Iterator[Any]:
        """Values of the visible entries."""
        return iter([value for _, value in self.items()])

    def is_empty(self) -> bool:
        """Whether no entry is visible. This does not count as a read."""
        return not any(self.ttl.visible(stamped) for _, stamped in unnoted_items(self.cell.get() or {}))

    def clear(self) -> None:
        """Remove all entries."""
        self.cell.put(None)
