"""Windows of keyed and non-keyed streams (rules 6.4, 6.5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Duration, Time, to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.core.output_tag import OutputTag
from penstock.core.window import Evictor, GlobalWindow, Trigger, Window, WindowAssigner
from penstock.datastream.data_stream import DataStream
from penstock.datastream.named_aggregates import (
    AggregatesByKey,
    AggregatesOfAll,
    WindowAndResults,
    WithKey,
    WithWindow,
)
from penstock.graph.transformation import OneInputTransformation
from penstock.runtime.operators.rolling import (
    RollingAggregation,
    RollingMax,
    RollingMaxBy,
    RollingMin,
    RollingMinBy,
    RollingSum,
)
from penstock.runtime.operators.type_check import declare_kept_type, declare_output_type
from penstock.runtime.windows.builder import build_window_operator, count_window_parts

if TYPE_CHECKING:
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["AllWindowedStream", "WindowedStream"]

T = TypeVar("T")
R = TypeVar("R")
R2 = TypeVar("R2")
K = TypeVar("K")
W = TypeVar("W", bound=Window)


class WindowParts:
    """The settings of windows: trigger, evictor, lateness."""

    def __init__(self, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise InvalidProgramError(
                f"window() takes a WindowAssigner such as tumbling(minutes=1), got {shorten(window_assigner)}"
            )
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness = 0
        self._late_tag: OutputTag | None = None

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Set when windows fire, in place of the assigner's default trigger."""
        if not isinstance(trigger, Trigger):
            raise InvalidProgramError(f"trigger() takes a Trigger, got {shorten(trigger)}")
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Set which elements leave a window before or after it fires. Windows then keep all their elements."""
        if not isinstance(evictor, Evictor):
            raise InvalidProgramError(f"evictor() takes an Evictor, got {shorten(evictor)}")
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration | timedelta) -> Self:
        """Set how long, in event time, a window accepts late elements after its end. Each one makes it fire again."""
        lateness = to_millis(time_ms)
        if lateness < 0:
            raise InvalidProgramError(f"the allowed lateness must not be negative, got {lateness} ms")
        self._allowed_lateness = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Send elements that arrive too late for their window to this side output instead of dropping them."""
        if not isinstance(output_tag, OutputTag):
            raise InvalidProgramError(f"side_output_late_data() takes an OutputTag, got {shorten(output_tag)}")
        self._late_tag = output_tag
        return self


class _Windowed(WindowParts, Generic[T]):
    """The base class of keyed and non-keyed windowed streams."""

    _kind = ""

    def __init__(self, stream: DataStream[T], window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(window_assigner)
        self._stream = stream

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation[T]:
        return self._stream.get_type()

    # Aggregates

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T]:
        """Emit the sum of a field over each window, in the window's first record."""
        return self._roll(RollingSum(position_to_sum))

    def min(self, position_to_min: int | str = 0) -> DataStream[T]:
        """Emit the smallest value of a field in each window, in the window's first record."""
        return self._roll(RollingMin(position_to_min))

    def max(self, position_to_max: int | str = 0) -> DataStream[T]:
        """Emit the largest value of a field in each window, in the window's first record."""
        return self._roll(RollingMax(position_to_max))

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream[T]:
        """Emit the record with the smallest field of each window; of equal records the first one, or the last one."""
        return self._roll(RollingMinBy(position_to_min_by, first=first))

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream[T]:
        """Emit the record with the largest field of each window; of equal records the first one, or the last one."""
        return self._roll(RollingMaxBy(position_to_max_by, first=first))

    def _roll(self, aggregation: RollingAggregation) -> DataStream[T]:
        return self._window(aggregation.name, reduce_function=aggregation, keeps_type=True)

    # Internals

    def _window(
        self,
        label: str,
        *,
        reduce_function: Any = None,
        aggregate_function: Any = None,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        keeps_type: bool = False,
    ) -> DataStream[Any]:
        env = self.get_execution_environment()
        env.check_open()
        source = self._stream.get_transformation()
        operator = build_window_operator(
            self._assigner,
            key_selector=self._key_selector(),
            reduce_function=reduce_function,
            aggregate_function=aggregate_function,
            window_function=window_function,
            trigger=self._trigger,
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness,
            late_tag=self._late_tag,
            all_window=self._key_selector() is None,
            held_type=source.output_type if aggregate_function is None else accumulator_type,
        )
        declare_output_type(operator, output_type)
        if keeps_type and output_type is None:
            declare_kept_type(operator, source.output_type)
        transformation = OneInputTransformation(
            name=f"{self._kind}({self._assigner!r}, {label})",
            input=source,
            operator=operator,
            output_type=output_type if output_type is not None or not keeps_type else source.output_type,
        )
        return DataStream(env, transformation)

    def _key_selector(self) -> Callable[[Any], Any] | None:
        return None


class WindowedStream(AggregatesByKey[K, T], _Windowed[T], Generic[K, T, W]):
    """Windows for each key of a stream."""

    _kind = "Window"
    _stream: KeyedStream[K, T]

    def __init__(self, keyed_stream: KeyedStream[K, T], window_assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(keyed_stream, window_assigner)

    def _key_selector(self) -> Callable[[Any], Any]:
        return self._stream.get_key_selector()

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[T]: ...
    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: WindowFunction[T, R, K, W] | ProcessWindowFunction[T, R, K, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]: ...
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: WindowFunction[T, Any, K, W] | ProcessWindowFunction[T, Any, K, W] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[Any]:
        """Combine the elements of a window as they arrive. The window function gets the result."""
        return self._window(
            "Reduce",
            reduce_function=reduce_function,
            window_function=window_function,
            output_type=output_type,
            keeps_type=window_function is None,
        )

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, R],
        window_function: None = None,
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, R],
        window_function: WindowFunction[R, R2, K, W] | ProcessWindowFunction[R, R2, K, W],
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R2]: ...
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, Any],
        window_function: WindowFunction[Any, Any, K, W] | ProcessWindowFunction[Any, Any, K, W] | None = None,
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[Any]:
        """Aggregate the elements of a window as they arrive. The window function gets the result."""
        return self._window(
            "Aggregate",
            aggregate_function=aggregate_function,
            window_function=window_function,
            accumulator_type=accumulator_type,
            output_type=output_type,
        )

    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        return self.aggregate(function, WithKey() if names is None else WithWindow(names))

    def apply(
        self,
        window_function: WindowFunction[T, R, K, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function to key, window and all elements."""
        return self._window("Apply", window_function=window_function, output_type=output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[T, R, K, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function to key, context and all elements. The context has the window, the clocks and state."""
        return self._window("Process", window_function=process_window_function, output_type=output_type)


class AllWindowedStream(AggregatesOfAll[T], _Windowed[T], Generic[T, W]):
    """Windows over all records of a stream, in one subtask."""

    _kind = "WindowAll"

    def __init__(self, data_stream: DataStream[T], window_assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(data_stream, window_assigner)

    def _window(self, label: str, **parts: Any) -> DataStream[Any]:
        return super()._window(label, **parts).force_non_parallel()

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[T]: ...
    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: AllWindowFunction[T, R, W] | ProcessAllWindowFunction[T, R, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]: ...
    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: AllWindowFunction[T, Any, W] | ProcessAllWindowFunction[T, Any, W] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[Any]:
        """Combine the elements of a window as they arrive. The window function gets the result."""
        return self._window(
            "Reduce",
            reduce_function=reduce_function,
            window_function=window_function,
            output_type=output_type,
            keeps_type=window_function is None,
        )

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, R],
        window_function: None = None,
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, R],
        window_function: AllWindowFunction[R, R2, W] | ProcessAllWindowFunction[R, R2, W],
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R2]: ...
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, Any],
        window_function: AllWindowFunction[Any, Any, W] | ProcessAllWindowFunction[Any, Any, W] | None = None,
        accumulator_type: TypeInformation[Any] | None = None,
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[Any]:
        """Aggregate the elements of a window as they arrive. The window function gets the result."""
        return self._window(
            "Aggregate",
            aggregate_function=aggregate_function,
            window_function=window_function,
            accumulator_type=accumulator_type,
            output_type=output_type,
        )

    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        return self.aggregate(function) if names is None else self.aggregate(function, WindowAndResults(names))

    def apply(
        self,
        window_function: AllWindowFunction[T, R, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function to window and all elements."""
        return self._window("Apply", window_function=window_function, output_type=output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[T, R, W],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function to context and all elements. The context has the window and state."""
        return self._window("Process", window_function=process_window_function, output_type=output_type)


def count_window(stream: KeyedStream[K, T], size: int, slide: int) -> WindowedStream[K, T, GlobalWindow]:
    """Return windows of `size` elements for each key; with a slide, the last `size` after every `slide`."""
    assigner, trigger, evictor = count_window_parts(size, slide)
    windowed = WindowedStream(stream, assigner).trigger(trigger)
    return windowed if evictor is None else windowed.evictor(evictor)


def count_window_all(stream: DataStream[T], size: int, slide: int) -> AllWindowedStream[T, GlobalWindow]:
    """Return windows of `size` elements; with a slide, the last `size` after every `slide`."""
    assigner, trigger, evictor = count_window_parts(size, slide)
    windowed = AllWindowedStream(stream, assigner).trigger(trigger)
    return windowed if evictor is None else windowed.evictor(evictor)
