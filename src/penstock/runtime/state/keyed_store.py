"""Create state objects from descriptors: the implementation of `RuntimeContext.get_state` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.errors import InvalidProgramError, StateAccessError
from penstock.core.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.runtime.records.isolation import deeply_immutable
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.cells import Cell, NamespaceCell, SlotCell
from penstock.runtime.state.keyed_states import (
    CellAggregatingState,
    CellListState,
    CellMapState,
    CellReducingState,
    CellValueState,
    SlotValueState,
    SlotValueStateWithMutableDefault,
)
from penstock.runtime.state.page_chunks import Growing, by_namespace, whole_value
from penstock.runtime.state.state_types import describe
from penstock.runtime.state.sweeps import ListSweep, MapSweep, NamespaceSweep, Sweep, ValueSweep
from penstock.runtime.state.ttl import (
    SlotTtlValueState,
    Ttl,
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
    without_stamps,
)

_KINDS: dict[type[StateDescriptor], str] = {
    ValueStateDescriptor: "value state",
    ListStateDescriptor: "list state",
    MapStateDescriptor: "map state",
    ReducingStateDescriptor: "reducing state",
    AggregatingStateDescriptor: "aggregating state",
}


class KeyedStateFactory:
    """Creates state objects on one backend. Descriptors with the same name share their state."""

    def __init__(self, backend: KeyedStateBackend, clock: Callable[[], int]) -> None:
        self.backend = backend
        self._clock = clock

    def create(self, descriptor: StateDescriptor, *, namespaced: bool = False) -> Any:
        """Return a state object over a slot or, if namespaced, over a dict in the slot (see `.cell.namespace`)."""
        kind = next((name for cls, name in _KINDS.items() if isinstance(descriptor, cls)), None)
        if kind is None:
            raise InvalidProgramError(f"unknown state descriptor {type(descriptor).__name__}")
        ttl = self._ttl(descriptor)
        if namespaced:
            kind = "windowed " + kind
        if ttl is not None:
            kind += " with TTL"
        sweep = None if ttl is None else _sweep(descriptor, ttl, namespaced=namespaced)
        outside = descriptor.get_queryable_state_name()
        if outside is not None:
            self.backend.queryable[outside] = descriptor.name
        slot = self.backend.register(
            descriptor.name,
            kind,
            sweep,
            describe(descriptor.type_info),
            sweep_in_background=ttl is not None and ttl.cleans_in_background,
            growing=_growing(descriptor, namespaced=namespaced),
        )
        cell: Cell = NamespaceCell(self.backend, slot) if namespaced else SlotCell(self.backend, slot)
        return _plain(descriptor, cell) if ttl is None else _with_ttl(descriptor, cell, ttl)

    def _ttl(self, descriptor: StateDescriptor) -> Ttl | None:
        config = descriptor.ttl_config
        return Ttl(config, self._clock) if config is not None and config.is_enabled() else None


def _growing(descriptor: StateDescriptor, *, namespaced: bool) -> Growing | None:
    """Lists and maps may grow without limit. The inside of a value belongs to the user."""
    if not isinstance(descriptor, (ListStateDescriptor, MapStateDescriptor)):
        return None
    return by_namespace if namespaced else whole_value


def _sweep(descriptor: StateDescriptor, ttl: Ttl, *, namespaced: bool) -> Sweep:
    kind: type[Sweep] = ValueSweep
    if isinstance(descriptor, ListStateDescriptor):
        kind = ListSweep
    elif isinstance(descriptor, MapStateDescriptor):
        kind = MapSweep
    return NamespaceSweep(kind(ttl.ttl)) if namespaced else kind(ttl.ttl)


def _plain(descriptor: StateDescriptor, cell: Cell) -> Any:
    if isinstance(descriptor, ValueStateDescriptor):
        if isinstance(cell, SlotCell):
            default = descriptor.default_value
            kind = SlotValueState if deeply_immutable(default) else SlotValueStateWithMutableDefault
            return kind(cell.backend, cell.slot, default)
        return CellValueState(cell, descriptor.default_value)
    if isinstance(descriptor, ListStateDescriptor):
        return CellListState(cell)
    if isinstance(descriptor, MapStateDescriptor):
        return CellMapState(cell)
    if isinstance(descriptor, ReducingStateDescriptor):
        return CellReducingState(cell, reducer(descriptor.get_reduce_function()))
    return CellAggregatingState(cell, descriptor.get_agg_function())  # type: ignore[attr-defined]


def _with_ttl(descriptor: StateDescriptor, cell: Cell, ttl: Ttl) -> Any:
    if isinstance(descriptor, ValueStateDescriptor):
        if isinstance(cell, SlotCell) and deeply_immutable(descriptor.default_value):
            return SlotTtlValueState(cell.backend, cell.slot, ttl, descriptor.default_value)
        return TtlValueState(cell, ttl, descriptor.default_value)
    if isinstance(descriptor, ListStateDescriptor):
        return TtlListState(cell, ttl)
    if isinstance(descriptor, MapStateDescriptor):
        return TtlMapState(cell, ttl)
    if isinstance(descriptor, ReducingStateDescriptor):
        return TtlReducingState(cell, ttl, reducer(descriptor.get_reduce_function()))
    return TtlAggregatingState(cell, ttl, descriptor.get_agg_function())  # type: ignore[attr-defined]


def read_only_state(name: str, descriptor: StateDescriptor, kind: str, stored: Any, cell: Callable[[Any], Any]) -> Any:
    """Return a state object over a stored value of this kind, which must match the descriptor."""
    plain = kind.removesuffix(" with TTL")
    if plain not in _KINDS.values():
        raise StateAccessError(f"state '{name}' belongs to windows: only state per key can be queried")
    wanted = next((known for cls, known in _KINDS.items() if isinstance(descriptor, cls)), None)
    if wanted != plain:
        raise InvalidProgramError(f"state '{name}' is a {plain} and cannot be read as a {wanted}")
    return _plain(descriptor, cell(without_stamps(kind, stored)))


def reducer(function: Any) -> Callable[[Any, Any], Any]:
    """Return a ReduceFunction or a lambda as a two-argument callable."""
    reduce: Callable[[Any, Any], Any] = getattr(function, "reduce", function)
    return reduce
