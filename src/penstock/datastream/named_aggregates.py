"""``count()``, ``mean()``, ``quantile()``, ``top()`` and ``agg()`` of keyed and windowed streams.

On windows, they call ``aggregate()``; on a keyed stream, a process function with an aggregating state. ``sum``, ``min``
and ``max`` are PyFlink's and emit whole records. ``agg(total=Sum("amount"))`` emits the bare sum.
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
    """Aggregates with one result per key: keyed streams and their windows."""

    @abstractmethod
    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        """Return pairs of key and result, or rows if there are names."""

    def count(self) -> DataStream[tuple[K, int]]:
        """Count the records: ``(key, number)``."""
        return self._aggregated(Count(), None)

    def mean(self, field: Field = None) -> DataStream[tuple[K, float]]:
        """Compute the arithmetic mean of a field: ``(key, mean)``."""
        return self._aggregated(Mean(field), None)

    def quantile(self, q: float, field: Field = None, *, accuracy: float = 0.01) -> DataStream[tuple[K, float]]:
        """Compute the ``q`` quantile of a field: ``(key, value)``; see :class:`Quantile`."""
        return self._aggregated(Quantile(q, field, accuracy=accuracy), None)

    def top(self, n: int, by: Field = None, *, smallest: bool = False) -> DataStream[tuple[K, list[T]]]:
        """Keep the ``n`` records with the largest ``by``, largest first: ``(key, records)``."""
        return self._aggregated(Top(n, by, smallest=smallest), None)

    def agg(self, *unnamed: Never, **aggregates: AggregateFunction[T, Any, Any]) -> DataStream[Row]:
        """Compute named aggregates: ``agg(total=Sum("amount"), n=Count())`` emits ``Row(key=..., total=..., n=...)``.

        Rows of time windows also have ``window_start`` and ``window_end``, in ms.
        """
        _reject_unnamed(unnamed)
        together = Together(aggregates)
        return self._aggregated(together, together.names)


class AggregatesOfAll(Generic[T]):
    """Aggregates with one result for all records of a window."""

    @abstractmethod
    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        """Return results, or rows if there are names."""

    def count(self) -> DataStream[int]:
        """Count the records."""
        return self._aggregated(Count(), None)

    def mean(self, field: Field = None) -> DataStream[float]:
        """Compute the arithmetic mean of a field."""
        return self._aggregated(Mean(field), None)

    def quantile(self, q: float, field: Field = None, *, accuracy: float = 0.01) -> DataStream[float]:
        """Compute the ``q`` quantile of a field; see :class:`Quantile`."""
        return self._aggregated(Quantile(q, field, accuracy=accuracy), None)

    def top(self, n: int, by: Field = None, *, smallest: bool = False) -> DataStream[list[T]]:
        """Keep the ``n`` records with the largest ``by``, largest first."""
        return self._aggregated(Top(n, by, smallest=smallest), None)

    def agg(self, *unnamed: Never, **aggregates: AggregateFunction[T, Any, Any]) -> DataStream[Row]:
        """Compute named aggregates: ``Row(window_start=..., window_end=..., total=..., n=...)``."""
        _reject_unnamed(unnamed)
        together = Together(aggregates)
        return self._aggregated(together, together.names)


def _reject_unnamed(aggregates: tuple[object, ...]) -> None:
    if aggregates:
        raise InvalidProgramError(f"agg() needs a name for each aggregate: .agg(total={aggregates[0]!r})")


class WithKey(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits the result of a window with its key."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [(key, element) for element in elements]


class WithWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits the results of a window as a row, with key and window."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        start = {"key": key, **bounds(context.window())}
        return [Row(**start, **dict(zip(self._names, element, strict=True))) for element in elements]


class WindowAndResults(ProcessAllWindowFunction[Any, Any, Any]):
    """Emits the results of a window over all records as a row, with the window."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        start = bounds(context.window())
        return [Row(**start, **dict(zip(self._names, element, strict=True))) for element in elements]


def bounds(window: Any) -> dict[str, int]:
    """Return the fields of a row that describe its window."""
    return {"window_start": window.start, "window_end": window.end} if isinstance(window, TimeWindow) else {}


class RollingAggregate(KeyedProcessFunction[Any, Any, Any]):
    """Emits, for each record, the aggregate of all records of its key so far."""

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
