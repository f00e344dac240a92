"""Process functions for a stream that is connected to a broadcast stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.core.functions.base import Function
from penstock.core.functions.process import SideOutputContext
from penstock.core.time_domain import TimeDomain
from penstock.core.timerservice import TimerService

if TYPE_CHECKING:
    from penstock.core.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor

__all__ = ["BaseBroadcastProcessFunction", "BroadcastProcessFunction", "KeyedBroadcastProcessFunction"]

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
K = TypeVar("K")
V = TypeVar("V")
KEY = TypeVar("KEY")


class _BaseContext(SideOutputContext):
    """The base class of the contexts of broadcast functions."""

    __slots__ = ()

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the current record, or ``None`` if it has none."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in ms."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's current watermark."""


class _BroadcastContext(_BaseContext):
    """The context for broadcast elements; broadcast state is writable."""

    __slots__ = ()

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return the broadcast state of the descriptor."""


class _ReadOnlyContext(_BaseContext):
    """The context for the other elements. Broadcast state is read-only, since each task sees different elements."""

    __slots__ = ()

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """Return the broadcast state of the descriptor."""


class BaseBroadcastProcessFunction(Function):
    """The base class of broadcast functions."""

    BaseContext = _BaseContext
    Context = _BroadcastContext
    ReadOnlyContext = _ReadOnlyContext


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Handles the records of a stream and of a broadcast stream connected to it."""

    class Context(_BroadcastContext):
        """The context of :meth:`BroadcastProcessFunction.process_broadcast_element`."""

        __slots__ = ()

    class ReadOnlyContext(_ReadOnlyContext):
        """The context of :meth:`BroadcastProcessFunction.process_element`."""

        __slots__ = ()

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Handle a record of the non-broadcast stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a broadcast record. It is called in every parallel task and must change the state in the same way."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Handles the records of a keyed stream and of a broadcast stream connected to it."""

    class Context(_BroadcastContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.process_broadcast_element`."""

        __slots__ = ()

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
            """Call ``function(key, state)`` for each key of this task that has the state."""

    class ReadOnlyContext(_ReadOnlyContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.process_element`."""

        __slots__ = ()

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that sets timers for the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the current record or timer."""

    class OnTimerContext(ReadOnlyContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.on_timer`."""

        __slots__ = ()

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the time domain of the timer."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Handle a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a broadcast record. It is called in every parallel task and must change the state in the same way."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Handle a timer that fires."""
        return None
