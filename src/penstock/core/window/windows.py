"""Windows: the finite parts of a stream on which functions run (rules 6.4, 6.6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.common.watermark import MAX_WATERMARK

if TYPE_CHECKING:
    from penstock.core.window.assigner import MergingWindowAssigner

__all__ = ["CountWindow", "GlobalWindow", "TimeWindow", "Window", "long_to_int_with_bit_mixing", "mod_inverse"]

_MASK64 = (1 << 64) - 1


class Window(ABC):
    """A part of a stream. Equal windows are the same window, so never change one.

    Two windows are equal if they are of the same class and have the same attributes; a subclass may define another
    ``__eq__``, together with ``__hash__``. Windows are kept in state: they must be picklable.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp in the window, which is also the timestamp of its results."""

    def _attributes(self) -> tuple[tuple[str, Any], ...]:
        return tuple(sorted(getattr(self, "__dict__", {}).items()))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._attributes() == other._attributes()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._attributes()))


class _Bounds(NamedTuple):
    start: int
    end: int


class TimeWindow(_Bounds, Window):
    """The interval from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds since the epoch.

    It is a named tuple, so that hashing and comparing, which state does all the time, are cheap.

    >>> window = TimeWindow(0, 5000)
    >>> window.start, window.end, window.max_timestamp()
    (0, 5000, 4999)
    >>> window.intersects(TimeWindow(5000, 6000)), window.intersects(TimeWindow(5001, 6000))
    (True, False)
    >>> window.cover(TimeWindow(7000, 9000))
    TimeWindow(start=0, end=9000)
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        """Return the last millisecond of the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch. Elements exactly one gap apart are in the same session."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window with this timestamp. Windows are aligned to the epoch plus the offset.

        >>> TimeWindow.get_window_start_with_offset(-1, 0, 1000)
        -1000
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Report each group of windows that overlap or touch, with the window that covers them.

        >>> from penstock.core.window import MergingWindowAssigner
        >>> class Show(MergingWindowAssigner.MergeCallback):
        ...     def merge(self, to_be_merged, merge_result):
        ...         print(sorted(to_be_merged), "->", merge_result)
        >>> TimeWindow.merge_windows([TimeWindow(0, 10), TimeWindow(30, 40), TimeWindow(5, 20)], Show())
        [TimeWindow(start=0, end=10), TimeWindow(start=5, end=20)] -> TimeWindow(start=0, end=20)
        """
        group: list[TimeWindow] = []
        covering: TimeWindow | None = None
        for window in sorted(windows):
            if covering is not None and covering.intersects(window):
                covering = covering.cover(window)
                group.append(window)
                continue
            if covering is not None and len(group) > 1:
                callback.merge(group, covering)
            covering, group = window, [window]
        if covering is not None and len(group) > 1:
            callback.merge(group, covering)


class _Endless(NamedTuple):
    last: int = MAX_WATERMARK


class GlobalWindow(_Endless, Window):
    """The single window of all elements of a key. It never ends, so it needs an explicit trigger.

    >>> GlobalWindow() == GlobalWindow.get()
    True
    """

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """Return the global window."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """Return the largest possible timestamp."""
        return MAX_WATERMARK

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow.get, ()

    def __repr__(self) -> str:
        return "GlobalWindow()"


_GLOBAL_WINDOW = GlobalWindow()


class _Numbered(NamedTuple):
    id: int


class CountWindow(_Numbered, Window):
    """The n-th count window of a key."""

    __slots__ = ()

    def max_timestamp(self) -> int:
        """Return the largest possible timestamp: the window ends by count, never by time."""
        return MAX_WATERMARK


def long_to_int_with_bit_mixing(x: int) -> int:
    """Return a well-distributed 32-bit hash of a 64-bit number.

    >>> 0 <= long_to_int_with_bit_mixing(42) < 2**32
    True
    """
    x &= _MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return (x ^ (x >> 31)) & 0xFFFFFFFF


def mod_inverse(x: int) -> int:
    """Return the inverse of an odd number modulo 2**64.

    >>> 7 * mod_inverse(7) % 2**64
    1
    """
    return pow(x, -1, 1 << 64)
