"""Process functions, with access to records, keys, clocks, timers and side outputs.

Yield the results, or return an iterable. Write to a side output with ``ctx.output(tag, value)`` or, as in PyFlink, with
``yield tag, value``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from penstock.core.functions.base import Function
from penstock.core.output_tag import OutputTag
from penstock.core.time_domain import TimeDomain
from penstock.core.timerservice import TimerService

__all__ = ["CoProcessFunction", "KeyedCoProcessFunction", "KeyedProcessFunction", "ProcessFunction"]

T = TypeVar("T")
KEY = TypeVar("KEY")
IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class SideOutputContext(ABC):
    """Contexts that can write to side outputs."""

    __slots__ = ()

    @abstractmethod
    def output(self, tag: OutputTag[T], value: T) -> None:
        """Emit ``value`` to a side output."""


class _ProcessContext(SideOutputContext):
    __slots__ = ()

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the service that reads the clocks and, on keyed streams, sets timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the record (``None`` if it has none); in ``on_timer``, that of the timer."""


class _KeyedProcessContext(_ProcessContext):
    __slots__ = ()

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the current record or timer."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """Handles single records, with access to clocks and side outputs."""

    class Context(_ProcessContext):
        """The context of :meth:`ProcessFunction.process_element`."""

        __slots__ = ()

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle one record."""


class KeyedProcessFunction(Function, Generic[KEY, IN, OUT]):
    """Handles single records of a keyed stream, with state and timers per key.

    >>> class CountThenAlert(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
    ...         yield value
    ...
    ...     def on_timer(self, timestamp, ctx):
    ...         yield f"{ctx.get_current_key()} quiet since {timestamp}"
    """

    class Context(_KeyedProcessContext):
        """The context of :meth:`KeyedProcessFunction.process_element`."""

        __slots__ = ()

    class OnTimerContext(Context):
        """The context of :meth:`KeyedProcessFunction.on_timer`."""

        __slots__ = ()

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the time domain of the timer."""

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle one record."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Handle a timer that fires."""
        return None


class CoProcessFunction(Function, Generic[IN1, IN2, OUT]):
    """Handles records of two connected streams."""

    class Context(_ProcessContext):
        """The context of the methods of :class:`CoProcessFunction`."""

        __slots__ = ()

    @abstractmethod
    def process_element1(self, value: IN1, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a record of the second stream."""


class KeyedCoProcessFunction(Function, Generic[KEY, IN1, IN2, OUT]):
    """Handles records of two connected keyed streams; both sides share the state and timers of a key."""

    class Context(_KeyedProcessContext):
        """The context of the methods of :class:`KeyedCoProcessFunction`."""

        __slots__ = ()

    class OnTimerContext(Context):
        """The context of :meth:`KeyedCoProcessFunction.on_timer`."""

        __slots__ = ()

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the time domain of the timer."""

    @abstractmethod
    def process_element1(self, value: IN1, ctx: KeyedCoProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: KeyedCoProcessFunction.Context) -> Iterable[OUT] | None:
        """Handle a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Handle a timer that fires."""
        return None
