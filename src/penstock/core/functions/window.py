"""Functions that are called with the contents of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from penstock.core.functions.base import Function, KeyedStateStore
from penstock.core.functions.process import SideOutputContext

__all__ = ["AllWindowFunction", "ProcessAllWindowFunction", "ProcessWindowFunction", "WindowFunction"]

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class _WindowContext(SideOutputContext, Generic[W2]):
    """The base class of the contexts of window functions."""

    __slots__ = ()

    @abstractmethod
    def window(self) -> W2:
        """The window that fired."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's event-time clock."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window; the function must clear it in ``clear``."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Gets all elements of a window of a key at once (or the one aggregate, after ``reduce`` or ``aggregate``)."""

    class Context(_WindowContext[W2], ABC):
        """The context of :meth:`ProcessWindowFunction.process` and :meth:`ProcessWindowFunction.clear`."""

        __slots__ = ()

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yields the results of a window that fires."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Removes the window's own state, when the window goes."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Gets all elements of a window of a stream without keys at once."""

    class Context(_WindowContext[W2], ABC):
        """The context of the methods of :class:`ProcessAllWindowFunction`."""

        __slots__ = ()

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yields the results of a window that fires."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Removes the window's own state, when the window goes."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """The older, simpler form of :class:`ProcessWindowFunction`."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yields the results of a window that fires."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """The older, simpler form of :class:`ProcessAllWindowFunction`."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yields the results of a window that fires."""
