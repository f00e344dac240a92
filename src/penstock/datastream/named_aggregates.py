"""``count()``, ``mean()``, ``quantile()``, ``top()`` and ``agg()`` of keyed and windowed streams.

All of them become ``aggregate()`` of windows, or a process function with an aggregating state on a keyed stream.
``sum``, ``min`` and ``max`` are PyFlink's: they give whole records. ``agg(total=Sum("amount"))`` gives the bare sum.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.common.types import Row
from penstock.core.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from penstock.core.state import AggregatingState, AggregatingStateDescriptor
from penstock.core.window import TimeWindow
from penstock.datastream.aggregates import Count, Field, Mean, Quantile, Together, Top

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream

__all__ = ["AggregatesByKey", "AggregatesOfAll", "RollingAggregate", "WindowAndResults", "WithKey", "WithWindow"]

K = TypeVar("K")
T = TypeVar("T")


class AggregatesByKey(Generic[K, T]):
    """Aggregates with one result per key: a keyed stream, or its windows."""

    @abstractmethod
    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        """Pairs of key and result; with names rows of them."""

    def count(self) -> DataStream[tuple[K, int]]:
        """How many records there are: ``(key, number)``."""
        return self._aggregated(Count(), None)

    def mean(self, field: Field = None) -> DataStream[tuple[K, float]]:
        """The arithmetic mean of a field: ``(key, mean)``."""
        return self._aggregated(Mean(field), None)

    def quantile(self, q: float, field: Field = None, *, accuracy: float = 0.01) -> DataStream[tuple[K, float]]:
        """The value that a share ``q`` of the values does not exceed: ``(key, value)``; see :class:`Quantile`."""
        return self._aggregated(Quantile(q, field, accuracy=accuracy), None)

    def top(self, n: int, by: Field = None, *, smallest: bool = False) -> DataStream[tuple[K, list[T]]]:
        """The ``n`` records with the largest ``by``, largest first: ``(key, records)``."""
        return self._aggregated(Top(n, by, smallest=smallest), None)

    def agg(self, *unnamed: Never, **aggregates: AggregateFunction[T, Any, Any]) -> DataStream[Row]:
        """Several aggregates by name: ``agg(total=Sum("amount"), n=Count())`` gives ``Row(key=..., total=..., n=...)``.

        Rows of time windows also have ``window_start`` and ``window_end``, in ms.
        """
        _reject_unnamed(unnamed)
        together = Together(aggregates)
        return self._aggregated(together, together.names)


class AggregatesOfAll(Generic[T]):
    """Aggregates over all records of a window."""

    @abstractmethod
    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        """Results; with names rows of them."""

    def count(self) -> DataStream[int]:
        """How many records there are."""
        return self._aggregated(Count(), None)

    def mean(self, field: Field = None) -> DataStream[float]:
        """The arithmetic mean of a field."""
        return self._aggregated(Mean(field), None)

    def quantile(self, q: float, field: Field = None, *, accuracy: float = 0.01) -> DataStream[float]:
        """The value that a share ``q`` of the values does not exceed; see :class:`Quantile`."""
        return self._aggregated(Quantile(q, field, accuracy=accuracy), None)

    def top(self, n: int, by: Field = None, *, smallest: bool = False) -> DataStream[list[T]]:
        """The ``n`` records with the largest ``by``, largest first."""
        return self._aggregated(Top(n, by, smallest=smallest), None)

    def agg(self, *unnamed: Never, **aggregates: AggregateFunction[T, Any, Any]) -> DataStream[Row]:
        """Several aggregates by name: ``Row(window_start=..., window_end=..., total=..., n=...)``."""
        _reject_unnamed(unnamed)
        together = Together(aggregates)
        return self._aggregated(together, together.names)


def _reject_unnamed(aggregates: tuple[object, ...]) -> None:
    if aggregates:
        raise InvalidProgramError(f"agg() needs a name for each aggregate: .agg(total={aggregates[0]!r})")


class WithKey(ProcessWindowFunction[Any, Any, Any, Any]):
    """Results of windows with their key."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [(key, element) for element in elements]


class WithWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    """Results of windows as rows, with key and window."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        start = {"key": key, **bounds(context.window())}
        return [Row(**start, **dict(zip(self._names, element, strict=True))) for element in elements]


class WindowAndResults(ProcessAllWindowFunction[Any, Any, Any]):
    """Results of windows over all records as rows, with the window."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        start = bounds(context.window())
        return [Row(**start, **dict(zip(self._names, element, strict=True))) for element in elements]


def bounds(window: Any) -> dict[str, int]:
    """The fields of a row that say which window it is of."""
    return {"window_start": window.start, "window_end": window.end} if isinstance(window, TimeWindow) else {}


class RollingAggregate(KeyedProcessFunction[Any, Any, Any]):
    """The aggregate of all records of a key so far, for every record."""

    def __init__(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> None:
        self._function = function
        self._names = names

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = AggregatingStateDescriptor("aggregate", self._function)
        self._state: AggregatingState[Any, Any] = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        self._state.add(value)
        key, result = ctx.get_current_key(), self._state.get()
        if self._names is None:
            return [(key, result)]
        return [Row(key=key, **dict(zip(self._names, result, strict=True)))]
