"""Merge the state with time-to-live of merging windows: drop expired values, merge the others as usual."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.runtime.state.ttl import Stamped, Ttl, TtlAggregatingState, TtlListState, TtlReducingState


def merge_function(state: Any) -> Callable[[Any, Iterable[Any]], None] | None:
    """Return `merge(target, sources)` for namespaces of a state with time-to-live, or None if it cannot merge."""
    if isinstance(state, TtlListState):
        return lambda target, sources: _merge_lists(state, target, sources)
    if isinstance(state, TtlReducingState):
        return lambda target, sources: _merge_values(state, target, sources, state.reduce_function)
    if isinstance(state, TtlAggregatingState):
        return lambda target, sources: _merge_values(state, target, sources, state.function.merge)
    return None


def _take(state: Any, target: Any, sources: Iterable[Any]) -> list[Any]:
    """Take the contents out of the sources, with the target as current namespace."""
    taken: list[Any] = state.cell.take(sources)
    state.cell.namespace = target
    return taken


def _merge_lists(state: TtlListState, target: Any, sources: Iterable[Any]) -> None:
    """Merge lists. Elements keep the time of their last access."""
    taken, ttl = _take(state, target, sources), state.ttl
    merged = [stamped for stored in (state.cell.get() or (), *taken) for stamped in stored if ttl.alive(stamped)]
    state.cell.put(merged or None)


def _merge_values(state: Any, target: Any, sources: Iterable[Any], merge: Callable[[Any, Any], Any]) -> None:
    """Merge values. Merging two values updates their time; a single value keeps its time."""
    taken = _take(state, target, sources)
    ttl: Ttl = state.ttl
    alive: list[Stamped] = [value for value in (state.cell.get(), *taken) if value is not None and ttl.alive(value)]
    merged = alive[0] if alive else None
    for stamped in alive[1:]:
        assert merged is not None
        merged = ttl.stamp(merge(merged[0], stamped[0]))
    state.cell.put(merged)
