"""Process functions that see a broadcast stream beside their own."""

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
        """The timestamp of the current record, ``None`` if it has none."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's event-time clock."""


class _BroadcastContext(_BaseContext):
    """For broadcast elements: the broadcast state can be written."""

    __slots__ = ()

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """The broadcast state of that name."""


class _ReadOnlyContext(_BaseContext):
    """For the other elements: the broadcast state can only be read, since tasks see different elements."""

    __slots__ = ()

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """The broadcast state of that name."""


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
        """Handles a record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Handles a broadcast record; every parallel task is called with it and must do the same to the state."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Handles the records of a keyed stream and of a broadcast stream connected to it."""

    class Context(_BroadcastContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.process_broadcast_element`."""

        __slots__ = ()

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
            """Calls ``function(key, state)`` for every key of this task that has that state."""

    class ReadOnlyContext(_ReadOnlyContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.process_element`."""

        __slots__ = ()

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Sets timers for the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the current record or timer."""

    class OnTimerContext(ReadOnlyContext):
        """The context of :meth:`KeyedBroadcastProcessFunction.on_timer`."""

        __slots__ = ()

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The clock the timer followed."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Handles a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Handles a broadcast record; every parallel task is called with it and must do the same to the state."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Handles a timer that fired."""
        return None
