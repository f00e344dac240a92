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
        """Return the window that fires."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in ms."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's current watermark."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return state of this key and this window. The function must clear it in ``clear``."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return state of this key, shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Gets all elements of a window of a key at once (after ``reduce`` or ``aggregate``, the one aggregate)."""

    class Context(_WindowContext[W2], ABC):
        """The context of :meth:`ProcessWindowFunction.process` and :meth:`ProcessWindowFunction.clear`."""

        __slots__ = ()

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window that fires."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the window's own state when the window is purged."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Gets all elements of a window of a non-keyed stream at once."""

    class Context(_WindowContext[W2], ABC):
        """The context of the methods of :class:`ProcessAllWindowFunction`."""

        __slots__ = ()

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window that fires."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the window's own state when the window is purged."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """The older, simpler form of :class:`ProcessWindowFunction`."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window that fires."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """The older, simpler form of :class:`ProcessAllWindowFunction`."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window that fires."""
