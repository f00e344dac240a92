"""Evictors, which remove elements from a window before or after its function is called (rule 6.6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, MissingTimestampError
from penstock.common.time import Duration, Time, to_millis
from penstock.core.window.triggers import to_delta
from penstock.core.window.windows import Window

if TYPE_CHECKING:
    from penstock.metrics import MetricGroup

__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "TimeEvictor", "TimestampedValue"]

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TimestampedValue(Generic[T]):
    """An element of a window with its timestamp.

    >>> element = TimestampedValue("a", 5)
    >>> element.get_value(), element.get_timestamp(), TimestampedValue("b").has_timestamp()
    ('a', 5, False)
    """

    __slots__ = ("timestamp", "value")

    def __init__(self, value: T, timestamp: int | None = None) -> None:
        self.value = value
        self.timestamp = timestamp

    def get_value(self) -> T:
        return self.value

    def get_timestamp(self) -> int:
        if self.timestamp is None:
            raise MissingTimestampError(
                "the element of a window has no timestamp: check has_timestamp() first, or assign timestamps",
                record=self.value,
            )
        return self.timestamp

    def has_timestamp(self) -> bool:
        return self.timestamp is not None

    def __repr__(self) -> str:
        return f"TimestampedValue({self.value!r}, {self.timestamp})"


class Evictor(ABC, Generic[T, W]):
    """Removes elements from a window that fires. Change ``elements`` in place; what you remove stays removed.

    With an evictor, a window keeps all its elements, also with ``reduce`` and ``aggregate``.
    """

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: Evictor.EvictorContext
    ) -> None:
        """Called before the window function."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: Evictor.EvictorContext
    ) -> None:
        """Called after the window function."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    class EvictorContext(ABC):
        """The context of an evictor."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the group in which an evictor registers metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the operator's current watermark in ms."""


class _OneSidedEvictor(Evictor[Any, Any]):
    """Evicts either before the window function or after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if not self.do_evict_after:
            self._evict(elements, size)

    def evict_after(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if self.do_evict_after:
            self._evict(elements, size)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        """Remove elements."""


class CountEvictor(_OneSidedEvictor):
    """Keeps the last n elements.

    >>> elements = [TimestampedValue(n) for n in range(5)]
    >>> CountEvictor.of(2).evict_before(elements, 5, None, None)
    >>> elements
    [TimestampedValue(3, None), TimestampedValue(4, None)]
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if not is_int(max_count) or max_count < 0:
            raise InvalidProgramError(f"the size of a CountEvictor must be an int of at least 0, got {max_count!r}")
        self.max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Keep this many elements."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        if size > self.max_count:
            del elements[: size - self.max_count]

    def __repr__(self) -> str:
        return f"CountEvictor({self.max_count})"


class TimeEvictor(_OneSidedEvictor):
    """Keeps the elements that are at most ``window_size`` older than the newest element of the window.

    Elements that are exactly that old are removed, too. Elements without timestamps are kept.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if window_size < 0:
            raise InvalidProgramError(f"the size of a TimeEvictor must be at least 0 ms, got {window_size} ms")
        self.window_size = window_size

    @staticmethod
    def of(window_size: Time | Duration | timedelta | int, do_evict_after: bool = False) -> TimeEvictor:
        """Keep the elements of the last `window_size`."""
        return TimeEvictor(to_millis(window_size), do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        if elements and elements[0].has_timestamp():
            cutoff = max(element.get_timestamp() for element in elements) - self.window_size
            elements[:] = [element for element in elements if element.get_timestamp() > cutoff]

    def __repr__(self) -> str:
        return f"TimeEvictor({self.window_size})"


class DeltaEvictor(_OneSidedEvictor):
    """Removes the elements that differ from the last one by a threshold or more."""

    def __init__(
        self, threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False
    ) -> None:
        super().__init__(do_evict_after)
        self.threshold = threshold
        self.delta_function = to_delta(delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """Remove elements with ``delta_function(element, last) >= threshold``."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        if elements:
            delta, threshold, last = self.delta_function, self.threshold, elements[-1].value
            elements[:] = [element for element in elements if delta(element.value, last) < threshold]

    def __repr__(self) -> str:
        return f"DeltaEvictor({self.threshold})"
