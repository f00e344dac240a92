"""User-defined functions that read state key by key, or fill it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.core.functions import CheckpointedFunction, Function, KeyedProcessFunction, RuntimeContext
from penstock.core.state import BroadcastState, MapStateDescriptor

__all__ = [
    "BroadcastStateBootstrapFunction",
    "KeyedStateBootstrapFunction",
    "KeyedStateReaderFunction",
    "StateBootstrapFunction",
]


class KeyedStateReaderFunction(Function, ABC):
    """Reads every key of an operator with all its states, which `open` requests as the operator did."""

    class Context(ABC):
        """The context of the current key."""

        @abstractmethod
        def registered_event_time_timers(self) -> list[int]:
            """Return the key's event-time timers, earliest first."""

        @abstractmethod
        def registered_processing_time_timers(self) -> list[int]:
            """Return the key's processing-time timers, earliest first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Request states."""

    @abstractmethod
    def read_key(self, key: Any, ctx: KeyedStateReaderFunction.Context) -> Iterable[Any]:
        """Return the results for one key. Called for every key that has state."""


class KeyedStateBootstrapFunction(KeyedProcessFunction, ABC):
    """Fills keyed state and timers: `process_element(value, ctx)` is called for every element, with its current key."""


class StateBootstrapFunction(Function, CheckpointedFunction, ABC):
    """Fills operator state: `process_element` is called for every element, then `snapshot_state`."""

    @abstractmethod
    def process_element(self, value: Any) -> None:
        """Process one element."""


class BroadcastStateBootstrapFunction(Function, ABC):
    """Fills broadcast state."""

    class Context(ABC):
        """Provides the states."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return the broadcast state with this name."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastStateBootstrapFunction.Context) -> None:
        """Process one element."""
