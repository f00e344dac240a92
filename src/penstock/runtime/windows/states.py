"""State per key and window, of triggers and of process functions (`window_state`, `global_state`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from penstock.common.errors import InvalidProgramError, StateAccessError
from penstock.core.functions import KeyedStateStore
from penstock.core.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.windows import ttl_merging


class WindowStates:
    """The states of one operator by name. As in Flink, trigger and process function share states with the same name."""

    __slots__ = ("_factory", "_operator_name", "_per_key", "_per_window")

    def __init__(self, context: OperatorContext) -> None:
        assert context.keyed_backend is not None
        self._factory = KeyedStateFactory(context.keyed_backend, context.processing_time)
        self._operator_name = context.operator_name
        self._per_window: dict[str, tuple[StateDescriptor, Any]] = {}
        self._per_key: dict[str, tuple[StateDescriptor, Any]] = {}

    def of_window(self, descriptor: StateDescriptor, window: Any) -> Any:
        """Return the state of the current key and this window."""
        state = self._find(self._per_window, descriptor, namespaced=True)
        state.cell.namespace = window
        return state

    def of_key(self, descriptor: StateDescriptor) -> Any:
        """Return the state of the current key, independent of windows."""
        return self._find(self._per_key, descriptor, namespaced=False)

    def _find(
        self, known: dict[str, tuple[StateDescriptor, Any]], descriptor: StateDescriptor, *, namespaced: bool
    ) -> Any:
        found = known.get(descriptor.name)
        if found is None or (found[0] is not descriptor and found[0] != descriptor):
            found = known[descriptor.name] = (descriptor, self._factory.create(descriptor, namespaced=namespaced))
        return found[1]

    def merge(self, descriptor: StateDescriptor, target: Any, sources: Iterable[Any]) -> None:
        """Move the state of the source windows to the target window (rule 6.6)."""
        state = self.of_window(descriptor, target)
        merge = getattr(state, "merge_namespaces", None) or ttl_merging.merge_function(state)
        if merge is None:
            raise InvalidProgramError(
                f"operator '{self._operator_name}': state '{descriptor.name}' of a trigger cannot be merged. "
                "Windows that merge need list, reducing or aggregating state in their trigger"
            )
        merge(target, [source for source in sources if source != target])


class _Store(KeyedStateStore):
    """The five getters over one lookup."""

    __slots__ = ()

    def _get(self, descriptor: StateDescriptor) -> Any:
        raise NotImplementedError

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        state: ValueState[Any] = self._get(state_descriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        state: ListState[Any] = self._get(state_descriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        state: MapState[Any, Any] = self._get(state_descriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        state: ReducingState[Any] = self._get(state_descriptor)
        return state

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        state: AggregatingState[Any, Any] = self._get(state_descriptor)
        return state


class PerWindowStore(_Store):
    """The store behind `window_state()`."""

    __slots__ = ("_states", "window")

    def __init__(self, states: WindowStates) -> None:
        self._states = states
        self.window: Any = None

    def _get(self, descriptor: StateDescriptor) -> Any:
        return self._states.of_window(descriptor, self.window)


class PerKeyStore(_Store):
    """The store behind `global_state()`."""

    __slots__ = ("_states",)

    def __init__(self, states: WindowStates) -> None:
        self._states = states

    def _get(self, descriptor: StateDescriptor) -> Any:
        return self._states.of_key(descriptor)


class NoWindowStore(_Store):
    """Rejects `window_state()` where windows merge: a window may become another, so its state has no meaning."""

    __slots__ = ("_operator_name",)

    def __init__(self, operator_name: str) -> None:
        self._operator_name = operator_name

    def _get(self, descriptor: StateDescriptor) -> NoReturn:
        raise StateAccessError(
            f"window_state() cannot be used with windows that merge, such as sessions (state '{descriptor.name}'): "
            "use global_state(), which is kept per key",
            operator_name=self._operator_name,
        )
