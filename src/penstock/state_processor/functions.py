"""The functions a user writes to read state key by key, or to fill it."""

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
    """Sees every key of an operator with all its states, which it asks for in `open` as the operator itself did."""

    class Context(ABC):
        """The context of the current key."""

        @abstractmethod
        def registered_event_time_timers(self) -> list[int]:
            """The key's event-time timers, earliest first."""

        @abstractmethod
        def registered_processing_time_timers(self) -> list[int]:
            """The key's processing-time timers, earliest first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Ask for states."""

    @abstractmethod
    def read_key(self, key: Any, ctx: KeyedStateReaderFunction.Context) -> Iterable[Any]:
        """The results for one key; called for every key that has state."""


class KeyedStateBootstrapFunction(KeyedProcessFunction, ABC):
    """Fills keyed state and timers: `process_element(value, ctx)` for every element, with its key in scope."""


class StateBootstrapFunction(Function, CheckpointedFunction, ABC):
    """Fills operator state: `process_element` for every element, then `snapshot_state`."""

    @abstractmethod
    def process_element(self, value: Any) -> None:
        """One element."""


class BroadcastStateBootstrapFunction(Function, ABC):
    """Fills broadcast state."""

    class Context(ABC):
        """Gives the states."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state of this name."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastStateBootstrapFunction.Context) -> None:
        """One element."""
