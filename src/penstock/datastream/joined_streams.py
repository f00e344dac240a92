"""Joins of two streams: in windows (join, co_group) and by time difference (interval join) (rule 6.7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, shorten
from penstock.common.time import Duration, Time, to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from penstock.core.output_tag import OutputTag
from penstock.core.window import WindowAssigner
from penstock.datastream.connected_streams import connect_inputs
from penstock.datastream.data_stream import DataStream
from penstock.datastream.windowed_stream import WindowParts
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.runtime.windows.builder import build_window_join_operator

if TYPE_CHECKING:
    from penstock.datastream.keyed_stream import KeyedStream

__all__ = ["CoGroupedStreams", "IntervalJoin", "IntervalJoined", "JoinedStreams"]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class _WithWindow(WindowParts, Generic[T, U]):
    """Two streams with keys and windows. Next, call :meth:`apply`."""

    def __init__(
        self,
        first: KeyedStream[Any, T],
        second: KeyedStream[Any, U],
        assigner: WindowAssigner[Any, Any],
        *,
        co_group: bool,
    ) -> None:
        super().__init__(assigner)
        self._first = first
        self._second = second
        self._co_group = co_group

    def apply(
        self,
        function: Callable[[T, U], R] | JoinFunction[T, U, R] | FlatJoinFunction[T, U, R] | CoGroupFunction[T, U, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Call the function for each pair with the same key and window (join), or once for both sides (co_group)."""
        operator = build_window_join_operator(
            self._assigner,
            first_key_selector=self._first.get_key_selector(),
            second_key_selector=self._second.get_key_selector(),
            function=function,
            co_group=self._co_group,
            trigger=self._trigger,
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness,
            late_tag=self._late_tag,
        )
        kind = "CoGroup" if self._co_group else "Join"
        return connect_inputs(self._first, self._second, f"{kind}({self._assigner!r})", operator, output_type)


class _EqualTo(Generic[T, U]):
    """Two streams with keys. Next, call :meth:`window`."""

    def __init__(self, first: KeyedStream[Any, T], second: KeyedStream[Any, U], *, co_group: bool) -> None:
        self._first = first
        self._second = second
        self._co_group = co_group

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> _WithWindow[T, U]:
        """Set the windows in which records meet."""
        return _WithWindow(self._first, self._second, window_assigner, co_group=self._co_group)


class _Where(Generic[T, U]):
    """Two streams with the key of the first one. Next, call :meth:`equal_to`."""

    def __init__(self, first: KeyedStream[Any, T], second: DataStream[U], *, co_group: bool) -> None:
        self._first = first
        self._second = second
        self._co_group = co_group

    def equal_to(self, key_selector: Any, key_type: TypeInformation[Any] | None = None) -> _EqualTo[T, U]:
        """Set the key of the second stream."""
        return _EqualTo(self._first, self._second.key_by(key_selector, key_type=key_type), co_group=self._co_group)


class JoinedStreams(Generic[T, U]):
    """An inner join in windows: ``a.join(b).where(key).equal_to(key).window(assigner).apply(function)``."""

    Where = _Where
    EqualTo = _EqualTo
    WithWindow = _WithWindow
    _co_group = False

    def __init__(self, stream1: DataStream[T], stream2: DataStream[U]) -> None:
        self._stream1 = stream1
        self._stream2 = stream2

    def where(self, key_selector: Any, key_type: TypeInformation[Any] | None = None) -> _Where[T, U]:
        """Set the key of the first stream."""
        return _Where(self._stream1.key_by(key_selector, key_type=key_type), self._stream2, co_group=self._co_group)


class CoGroupedStreams(JoinedStreams[T, U]):
    """Both sides of a key and window in one call; for example, to write outer joins."""

    _co_group = True


class IntervalJoin(Generic[T, U]):
    """Two keyed streams. Next, call :meth:`between`."""

    def __init__(self, stream_one: KeyedStream[Any, T], stream_two: KeyedStream[Any, U]) -> None:
        self._one = stream_one
        self._two = stream_two

    def in_event_time(self) -> Self:
        """Use event time: the default, and the only possibility."""
        return self

    def in_processing_time(self) -> Self:
        """Not supported: interval joins compare timestamps."""
        raise UnsupportedFeatureError("interval joins work in event time only: assign timestamps and watermarks")

    def between(
        self, lower_bound: Time | Duration | timedelta | int, upper_bound: Time | Duration | timedelta | int
    ) -> IntervalJoined[T, U]:
        """Set how much later than the left record the right one may be. Bounds are inclusive and may be negative."""
        return IntervalJoined(self._one, self._two, to_millis(lower_bound), to_millis(upper_bound))


class IntervalJoined(Generic[T, U]):
    """Two keyed streams and an interval. Next, call :meth:`process`."""

    def __init__(
        self, left: KeyedStream[Any, T], right: KeyedStream[Any, U], lower_bound: int, upper_bound: int
    ) -> None:
        if lower_bound > upper_bound:
            raise InvalidProgramError(
                f"the lower bound of an interval join is above the upper one: {lower_bound} ms and {upper_bound} ms"
            )
        self._left = left
        self._right = right
        self._lower = lower_bound
        self._upper = upper_bound
        self._lower_inclusive = True
        self._upper_inclusive = True
        self._left_late: OutputTag | None = None
        self._right_late: OutputTag | None = None

    def lower_bound_exclusive(self) -> Self:
        self._lower_inclusive = False
        return self

    def upper_bound_exclusive(self) -> Self:
        self._upper_inclusive = False
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send left records that arrive too late to this side output."""
        self._left_late = _checked_tag(output_tag)
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send right records that arrive too late to this side output."""
        self._right_late = _checked_tag(output_tag)
        return self

    def process(
        self, process_join_function: ProcessJoinFunction[T, U, R], output_type: TypeInformation[Any] | None = None
    ) -> DataStream[R]:
        """Call the function for each pair."""
        operator = IntervalJoinOperator(
            process_join_function,
            self._left.get_key_selector(),
            self._right.get_key_selector(),
            self._lower,
            self._upper,
            lower_inclusive=self._lower_inclusive,
            upper_inclusive=self._upper_inclusive,
            left_late_tag=self._left_late,
            right_late_tag=self._right_late,
        )
        return connect_inputs(self._left, self._right, "Interval Join", operator, output_type)


def _checked_tag(tag: OutputTag) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise InvalidProgramError(f"late data needs an OutputTag, got {shorten(tag)}")
    return tag
